"""A volume's minutes for people: the document's formulas side by side, and what they say together."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from ...base.specification import VolumeSpec
from . import cloudwatch
from .cloudwatch import BY_NAME, Period, provisioned_iops
from .samples import CounterHistory

HEADER = (
    "MINUTE (UTC)", "READ IOPS", "WRITE IOPS", "READ KiB/s", "WRITE KiB/s", "READ ms", "WRITE ms", "KiB/OP", "BUSY %",
    "QUEUE", "BURST %", "LIMITED BY",
)  # fmt: skip
"""Columns of :func:`rows`."""


@dataclass(frozen=True)
class Minute:
    """The figures of one minute; None where the volume does not have one."""

    period: Period
    read_iops: float | None
    write_iops: float | None
    read_kib_per_s: float | None
    write_kib_per_s: float | None
    read_ms: float | None
    write_ms: float | None
    size_kib: float | None
    busy_percent: float | None
    queue_length: float | None
    burst_percent: float | None
    limited_by: tuple[str, ...]
    """Limits that requests waited for consistently."""


_CHECKS = {
    "IOPS": "VolumeIOPSExceededCheck",
    "throughput": "VolumeThroughputExceededCheck",
    "instance IOPS": "InstanceEBSIOPSExceededCheck",
    "instance throughput": "InstanceEBSThroughputExceededCheck",
    "a stall": "VolumeStalledIOCheck",
}


def figures(samples: CounterHistory, period: Period) -> Minute:
    """The formulas over one minute."""

    def value(name: str) -> float | None:
        return BY_NAME[name].value(samples, period)

    def per_second(name: str) -> float | None:
        grown = value(name)
        return None if grown is None else cloudwatch.iops(grown, period.seconds)

    def bandwidth(name: str) -> float | None:
        grown = value(name)
        return None if grown is None else cloudwatch.bandwidth_kib_per_s(grown, period.seconds)

    operations = [value("VolumeReadOps") or 0.0, value("VolumeWriteOps") or 0.0]
    moved = [value("VolumeReadBytes") or 0.0, value("VolumeWriteBytes") or 0.0]
    idle_s = value("VolumeIdleTime")
    return Minute(
        period=period,
        read_iops=per_second("VolumeReadOps"),
        write_iops=per_second("VolumeWriteOps"),
        read_kib_per_s=bandwidth("VolumeReadBytes"),
        write_kib_per_s=bandwidth("VolumeWriteBytes"),
        read_ms=value("VolumeAvgReadLatency"),
        write_ms=value("VolumeAvgWriteLatency"),
        size_kib=cloudwatch.average_size_kib(sum(moved), sum(operations)),
        busy_percent=None if idle_s is None else cloudwatch.utilisation_percent(idle_s, period.seconds),
        queue_length=value("VolumeQueueLength"),
        burst_percent=value("BurstBalance"),
        limited_by=tuple(limit for limit, check in _CHECKS.items() if value(check) == 1.0),
    )


def rows(minutes: Sequence[Minute]) -> list[list[str]]:
    """One line for each minute; a part of one is marked with ``*``."""
    return [
        [
            _minute(minute.period),
            *(
                _figure(number, 0)
                for number in (minute.read_iops, minute.write_iops, minute.read_kib_per_s, minute.write_kib_per_s)
            ),
            _figure(minute.read_ms, 2),
            _figure(minute.write_ms, 2),
            _figure(minute.size_kib, 1),
            _figure(minute.busy_percent, 1),
            _figure(minute.queue_length, 2),
            _figure(minute.burst_percent, 2),
            ", ".join(minute.limited_by) or "-",
        ]
        for minute in minutes
    ]


def remarks(samples: CounterHistory, minutes: Sequence[Minute]) -> list[str]:
    """What the rules of thumb say of the minutes: the queue's length, which limit binds first, how long credits last."""
    remarks = [*_queue(samples, minutes), *_binds_first(samples, minutes), *_credits(samples, minutes)]
    if any(not minute.period.whole for minute in minutes):
        remarks.append("*: only a part of this minute was sampled")
    return remarks


def _queue(samples: CounterHistory, result: Sequence[Minute]) -> list[str]:
    """A line for each IOPS limit that the volume had in these minutes."""
    by_limit: dict[float, list[Minute]] = {}
    for minute in result:
        provisioned = provisioned_iops(samples, minute.period)
        if provisioned is not None:
            by_limit.setdefault(provisioned, []).append(minute)
    return [
        f"queue: above {cloudwatch.queue_length_wanted(limit):g} (one for every 1,000 of {limit:,.0f} IOPS) in"
        f" {sum(cloudwatch.is_queue_too_long(minute.queue_length or 0.0, limit) for minute in minutes)} of {len(minutes)} minutes"
        for limit, minutes in by_limit.items()
    ]


def _binds_first(samples: CounterHistory, minutes: Sequence[Minute]) -> list[str]:
    """At the size of the last minute's operations, what the IOPS move against what the throughput allows."""
    limits = samples.spec.get("limits", {})
    provisioned, allowed = limits.get("iops"), limits.get("throughput_mib_per_s")
    size_kib = next((minute.size_kib for minute in reversed(minutes) if minute.size_kib is not None), None)
    if provisioned is None or allowed is None or size_kib is None:
        return []
    moved_mib_per_s = cloudwatch.throughput_bytes_per_s(provisioned, size_kib * cloudwatch.KIB_BYTES) / 2**20
    first = "IOPS bind" if moved_mib_per_s < allowed else "throughput binds"
    moved = f"{provisioned:,.0f} IOPS move {moved_mib_per_s:,.0f} MiB/s of {allowed:,.0f}"
    return [f"at {size_kib:,.1f} KiB an operation {moved}: {first} first"]


_CREDITS = (("I/O", "iops", "io_credits"), ("throughput", "throughput", "throughput_credits_bytes"))
"""Kind of credits, the limit that they lift, their counter."""


def _credits(samples: CounterHistory, minutes: Sequence[Minute]) -> list[str]:
    """How long credits last at full burst and as they go now, and how long an idle volume takes to earn them again."""
    texts = [_balance(samples, *kind) for kind in _CREDITS]
    last = [(minute.burst_percent, minute.period.seconds) for minute in minutes[-2:]]
    if len(last) == 2 and last[0][0] is not None and last[1][0] is not None:
        lasts_s = cloudwatch.credits_last_s(last[1][0], last[0][0], last[1][1])
        if lasts_s is not None:
            texts.append(f"burst credits: spent in {_time(lasts_s)} if they go as in the last minute")
    return [text for text in texts if text is not None]


def _balance(samples: CounterHistory, kind: str, limit: str, counter: str) -> str | None:
    params = samples.spec.get("params", {})
    credit, burst = params.get(f"{limit}_credit"), params.get(f"{limit}_limit")
    balance = samples.at(counter, samples.end_ns)
    if credit is None or burst is None or balance is None:
        return None
    # The parameters are those of each member of an array; the balance is that of all members and of their remote copies.
    volume = VolumeSpec.of(samples.spec)
    members = volume.columns * volume.copies
    baseline_per_s, capacity = members * credit["rate_per_s"], members * credit["capacity"]
    lasts_s = cloudwatch.burst_duration_s(balance, members * burst["rate_per_s"], baseline_per_s)
    full_s = cloudwatch.refill_duration_s(capacity - balance, baseline_per_s)
    if lasts_s is None or full_s is None:
        return None
    return (
        f"{kind} credits: {balance:,.0f} of {capacity:,}, {_time(lasts_s)} at full burst; full again after"
        f" {_time(full_s)} without work"
    )


def _time(seconds: float) -> str:
    """Seconds below two minutes, minutes below two hours, then hours."""
    if seconds < 120:
        return f"{seconds:,.1f} s"
    return f"{seconds / 60:,.1f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def _minute(period: Period) -> str:
    begin = dt.datetime.fromtimestamp(period.unix_s, dt.UTC)
    text = f"{begin:%Y-%m-%d %H:%M}" if begin.second == 0 else f"{begin:%Y-%m-%d %H:%M:%S}"
    return text if period.whole else f"{text}*"


def _figure(number: float | None, digits: int) -> str:
    return "-" if number is None else f"{number:,.{digits}f}"
