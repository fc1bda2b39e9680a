"""A scheduler and its workers, as the commands start them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.hosts import certificates
from pgdyno.machine.scratch import remove_scratch
from pgdyno.machine.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

START_S = 60.0
"""Dask is imported in half a second; not on a busy machine."""
_LISTENS = "0A"


@dataclass
class Server:
    """A process of ``pgdyno hosts``, and what it said."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    @property
    def port(self) -> int:
        """That it listens on."""
        return int(self.url.rpartition(":")[2])

    def end(self) -> int:
        """As Ctrl-C does; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(START_S)


@contextlib.contextmanager
def serving(*arguments: str, prefix: Sequence[str] = (), **environment: str) -> Iterator[Server]:
    """``pgdyno hosts ARGUMENTS`` for the length of a ``with`` block, from the moment that it says where it is."""
    with tempfile.TemporaryDirectory() as folder:
        path, log = Path(folder) / "out", Path(folder) / "err"
        with path.open("wb") as out, log.open("wb") as err:
            process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "pgdyno", "hosts", *arguments],
                stdout=out,
                stderr=err,
                env=os.environ | environment,
            )
        try:
            wait_until(lambda: process.poll() is not None or path.read_text().endswith("\n"), START_S)
            assert process.poll() is None and path.read_text(), log.read_text()
            yield Server(process, path.read_text().split()[-1], log)
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Place:
    """Where a worker runs."""

    listen: str
    prefix: tuple[str, ...] = ()
    """A command that runs another one there."""
    environment: dict[str, str] = field(default_factory=dict)
    here: str = "127.0.0.1"
    """Address of this machine that is reached from there."""


@dataclass
class Hosts:
    """What runs."""

    folder: Path
    here: str
    """Address of this machine that all reach."""
    scheduler: Server
    workers: dict[str, Server] = field(default_factory=dict)
    apart: list[Any] = field(default_factory=list)
    """Those that have a network and a clock of their own: alpha and gamma, or none."""

    def file(self, folder: Path, drivers: str, keys_dir: Path | None = None) -> Path:
        """A hosts file with these lines of drivers."""
        path = folder / "hosts.toml"
        lines = ["schema_version = 1", f'scheduler = "{self.scheduler.url}"', f'keys = "{keys_dir or self.folder}"']
        path.write_text("\n".join([*lines, f'listen = "{self.here}"', "[drivers]", drivers, ""]))
        return path

    def worker(self, name: str, place: Place) -> contextlib.AbstractContextManager[Server]:
        """A worker for the length of a ``with`` block."""
        if not (self.folder / f"{name}.crt").exists():
            certificates.make(self.folder, [name])
        arguments = ("worker", self.scheduler.url, "--keys", str(self.folder), "--name", name)
        return serving(*arguments, "--listen", f"{place.listen}:0", prefix=place.prefix, **place.environment)


@contextlib.contextmanager
def hosts(folder: Path, here: str, workers: dict[str, Place]) -> Iterator[Hosts]:
    """A scheduler, and workers by name."""
    made = folder / "keys"
    certificates.make(made, ["scheduler", "coordinator", *workers])
    with contextlib.ExitStack() as stack:
        scheduler = stack.enter_context(serving("scheduler", "--keys", str(made), "--listen", f"{here}:0"))
        hosts = Hosts(made, here, scheduler)
        for name, place in workers.items():
            hosts.workers[name] = stack.enter_context(hosts.worker(name, place))
        yield hosts
    for place in workers.values():
        remove_scratch(Path((os.environ | place.environment)["PGDYNO_STATE_DIR"]))  # they were killed


def children(pid: int) -> list[int]:
    """The processes that a process has started and that still run."""
    return [
        int(part) for task in Path(f"/proc/{pid}/task").iterdir() for part in (task / "children").read_text().split()
    ]


def listening(pid: int) -> set[tuple[str, int]]:
    """Addresses and ports on which a process listens; one of IPv6 in the kernel's hexadecimal."""
    inodes = {
        os.readlink(path)[8:-1] for path in Path(f"/proc/{pid}/fd").iterdir() if os.readlink(path).startswith("socket:")
    }
    result = set()
    for table in ("tcp", "tcp6"):  # of its own network
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENS and words[9] in inodes:
                address, _, port = words[1].partition(":")
                number = socket.inet_ntoa(bytes.fromhex(address)[::-1]) if table == "tcp" else address
                result.add((number, int(port, 16)))
    return result
