"""Whether hosts can share a load: the same programs, clocks that are known well enough, and ports that ask for certificates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pgdyno.hosts import facts, file
from pgdyno.hosts.connection import HTTP_REMEDY, SAME_REMEDY, Connection
from pgdyno.hosts.facts import HostFacts
from pgdyno.hosts.seat_there import RemoteSeat
from pgdyno.workload.clock import Offset

from ..analysis.instrument import BEGIN_MS_INVALID
from ..base.errors import PgdynoError
from ..machine.doctor import STEAL_WARN_SHARE, HostCheck


def examine(path: Path) -> list[HostCheck]:
    """A check of the scheduler and several of each driver that the hosts file names. A host that does not answer is a finding."""
    result = file.read(path)
    with Connection(result) as connection:
        own, url = facts.of_this_host(), result.scheduler.url
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
