"""The processes that make a load, for the length of a ``with`` block."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pgdyno.base.errors import HostError
from pgdyno.machine.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tools.diagnose.scenarios import Load
    from tools.diagnose.stand import Running

LAST_S = 900
"""As long as pgbench runs unless it is ended."""
OTHERS = 4
"""Processes that compute: twice as many as two cores."""
STANDBY = "slow"
STOPPED_S, LIVELY_S = 0.08, 0.01
"""The synchronous standby is stopped for most of the time, so a commit waits for it about that long."""
WATCHING = 3
"""Sessions of a watch: its counters', its looks at the sessions, and the one that looks for pg_stat_statements."""
DEADLINE_S = 30.0
_COPY = """
for turn in 1 2 3; do
  (while :; do find "$1/base" -size +8M -exec dd if={} of=/dev/null bs=256k iflag=direct status=none \\; ; done) &
done
wait
"""
_AGAIN = 'while :; do "$@" > /dev/null || exit 1; done'
_PROGRAMS = {"pg_basebackup": ("-t", "blackhole", "-X", "none", "-c", "fast"), "pg_dump": ("-t", "pgbench_accounts")}


@dataclass
class Clients:
    """Clients of a load, and what they say of themselves."""

    said: list[float] = field(default_factory=list)
    """Transactions per second, once a second."""

    @property
    def tps(self) -> float | None:
        """Mean over the seconds but the first two; None where no client says it."""
        kept = self.said[2:]
        return sum(kept) / len(kept) if kept else None


@contextlib.contextmanager
def loading(running: Running, load: Load, script: str | None = None) -> Iterator[Clients]:
    """The load, or the same with other statements; ended with the ``with`` block."""
    clients = Clients()
    statements = script or load.script
    with contextlib.ExitStack() as ending:
        ending.callback(_end_sessions, running)
        if load.beside is not None and script is None:
            ending.enter_context(_BESIDE[load.beside](running))
        if statements is not None:
            ending.enter_context(_pgbench(running, load, statements, clients))
        if load.program is not None:
            ending.enter_context(_program(running, load.program))
        yield clients


def _end_sessions(running: Running) -> None:
    """A statement runs on after its client is gone, and would be a part of the next load."""
    others = "FROM pg_stat_activity WHERE backend_type IN ('client backend', 'walsender') AND pid <> pg_backend_pid()"
    with running.connect() as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid) {others}".encode())
        query = f"SELECT count(*) {others}".encode()
        assert wait_until(lambda: connection.execute(query).fetchone() == (0,), DEADLINE_S), "sessions do not end"


@contextlib.contextmanager
def _pgbench(running: Running, load: Load, statements: str, clients: Clients) -> Iterator[None]:
    path = running.scratch / "load.sql"
    path.write_text(statements)
    command = [
        running.program("pgbench"), "-n", "-f", str(path), "-c", str(load.clients), "-j", "1", "-T", str(LAST_S), "-P", "1",
        *load.options, running.subject.server.dsn,
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=_environment(running)
    ) as process:
        reader = threading.Thread(target=_read, args=(process, clients.said))
        reader.start()
        try:
            yield
        finally:
            process.terminate()
            process.wait()
            reader.join()


def _read(process: subprocess.Popen[bytes], into: list[float]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if (match := re.search(rb"([\d.]+) tps", line)) is not None:
            into.append(float(match[1]))


@contextlib.contextmanager
def _program(running: Running, name: str) -> Iterator[None]:
    command = ["bash", "-c", _AGAIN, name, running.program(name), "-d", running.subject.server.dsn, *_PROGRAMS[name]]
    log = running.scratch / f"{name}.log"
    with _group(command, running, log) as process:
        yield
        if process.poll() is not None:
            raise HostError(
                f"{name} ended: {log.read_text(errors='replace')[-200:].strip()}", remedy="look at the server"
            )


@contextlib.contextmanager
def _group(command: list[str], running: Running, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process and its children, ended together."""
    with (
        log.open("wb") as result,
        subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=result, env=_environment(running), start_new_session=True
        ) as process,
    ):
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def _others(_: Running) -> Iterator[None]:
    """Processes of this host that compute."""
    made = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(OTHERS)]
    try:
        yield
    finally:
        for process in made:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _copy(running: Running) -> Iterator[None]:
    """Programs that read the server's larger files past the page cache, as a copy of its volume does."""
    command = ["bash", "-c", _COPY, "copy", running.data_directory()]
    with _group(command, running, running.scratch / "copy.log"):
        yield


@contextlib.contextmanager
def _standby(running: Running) -> Iterator[None]:
    """A synchronous standby (pg_receivewal) that is stopped most of the time."""
    folder = running.scratch / "standby"
    folder.mkdir()
    command = [
        running.program("pg_receivewal"), "-D", str(folder), "--synchronous", "-d",
        f"{running.subject.server.dsn} application_name={STANDBY}",
    ]  # fmt: skip
    stop = threading.Event()
    try:
        with _group(command, running, running.scratch / "standby.log") as process, running.connect() as connection:
            _set(running, "synchronous_standby_names", STANDBY)
            query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            assert wait_until(lambda: connection.execute(query).fetchone() == (1,), DEADLINE_S)
            slow = threading.Thread(target=_slow_down, args=(process.pid, stop))
            slow.start()
            try:
                yield
            finally:
                stop.set()
                slow.join()
                _set(running, "synchronous_standby_names", None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _slow_down(pid: int, stop: threading.Event) -> None:
    while not stop.is_set():
        os.kill(pid, signal.SIGSTOP)
        stop.wait(STOPPED_S)
        os.kill(pid, signal.SIGCONT)
        stop.wait(LIVELY_S)


@contextlib.contextmanager
def _full(running: Running) -> Iterator[None]:
    """Every connection that an ordinary role may have is taken, from when the watch has its own on."""
    import psycopg

    taken: list[psycopg.Connection[tuple[object, ...]]] = []
    stop = threading.Event()

    def take() -> None:
        with running.connect() as looking:
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno probe'"
            while not stop.is_set() and looking.execute(query).fetchone() != (WATCHING,):
                stop.wait(0.05)
        while not stop.is_set():
            with contextlib.suppress(psycopg.Error):
                taken.append(running.connect("hoarder"))
                continue
            stop.wait(0.5)

    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        for connection in taken:
            connection.close()


def _set(running: Running, name: str, value: str | None) -> None:
    what = f"RESET {name}" if value is None else f"SET {name} = '{value}'"
    with running.connect() as connection:
        connection.execute(f"ALTER SYSTEM {what}".encode())
        connection.execute("SELECT pg_reload_conf()")


def _environment(running: Running) -> dict[str, str]:
    return {**os.environ, **running.arm.binaries.environment}


_BESIDE: dict[str, Callable[[Running], contextlib.AbstractContextManager[None]]] = {
    "others": _others,
    "copy": _copy,
    "standby": _standby,
    "full": _full,
}
