"""Loads to size, without a file."""

from __future__ import annotations

from pgdyno.advise.size.demand import Demand, demand_of
from pgdyno.advise.size.measured import DeviceSamples, IntervalSample


def demand(
    *intervals: tuple[float, float],
    seconds: float = 60.0,
    percentile: float = 99.0,
    headroom: float = 0.2,
    reads: float = 0.5,
) -> Demand:
    """A demand of intervals of (operations per second, KiB of each)."""
    samples = tuple(
        IntervalSample(
            seconds, ops * reads, ops * (1 - reads), ops * reads * kib * 1024, ops * (1 - reads) * kib * 1024
        )
        for ops, kib in intervals
    )
    return demand_of(DeviceSamples("iostat", "nvme1n1", samples), percentile, headroom)


def steady(ops: float, kib: float = 8.0, **options: float) -> Demand:
    """The same in each of a hundred minutes."""
    return demand(*[(ops, kib)] * 100, **options)
