"""Examination of hosts: equal programs, known clocks, and ports that ask for certificates."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pgdyno.hosts.connection import HTTP_REMEDY, SAME_REMEDY, Connection
from pgdyno.hosts.facts import HostFacts
from pgdyno.hosts.remote_process import RemoteSeat
from pgdyno.workload.clock import Offset

from ..analysis.instrument import BEGIN_MS_INVALID
from ..base.errors import HostError, PgdynoError
from ..machine.doctor import STEAL_WARN_SHARE, HostCheck
from . import connection as file
from .certificates import COORDINATOR, Identity
from .dask import HostAddress
from .facts import of_this_host


def examine(path: Path) -> list[HostCheck]:
    """A check of the scheduler and several of each driver that the hosts file names. A host that does not answer is a finding."""
    result = file.read(path)
    with Connection(result) as connection:
        own, url = of_this_host(), result.scheduler.url
        checks = [
            HostCheck("scheduler", "fail", f"{url} serves HTTP", HTTP_REMEDY)
            if connection.http
            else _ok("scheduler", url)
        ]
        for name in result.drivers:
            try:
                seat = connection.seat(name)
                checks += of_host(seat, own)
            except PgdynoError as error:
                checks.append(HostCheck(name, "fail", error.message, error.remedy))
                continue
            worker = connection.workers[name]
            ports = f"{name} ports"
            checks.append(
                HostCheck(ports, "fail", f"{worker.url} and HTTP", HTTP_REMEDY)
                if worker.http
                else _ok(ports, worker.url)
            )
    return checks


def of_host(seat: RemoteSeat, own: HostFacts) -> Iterator[HostCheck]:
    """The checks of one host beside this one."""
    there, clock = seat.facts(), seat.clock()
    yield _equal(f"{seat.name} engine", there.engine, own.engine)
    yield _equal(f"{seat.name} PostgreSQL", there.postgres, own.postgres)
    yield _clock(seat.name, clock)
    text = (
        f"{there.cores} of {there.cpu or 'an unknown CPU'}, {there.memory_bytes / 2**30:.1f} GiB, Linux {there.kernel}"
    )
    yield _ok(f"{seat.name} cores", text)
    steal, result = f"{seat.name} steal", f"{100 * there.steal_share:.1f} %"
    remedy = "that host gives this machine's CPUs to others: repeat runs, or use another"
    yield HostCheck(steal, "warn", result, remedy) if there.steal_share > STEAL_WARN_SHARE else _ok(steal, result)


def _equal(name: str, there: str, here: str) -> HostCheck:
    return _ok(name, there) if there == here else HostCheck(name, "fail", f"{there}; here {here}", SAME_REMEDY)


def _clock(name: str, clock: Offset) -> HostCheck:
    known_ms = clock.uncertainty_ns / 1e6
    text = f"{clock.taken_ns / 1e9:+,.6f} s, known to {known_ms:.3f} ms (round trip {2 * known_ms:.3f} ms)"
    if known_ms > BEGIN_MS_INVALID:
        remedy = f"a run needs {BEGIN_MS_INVALID:g} ms: use hosts that are nearer, or less busy"
        return HostCheck(f"{name} clock", "fail", text, remedy)
    return _ok(f"{name} clock", text)


def _ok(name: str, text: str) -> HostCheck:
    return HostCheck(name, "ok", text)


MEMORY_APART_SHARE = 0.02
"""Kernels reserve different parts of the same memory; a larger difference is another size."""


@dataclass(frozen=True)
class SpreadOptions:
    """What ``--spread``, ``--keys`` and ``--mixed`` say."""

    scheduler: HostAddress
    keys: Path
    mixed: bool = False
    """Whether hosts may differ in what changes a result."""

    @property
    def identity(self) -> Identity:
        """With which this process shows who it is."""
        return Identity(self.keys, COORDINATOR)

    @property
    def flags(self) -> str:
        """As they are written on a command line."""
        return f"--spread {self.scheduler.url} --keys {shlex.quote(str(self.keys))}" + " --mixed" * self.mixed


def require_alike(hosts: Mapping[str, HostFacts]) -> None:
    """Refuse hosts that differ in cores, memory, kernel or CPU: their runs would scatter by what they were made on."""
    (first, result), *others = hosts.items()
    for name, other in others:
        for what, here, there, same in (
            ("cores", str(result.cores), str(other.cores), result.cores == other.cores),
            ("memory", _gib(result), _gib(other), _close(result.memory_bytes, other.memory_bytes)),
            ("kernel", result.kernel, other.kernel, result.kernel == other.kernel),
            ("CPU", result.cpu, other.cpu, result.cpu == other.cpu),
        ):
            if not same:
                raise HostError(
                    f"hosts differ: {what} of {first}: {here}; of {name}: {there}",
                    remedy="use hosts of one kind, or give --mixed: then the report says how far they are apart",
                )


def _gib(facts: HostFacts) -> str:
    return f"{facts.memory_bytes / 2**30:.1f} GiB"


def _close(number: int, other: int) -> bool:
    return abs(number - other) <= MEMORY_APART_SHARE * max(number, other)
