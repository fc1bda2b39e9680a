"""From measurements to a volume. A function of its arguments: no disk, no clock.

The volume model has token buckets for I/O units and bytes, an order in which requests wait, and tables of the time that
the device itself takes. Each is read from the jobs in which nothing else binds (docs/concept/twin.md has the formulas).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from ...base.errors import HostError
from .fio import FioJob, JobResult, Op, probabilities_ppm, table_ns

PAGE_KIB = 8
"""PostgreSQL's page."""


@dataclass(frozen=True)
class PathCost:
    """What the emulator's own path was measured to cost at attach; it is taken off every modelled time."""

    fixed_ns: int
    per_kib_ps: int

    def ns(self, block_kib: int) -> float:
        """For a request of ``block_kib``, as the emulator counts it."""
        return self.fixed_ns + block_kib * self.per_kib_ps / 1000


@dataclass(frozen=True)
class Measurements:
    """Every answer that a fit uses."""

    alone: dict[Op, JobResult]
    """One request at a time, at once after each other, pages: what one client sees for good."""
    light: dict[tuple[Op, int], JobResult]
    """One at a time, seldom, by size in KiB: the time that the disk itself takes."""
    many: dict[Op, JobResult]
    """Small ones, many at a time, with their course: IOPS, bucket, order."""
    large: dict[Op, JobResult]
    """Large ones, many at a time, with their course: throughput and its bucket."""
    mixed: JobResult | None
    """Small and large ones together, where IOPS by units and bytes cannot be told apart otherwise."""
    sequential: JobResult
    """Small sequential ones, many at a time."""
    null_alone: dict[Op, JobResult]
    null_light: dict[tuple[Op, int], JobResult]
    path: dict[Op, PathCost]
    written_bytes: int
    """Written to the disk in all."""


CACHED_US = 60.0
"""A random read that is faster, kernel and all, hardly came from flash: a page of TLC takes 50 us to read in the chip alone. Of flash
made for latency it may have."""
FLOOR_SHARE = 0.5
"""Largest share of the emulator's floor in the disk's latency: above it the twin would mostly show the emulator."""
UNITS_KIB = (8, 16, 32, 64, 128)
"""Units of accounting below the usual one: powers of two, as all in the catalogue."""
UNIT_KIB = 256
"""Where nothing is seen of a unit: that of the SSD volumes in the catalogue, and the largest request of an emulated one."""
UNIT_KIB_MOST = 1024
UNIT_TOLERANCE = 0.05
"""Throughput over IOPS this near to a unit may be that unit: the limits themselves are measured to about 1 %."""
SAME_RATE = 0.03
"""Rates of reads and writes this near to each other are one limit, measured twice."""
STEADY = 0.05
"""A rate that still fell by more in the last quarter of its job has not been seen to its end."""
SPREAD_OF_A_DRAWN_ORDER = 0.45
"""Standard deviation over mean of latencies under saturation: 0.71 when drawn (gamma), about 0 to 0.2 when in order."""
MERGED_RATIO = 1.5
"""Sequential requests that come so much faster than random ones share units."""
HELD_PER_S, HELD_MIB_PER_S = 16_000, 1_000
"""Up to here the emulator is measured to hold a volume on two cores; above it a run's lateness tells."""
_SIGNIFICANT = 3
_MIB = 1 << 20


@dataclass(frozen=True)
class TokenBucketFit:
    """A token bucket as it was seen from outside."""

    per_s: float
    """Requests a second once the bucket is empty."""
    bucket_ms: int
    """What the bucket held, as time at the rate."""
    steady: bool
    """Whether the rate had stopped falling."""
    spread: float
    """Standard deviation of the latencies over their mean, with the bucket empty."""


@dataclass(frozen=True)
class Twin:
    """A volume's parameters, as its file has them. Times in nanoseconds; a table has one row for each size."""

    reads_per_s: int
    writes_per_s: int
    iops_bucket_ms: int
    bytes_per_s: int | None
    bytes_bucket_ms: int
    unit_kib: int
    merge_sequential: bool
    order: Literal["fifo", "gamma"]
    size_kib: tuple[int, ...]
    probability_ppm: tuple[int, ...]
    read_ns: tuple[tuple[int, ...], ...]
    write_ns: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...]
    """What the twin has not, or has less well than the disk."""


def limit_of(answer: JobResult) -> TokenBucketFit:
    """Rate and bucket of a saturated job, from the line through its completions after half of its time.

    With a bucket that is full at first, ``completed(t) = bucket + rate x t`` once it is empty.
    """
    import numpy as np

    assert answer.course is not None, "a saturated job keeps its course"
    done_s = np.sort(answer.course.done_s)
    count = np.arange(1, len(done_s) + 1)
    late = done_s >= done_s[-1] / 2
    if late.sum() < 2 or done_s[late][0] == done_s[-1]:
        return TokenBucketFit(answer.per_s, 0, False, 0.0)
    rate, held = np.polyfit(done_s[late], count[late], 1)
    third, last = (_rate_between(done_s, low, high) for low, high in ((0.5, 0.75), (0.75, 1.0)))
    late_ns = answer.course.latency_ns[answer.course.done_s >= done_s[-1] / 2]
    return TokenBucketFit(
        per_s=float(rate),
        bucket_ms=max(0, round(1000 * held / rate)),
        steady=last > third * (1 - STEADY),
        spread=float(late_ns.std() / late_ns.mean()),
    )


def _rate_between(done_s: object, low: float, high: float) -> float:
    import numpy as np

    times = np.asarray(done_s)
    begin_s, end_s = low * times[-1], high * times[-1]
    return float(((times > begin_s) & (times <= end_s)).sum() / (end_s - begin_s))


def ambiguous_unit_kib(small_per_s: float, large_kib_per_s: float) -> int | None:
    """The unit of accounting that would explain the rate of large requests without a limit on bytes; or ``None``."""
    ratio = large_kib_per_s / small_per_s
    return next((unit for unit in UNITS_KIB if abs(ratio / unit - 1) <= UNIT_TOLERANCE), None)


def mix_for(unit_kib: int, job: FioJob) -> FioJob:
    """``job`` with equal numbers of units from large and from small requests.

    They are not larger than the usual unit, so that they are one each where that is the disk's.
    """
    return replace(job, large_kib=UNIT_KIB, large_percent=round(100 / (1 + UNIT_KIB / unit_kib)))


def counts_in_units(unit_kib: int, small_per_s: float, bytes_per_s: float, mixed: JobResult) -> bool:
    """Whether a mix of small and large requests ran at the pace of one limit on units, and not at that of two limits.

    A request of the mix takes on average ``units / IOPS`` in the first case, and ``max(1 / IOPS, bytes / throughput)``
    in the second. Whichever rate is nearer, by ratio, is taken.
    """
    large = mixed.job.large_percent / 100
    assert mixed.job.large_kib is not None
    units = (1 - large) + large * mixed.job.large_kib / unit_kib
    mean_bytes = ((1 - large) * mixed.job.block_kib + large * mixed.job.large_kib) * 1024
    by_units = small_per_s / units
    by_both = 1 / max(1 / small_per_s, mean_bytes / bytes_per_s)
    return abs(math.log(mixed.per_s / by_units)) < abs(math.log(mixed.per_s / by_both))


def require_slower_than_the_floor(shown: str, disk: dict[Op, JobResult], null: dict[Op, JobResult]) -> None:
    """:class:`HostError` with both figures where the emulator's own latency is not below half of the disk's."""
    for op, answer in disk.items():
        disk_us, floor_us = (each.latency.quantile_ns(0.5) / 1000 for each in (answer, null[op]))
        if floor_us >= FLOOR_SHARE * disk_us:
            raise HostError(
                f"{shown} is too fast to be emulated here: a {op} of {PAGE_KIB} KiB takes {disk_us:,.0f} us on it"
                f" and {floor_us:,.0f} us on an emulated volume without any delay, which must be below"
                f" {FLOOR_SHARE:.0%} of that",
                remedy="emulate it on a faster machine",
            )


def fit(measurements: Measurements) -> Twin:
    """The volume whose model explains what was measured."""
    notes: list[str] = []
    small = {op: limit_of(answer) for op, answer in measurements.many.items()}
    large = {op: limit_of(answer) for op, answer in measurements.large.items()}
    for op in small:
        if not (small[op].steady and large[op].steady):
            notes.append(f"the rate of {op}s still fell at the end: credits that last longer are not in the twin")
    reads_per_s, writes_per_s = _rates(small["read"].per_s, small["write"].per_s)
    large_job = measurements.large["write"].job
    bytes_per_s = _bytes_per_s({op: limit.per_s * large_job.block_kib * 1024 for op, limit in large.items()}, notes)
    unit_kib, bounded = _unit_kib(measurements, small["write"].per_s, bytes_per_s, large_job)
    _note_a_cache(measurements, notes)
    _note_limits_of_the_emulator(measurements, max(reads_per_s, writes_per_s), bytes_per_s / _MIB, notes)
    sizes = tuple(sorted({size for _, size in measurements.light}))
    ppm = probabilities_ppm(min(measurements.light[op, PAGE_KIB].latency.total for op in small))
    tables = {
        op: tuple(
            tuple(table_ns(measurements.light[op, size].latency, _fio_ns(measurements, op, size), ppm))
            for size in sizes
        )
        for op in small
    }
    return Twin(
        reads_per_s=reads_per_s,
        writes_per_s=writes_per_s,
        iops_bucket_ms=small["write"].bucket_ms,
        bytes_per_s=round(bytes_per_s) if bounded else None,
        bytes_bucket_ms=large["write"].bucket_ms if bounded else 0,
        unit_kib=unit_kib,
        merge_sequential=measurements.sequential.per_s > MERGED_RATIO * small["read"].per_s,
        order="gamma" if small["write"].spread > SPREAD_OF_A_DRAWN_ORDER else "fifo",
        size_kib=sizes,
        probability_ppm=ppm,
        read_ns=tables["read"],
        write_ns=tables["write"],
        notes=tuple(notes),
    )


def _rates(reads_per_s: float, writes_per_s: float) -> tuple[int, int]:
    """One rate where they are one, else both to three figures: their product is the rate of the tokens."""
    mean = (reads_per_s + writes_per_s) / 2
    if abs(reads_per_s - writes_per_s) <= SAME_RATE * mean:
        return max(1, round(mean)), max(1, round(mean))
    return _rounded(reads_per_s), _rounded(writes_per_s)


def _rounded(rate: float) -> int:
    step: int = 10 ** max(0, math.floor(math.log10(max(rate, 1))) + 1 - _SIGNIFICANT)
    return max(1, round(rate / step) * step)


def _bytes_per_s(by_op: dict[Op, float], notes: list[str]) -> float:
    """The model has one limit on bytes: the lower one, which at least is not exceeded."""
    low, high = sorted(by_op.values())
    if high - low > UNIT_TOLERANCE * high:
        reads, writes = (by_op[op] / _MIB for op in ("read", "write"))
        notes.append(f"{reads:,.0f} MiB/s of reads and {writes:,.0f} of writes: the twin has the lower one for both")
        return low
    return (low + high) / 2


def _unit_kib(
    measurements: Measurements, small_per_s: float, bytes_per_s: float, large_job: FioJob
) -> tuple[int, bool]:
    """The unit of accounting, and whether there is a limit on bytes beside it."""
    ratio_kib = bytes_per_s / 1024 / small_per_s
    if ratio_kib >= large_job.block_kib * (1 - UNIT_TOLERANCE):
        return UNIT_KIB_MOST, False
    unit_kib = ambiguous_unit_kib(small_per_s, bytes_per_s / 1024)
    if unit_kib and measurements.mixed and counts_in_units(unit_kib, small_per_s, bytes_per_s, measurements.mixed):
        return unit_kib, False
    # Large requests came so fast that a unit must be this large at least.
    fitting = (unit for unit in (UNIT_KIB, 2 * UNIT_KIB) if ratio_kib <= unit * (1 + UNIT_TOLERANCE))
    return next(fitting, UNIT_KIB_MOST), True


def _fio_ns(measurements: Measurements, op: Op, block_kib: int) -> float:
    """What fio adds to a request beyond the path that the emulator takes off by itself."""
    null_ns = measurements.null_light[op, block_kib].latency.quantile_ns(0.5)
    return max(0.0, null_ns - measurements.path[op].ns(block_kib))


def _note_a_cache(measurements: Measurements, notes: list[str]) -> None:
    read_us = measurements.light["read", PAGE_KIB].latency.quantile_ns(0.5) / 1000
    if read_us < CACHED_US:
        notes.append(
            f"this looks like a cache: a read of {PAGE_KIB} KiB took {read_us:,.0f} us, and flash mostly needs more than"
            f" {CACHED_US:g}; behind a virtual disk it may be the host's memory. The figures hold while the data fit into it"
        )


def _note_limits_of_the_emulator(measurements: Measurements, per_s: float, mib_per_s: float, notes: list[str]) -> None:
    for op in measurements.alone:
        light_us, floor_us = (
            each[op, PAGE_KIB].latency.quantile_ns(0.5) / 1000 for each in (measurements.light, measurements.null_light)
        )
        if floor_us >= FLOOR_SHARE * light_us:
            notes.append(
                f"below its limits the disk answers a {op} in {light_us:,.0f} us and the emulator needs"
                f" {floor_us:,.0f}: the fastest requests may be slower on the twin"
            )
    if per_s > HELD_PER_S or mib_per_s > HELD_MIB_PER_S:
        notes.append(
            f"{per_s:,.0f} IOPS and {mib_per_s:,.0f} MiB/s: above {HELD_PER_S:,} and {HELD_MIB_PER_S:,} see in a run's"
            " report whether the emulator was late"
        )
