"""HammerDB as a process: started with a private script in its own folder, heard line by line, and ended with its sessions."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol, TextIO

import psycopg

from pgdyno.workload.client import environment
from pgdyno.workload.hammerdb.script import Login
from pgdyno.workload.outcome import RunRequest
from pgdyno.workload.server import Server
from pgdyno.workload.clock import SECOND_NS, now_ns

from ...base import engine, session
from ...machine import hammerdb as installed
from ...machine.scratch import scratch_directory

START_S: Final = 60.0
"""Within which it has begun its work."""
START_OF_USER_S: Final = 1.0
"""It starts them one after another, half a second apart."""
_EXIT_S: Final = 10.0
_SHOWN: Final = 3
"""Lines of HammerDB that an error repeats."""
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s AND usename = current_user"


class LineParser(Protocol):
    """What is made of the lines of a run; instants are CLOCK_MONOTONIC of the host."""

    begin_ns: int
    """When it began to measure; 0 until then."""
    end_ns: int
    closed_ns: int
    """When its output ended, or it was ended."""
    wrong: list[str]
    """What ended users early, or made it run something else than it was asked for."""

    @property
    def words(self) -> str:
        """What it does at the moment; empty before it began."""

    def share(self, t_ns: int) -> float:
        """How far it is, from 0 to 1."""

    def take(self, line: str, t_ns: int) -> None:
        """One line, without its end."""


@contextlib.contextmanager
def scripted(request: RunRequest, text: str) -> Iterator[Path]:
    """A script that only this user can read, in a private folder for all that HammerDB writes; both are gone after the block."""
    request.out_dir.mkdir(parents=True, exist_ok=True)
    with scratch_directory(request.out_dir) as folder:
        path = folder / "run.tcl"
        path.touch(0o600)
        path.write_text(text, encoding="utf-8")
        yield path


@contextlib.contextmanager
def started(server: Server, request: RunRequest, path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """HammerDB in its own folder, in a group of its own that is ended whatever happens; it writes where the script lies."""
    program, name = installed.program(), f"pgdyno hammerdb {os.getpid()}"
    own = dict.fromkeys(("TMP", "TMPDIR", "TEMP"), str(path.parent))
    env = {**environment(server, request.env), **own, "PGAPPNAME": name}
    # The script has it.
    env.pop("PGPASSWORD", None)
    process = subprocess.Popen(
        engine.child([*request.prefix, program, "tcl", "auto", path]),
        env=env,
        cwd=program.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(_EXIT_S)
        assert process.stdout is not None
        process.stdout.close()
        _end_sessions(server, name)


def _end_sessions(server: Server, name: str) -> None:
    """A session in a long query does not notice that its client is gone. One that cannot be asked has ended by itself."""
    with (
        contextlib.suppress(psycopg.Error),
        contextlib.closing(psycopg.connect(server.dsn, autocommit=True, **session.OPTIONS)) as connection,
    ):
        connection.execute(_END.encode(), [name])


class HammerdbMonitor:
    """Hears HammerDB, keeps what it says without the password, and calls when what is measured begins and ends."""

    def __init__(self, request: RunRequest, login: Login, parser: LineParser) -> None:
        self._heard, self._request, self._login = parser, request, login
        self._rest = b""
        self._kept: list[str] = []
        self._told_ns = 0

    def until_the_end(self, process: subprocess.Popen[bytes], give_up_ns: Callable[[], int]) -> bool:
        """Return when it has ended, or closed its output: whether it did by ``give_up_ns``, which is asked each second."""
        assert process.stdout is not None
        stream, ended = process.stdout.fileno(), True
        with (
            (self._request.out_dir / "hammerdb.log").open("w", encoding="utf-8") as log,
            selectors.DefaultSelector() as selector,
        ):
            selector.register(stream, selectors.EVENT_READ)
            while ended:
                if selector.select(1.0):
                    text = os.read(stream, 1 << 16)
                    if not text:
                        break
                    self._hear(text, log)
                self._tell()
                ended = now_ns() < give_up_ns()
        self._heard.closed_ns = now_ns()
        if self._heard.begin_ns and not self._heard.end_ns:
            self._request.on_measure_end()
        return ended

    @property
    def last_words(self) -> str:
        """The last lines that it printed."""
        return " / ".join(self._heard.wrong[-_SHOWN:] or self._kept[-_SHOWN:]) or "it said nothing"

    def _hear(self, text: bytes, log: TextIO) -> None:
        *lines, self._rest = (self._rest + text).split(b"\n")
        for raw in lines:
            line = raw.decode(errors="replace").rstrip("\r")
            began, ended = self._heard.begin_ns, self._heard.end_ns
            self._heard.take(line, now_ns())
            if self._heard.begin_ns and not began:
                self._request.on_measure_begin()
            if self._heard.end_ns and not ended:
                self._request.on_measure_end()
            if kept := self._login.hidden(line):
                log.write(f"{kept}\n")
                self._kept = [*self._kept[1 - _SHOWN :], kept]

    def _tell(self) -> None:
        """About once a second how far it is."""
        at_ns = now_ns()
        if not self._heard.words or at_ns - self._told_ns < SECOND_NS:
            return
        self._told_ns = at_ns
        self._request.progress(self._heard.share(at_ns), self._heard.words)
