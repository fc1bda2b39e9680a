"""Runs a driver on its own CPU against the restored database, and reads what it counted."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Literal

from pydantic import BaseModel

from pgdyno.base import engine
from pgdyno.base.errors import PgdynoError
from tools.equivalence.workloads import CLIENTS, Original, connected

if TYPE_CHECKING:
    from tools.equivalence.bench import Bench
    from tools.equivalence.workloads import Length, Workload

Side = Literal["original", "native"]
_PATIENCE_S = 120.0
"""Beyond its length: a driver that takes this long to begin and end hangs."""


class Run(BaseModel, frozen=True):
    """What a driver says it did."""

    transactions: int
    tps: float
    """Of the time after all clients were connected, by the driver's own rule."""


def run(bench: Bench, workload: Workload, side: Side, seed: int, length: Length) -> Run:
    """Run to the end. :class:`PgdynoError` when the driver fails or loses any transaction."""
    with ready(bench, workload, side, seed, length) as driver:
        try:
            driver.begin().wait((length.seconds or 0) + _PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise PgdynoError(f"the {side} driver hangs", remedy="look at the server's log") from None
        return driver.said()


@contextmanager
def ready(bench: Bench, workload: Workload, side: Side, seed: int, length: Length) -> Iterator[Driver]:
    """A driver that is about to begin; it does not outlive the ``with`` block."""
    with TemporaryFile() as file, TemporaryFile() as out, TemporaryFile() as err:
        driver = Driver(bench, workload, side, (file, out, err))
        driver.ask(workload, seed, length)
        try:
            yield driver
        finally:
            driver.end()


class Driver:
    """A driver's process on the driver's CPU, with what it is asked and says in files: a full pipe would stop it."""

    def __init__(self, bench: Bench, workload: Workload, side: Side, files: tuple[IO[bytes], ...]) -> None:
        self._bench, self._original, self._side = bench, workload.original, side
        self._asked, self._out, self._err = files
        self._command: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, workload: Workload, seed: int, length: Length) -> None:
        """Tell it what to do."""
        bench = self._bench
        if self._side == "native":
            self._command = [str(engine.checked()), "drive"]
            document = workload.native(seed, length) | {"server": bench.endpoint.order("pgdyno drive")}
            self._asked.write(json.dumps(document).encode() + b"\n")
            self._asked.seek(0)
            return
        self._command = workload.command(bench.pgbench, seed, length)
        if workload.original == "sysbench":
            self._command[1:1] = connected(bench.server, bench.database)

    def begin(self) -> subprocess.Popen[bytes]:
        """Start it."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        self._process = subprocess.Popen(
            ["taskset", "-c", str(self._bench.driver_cpu), *self._command],
            stdin=self._asked,
            stdout=self._out,
            stderr=self._err,
            env=environment | self._bench.environment | {"LC_ALL": "C"},
        )
        return self._process

    def said(self) -> Run:
        """What it printed, once it has ended. :class:`PgdynoError` if it failed, or lost any transaction."""
        code = None if self._process is None else self._process.poll()
        out, err = self._read(self._out), self._read(self._err)
        if code != 0:
            raise PgdynoError(f"`{self._command[0]}` ended with {code}: {err.strip()[-500:]}", remedy="run it by hand")
        if self._side == "native":
            return native(out, self._original)
        return _pgbench(out) if self._original == "pgbench" else _sysbench(out)

    def end(self) -> None:
        """Leave no process behind."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @staticmethod
    def _read(file: IO[bytes]) -> str:
        file.seek(0)
        return file.read().decode(errors="replace")


EXPECTED: Mapping[Original, Collection[str]] = {
    "pgbench": ("deadlock", "serialization"),
    "sysbench": ("deadlock", "serialization", "23505"),
}
"""Errors of clients that meet, which end no run. Tests of sysbench have 23505 where two clients delete and insert one key."""


def native(out: str, original: Original) -> Run:
    """What our driver's last line has. :class:`PgdynoError` when it lost a transaction.

    Each client may have one that failed by such an error: of sysbench's, which are begun again, the last that the end of the run cut off.
    """
    summary = json.loads(out.splitlines()[-1])["summary"]
    met = sum(count for error, count in summary["errors"].items() if error in EXPECTED[original])
    if summary["failed"] > min(met, CLIENTS) or summary["connections_lost"]:
        raise PgdynoError(f"the driver lost transactions: {summary['errors']}", remedy="look at the server's log")
    return Run(transactions=summary["succeeded"], tps=summary["tps"])


def _pgbench(out: str) -> Run:
    transactions = _number(r"number of transactions actually processed: (\d+)", out)
    return Run(transactions=int(transactions), tps=_number(r"^tps = ([\d.]+) \(without", out))


def _sysbench(out: str) -> Run:
    return Run(
        transactions=int(_number(r"transactions:\s+(\d+)\s", out)),
        tps=_number(r"transactions:\s+\d+\s+\(([\d.]+) per sec", out),
    )


def _number(pattern: str, text: str) -> float:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise PgdynoError(f"no `{pattern}` in what the driver printed: {text[-500:]}", remedy="look at its version")
    return float(match[1])
