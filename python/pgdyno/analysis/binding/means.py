"""The mean second of those in which a limit bound: what words and remedies are made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

from pgdyno.analysis.binding.device import DeviceActivity
from pgdyno.analysis.binding.evidence import Cpu, Second
from pgdyno.analysis.binding.limits import Limit
from pgdyno.analysis.binding.sessions import SessionStates
from pgdyno.analysis.binding.verdict import RunBinding


@dataclass(frozen=True)
class SecondMeans:
    """Means over seconds. None and absent are what no second had."""

    sessions: SessionStates | None
    devices: Mapping[str, DeviceActivity]
    cpu: Cpu | None


def means_of(run: RunBinding, limit: Limit) -> SecondMeans:
    """Over the seconds in which ``limit`` bound; over all where it bound in none of this run."""
    bound = [
        second
        for second, item in zip(run.evidence.seconds, run.seconds, strict=True)
        if item is not None and item.limit == limit
    ]
    return mean_second(bound or run.evidence.seconds)


def mean_second(seconds: Sequence[Second]) -> SecondMeans:
    """Over some seconds."""
    sessions = [second.sessions for second in seconds if second.sessions is not None]
    cpus = [second.cpu for second in seconds if second.cpu is not None]
    roles = dict.fromkeys(role for second in seconds for role in second.devices)
    return SecondMeans(
        sessions=SessionStates(*_columns(astuple(session) for session in sessions)) if sessions else None,
        devices={role: _device([s.devices[role] for s in seconds if role in s.devices]) for role in roles},
        cpu=_cpu(cpus) if cpus else None,
    )


def _device(devices: Sequence[DeviceActivity]) -> DeviceActivity:
    reads, writes, read_mib, write_mib = _columns(
        (device.reads_per_s, device.writes_per_s, device.read_mib_per_s, device.write_mib_per_s) for device in devices
    )
    # A second with few requests has as many of them in the mean as it had.
    timed = [(device.request_ms, device.iops) for device in devices if device.request_ms is not None]
    requests = math.fsum(iops for _, iops in timed)
    whole_ms = math.fsum(request_ms * iops for request_ms, iops in timed)
    return DeviceActivity(
        reads_per_s=reads,
        writes_per_s=writes,
        read_mib_per_s=read_mib,
        write_mib_per_s=write_mib,
        request_ms=None if not timed else whole_ms / requests if requests else 0.0,
        queue_length=_known([device.queue_length for device in devices]),
        reading=_known([device.reading for device in devices]),
    )


def _known(values: Sequence[float | None]) -> float | None:
    """The mean of what is known; None of nothing."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _cpu(cpus: Sequence[Cpu]) -> Cpu:
    idle, laboratory, other, driver = _columns((c.idle, c.laboratory, c.other, c.driver_busy) for c in cpus)
    seen = [(cpu.server, cpu.server_busy) for cpu in cpus if cpu.server is not None and cpu.server_busy is not None]
    server, busy = _columns(seen) if seen else (None, None)
    return Cpu(idle, laboratory, other, driver, server, busy)


def _columns(rows: Iterable[tuple[float, ...]]) -> list[float]:
    """The mean of each column."""
    return [math.fsum(column) / len(column) for column in zip(*rows, strict=True)]
