"""What a measured load asks of a volume: counted operations and bytes per second, their percentiles, and their course.

A provider counts an operation of up to ``unit_bytes`` as one (256 KiB on EBS's SSD, 1 MiB on its HDD) and a larger one as
several; a file has only the mean size of an interval's requests. So a request of that mean size is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...base.errors import InputError
from ...base.specification import Charge, Rate, VolumeSpec
from .measured import Check, DeviceSamples

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Series: TypeAlias = "NDArray[np.float64]"
"""One value for each interval."""
MIB = 1 << 20
PERCENTILE = 99.0
"""Percentile of the load, which must be carried where nothing else is said."""
HEADROOM = 0.2
"""Margin above it where nothing else is said."""
AT_MAXIMUM = 0.95
"""Share of a burst's rate from which its limit, and not the one without credits, is what was exceeded."""
PAGE_BYTES = 8192
"""PostgreSQL's page. Requests begin at a page's beginning, so one of a page never spans two chunks."""


@dataclass(frozen=True)
class LoadCourse:
    """The course of a load, one value for each interval."""

    seconds: Series
    reads_per_s: Series
    writes_per_s: Series
    read_bytes_per_s: Series
    write_bytes_per_s: Series

    def charged(self, charge: Charge) -> tuple[Series, Series]:
        """Operations and bytes per second, as a volume counts them.

        Whether requests followed one another on the disk is in no file, so none is taken to be merged: the result may
        be too much, never too little.
        """
        import numpy as np

        reads = self.reads_per_s * _units(self.reads_per_s, self.read_bytes_per_s, charge.unit_bytes)
        writes = self.writes_per_s * _units(self.writes_per_s, self.write_bytes_per_s, charge.unit_bytes)
        size = self.read_bytes_per_s + self.write_bytes_per_s
        if charge.whole_units:
            size = np.maximum(size, (reads + writes) * charge.unit_bytes)
        return reads * charge.read_tokens + writes * charge.write_tokens, size

    def of_member(self, members: int, chunk_bytes: int) -> LoadCourse:
        """What one of ``members`` volumes of a RAID-0 sees, which take chunks of ``chunk_bytes`` by turns.

        A request of L bytes that begins at any page spans 1 + (L - page) / chunk chunks on average, and each piece is an
        operation of its own. Chunks are taken to be used evenly.
        """
        if members == 1:
            return self
        return LoadCourse(
            self.seconds,
            self.reads_per_s * _pieces(self.reads_per_s, self.read_bytes_per_s, chunk_bytes) / members,
            self.writes_per_s * _pieces(self.writes_per_s, self.write_bytes_per_s, chunk_bytes) / members,
            self.read_bytes_per_s / members,
            self.write_bytes_per_s / members,
        )


def _mean_bytes(ops_per_s: Series, bytes_per_s: Series) -> Series:
    import numpy as np

    return np.divide(bytes_per_s, ops_per_s, out=np.zeros_like(ops_per_s), where=ops_per_s > 0)


def _units(ops_per_s: Series, bytes_per_s: Series, unit_bytes: int) -> Series:
    import numpy as np

    return np.maximum(1.0, np.ceil(_mean_bytes(ops_per_s, bytes_per_s) / unit_bytes))


def _pieces(ops_per_s: Series, bytes_per_s: Series, chunk_bytes: int) -> Series:
    import numpy as np

    return 1.0 + np.maximum(0.0, _mean_bytes(ops_per_s, bytes_per_s) - PAGE_BYTES) / chunk_bytes


@dataclass(frozen=True)
class DemandSpread:
    """One figure over the time that was measured."""

    mean: float
    median: float
    at_percentile: float
    """What was not exceeded in the chosen share of the time."""
    maximum: float


@dataclass(frozen=True)
class Demand:
    """A load and what has to be carried of it."""

    measured: DeviceSamples
    load: LoadCourse
    percentile: float
    headroom: float
    """0.2: a limit must be 1.2 times the percentile."""
    iops: DemandSpread
    mib_per_s: DemandSpread
    read_share: float
    """Share of the requests that were reads."""
    request_kib: float
    """Mean size of a request."""
    least_iops: float = 0.0
    """What is wanted at least, whatever was measured: that of a limit of which the provider says that it was exceeded. 0: nothing known."""
    least_mib_per_s: float = 0.0
    """The same in MiB per second."""
    kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was computed of it, by who computes it."""

    @property
    def factor(self) -> float:
        """The factor for the load before it is compared with a limit."""
        return 1.0 + self.headroom

    @property
    def needed_iops(self) -> float:
        """Operations per second that a limit must allow, at the size they have."""
        return max(self.iops.at_percentile, self.least_iops) * self.factor

    @property
    def needed_mib_per_s(self) -> float:
        """MiB per second that a limit must allow."""
        return max(self.mib_per_s.at_percentile, self.least_mib_per_s) * self.factor


def demand_of(measured: DeviceSamples, percentile: float = PERCENTILE, headroom: float = HEADROOM) -> Demand:
    """What ``measured`` asks for at a percentile (50 to 100) with ``headroom`` (0.2 for 20 %) above it.

    :class:`InputError` when there is no sample, or nothing was done in any of them.
    """
    import numpy as np

    columns = [
        (
            sample.seconds,
            sample.read_ops_per_s,
            sample.write_ops_per_s,
            sample.read_bytes_per_s,
            sample.write_bytes_per_s,
        )
        for sample in measured.samples
    ]
    load = LoadCourse(*np.array(columns, dtype=np.float64).reshape(-1, 5).T)
    ops, size = load.reads_per_s + load.writes_per_s, load.read_bytes_per_s + load.write_bytes_per_s
    if not ops.any():
        raise InputError(f"{measured.device} did nothing while it was measured", remedy="measure it under its load")
    total = float(np.dot(load.seconds, ops))
    return Demand(
        measured,
        load,
        percentile,
        headroom,
        iops=spread(ops, load.seconds, percentile),
        mib_per_s=spread(size / MIB, load.seconds, percentile),
        read_share=float(np.dot(load.seconds, load.reads_per_s)) / total,
        request_kib=float(np.dot(load.seconds, size)) / total / 1024,
    )


def beyond(demand: Demand, present: VolumeSpec) -> Demand:
    """The demand with what the provider says beside the load: where a limit of the ``present`` volume was exceeded, at least that limit is
    wanted, whatever the means of the intervals are.
    """
    samples = demand.measured, demand.percentile
    return replace(
        demand,
        least_iops=_limit(present.iops, demand.iops) if _is_exceeded(*samples, "iops") else 0.0,
        least_mib_per_s=_limit(present.mib_per_s, demand.mib_per_s) if _is_exceeded(*samples, "throughput") else 0.0,
    )


def _is_exceeded(measured: DeviceSamples, percentile: float, check: Check) -> bool:
    """Whether the provider says so of more of the time than the percentile leaves out."""
    share = sum(sample.exceeded.get(check, 0.0) * sample.seconds for sample in measured.samples) / measured.seconds
    return share > max(0.0, 1 - percentile / 100)


def _limit(limit: Rate | None, done: DemandSpread) -> float:
    """The limit that was exceeded: what is left without credits, unless more than that was done."""
    if limit is None:
        return 0.0
    return limit.maximum if done.at_percentile >= AT_MAXIMUM * limit.maximum else limit.sustained


def spread(values: Series, seconds: Series, percentile: float) -> DemandSpread:
    """Mean, median, percentile and maximum, each interval weighted by its length."""
    import numpy as np

    mean = float(np.dot(values, seconds) / seconds.sum())
    return DemandSpread(
        mean, quantile(values, seconds, 50.0), quantile(values, seconds, percentile), float(values.max())
    )


def quantile(values: Series, seconds: Series, percentile: float) -> float:
    """The least value that was not exceeded in ``percentile`` per cent of the time.

    Nearest rank, not interpolated: with fewer than a hundred equal intervals the 99th percentile is the maximum, which is
    on the safe side.
    """
    import numpy as np

    order = np.argsort(values, kind="stable")
    shares = np.cumsum(seconds[order])
    # The sum's own rounding must not push the rank one further: a billionth of the time is less than any interval.
    place = int(np.searchsorted(shares, (percentile / 100.0 - 1e-9) * shares[-1]))
    return float(values[order][min(place, values.size - 1)])


def first_empty_s(rate: Rate, load: Series, seconds: Series) -> float | None:
    """Seconds until the bucket is empty, from full; ``None`` when it never is. What is above the maximum is not delivered.

    ``load`` has a value for each interval of length ``seconds``; the whole is repeated without end.
    """
    import numpy as np

    if not rate.bursts:
        return None if load.max() <= rate.sustained else 0.0
    net = np.minimum(rate.sustained - np.minimum(load, rate.maximum), rate.refill_max)
    sums = np.cumsum(net * seconds)
    highest = np.maximum(0.0, np.maximum.accumulate(sums))
    total_s, missing, repetitions = float(seconds.sum()), 0.0, 0
    for _ in range(4):  # first, second, a jump over those that are alike, and the one in which it happens
        course = np.maximum(missing, highest) - sums
        if course.max() > rate.capacity:
            place = int(np.argmax(course > rate.capacity))
            before = float(course[place - 1]) if place else missing
            within = (rate.capacity - before) / -float(net[place])
            return repetitions * total_s + float(seconds[:place].sum()) + within
        loss = float(course[-1]) - missing
        if repetitions and loss <= 0:
            return None
        jump = max(0, math.floor((rate.capacity - float(course.max())) / loss)) if repetitions else 0
        missing, repetitions = float(course[-1]) + jump * max(loss, 0.0), repetitions + 1 + jump
    return None


Limit = Literal["IOPS", "throughput"]
_ROUNDING = 1e-9
"""A limit is met although a sum in floating point says that a billionth is lacking."""


@dataclass(frozen=True)
class Fit:
    """The result of comparing a load with a limit on operations and one on bytes."""

    carries: bool
    """Whether what there is without credits is enough."""
    nearest: Limit
    """The limit that fails; else the one with the least room."""
    headroom: float
    """Room above the percentile at that limit, without credits: 0.2 is a limit of 1.2 times the percentile. Below 0: it is exceeded."""
    on_credits: bool
    """Whether the load takes credits."""
    empty_after_s: float | None
    """When credits run out if the load is repeated endlessly, from a full bucket; ``None``: never, or none are used."""


@dataclass(frozen=True)
class _Side:
    limit: Limit
    carries: bool
    headroom: float
    on_credits: bool
    empty_after_s: float | None


@dataclass(frozen=True)
class Requirement:
    """A demand as a limit's owner counts it: its course, and its percentile."""

    seconds: Series
    ops_per_s: Series
    bytes_per_s: Series
    ops_per_s_at_percentile: float
    bytes_per_s_at_percentile: float
    factor: float
    """What a limit must be of the percentile, 1.2 for 20 % of headroom."""

    @property
    def needed(self) -> tuple[float, float]:
        """Operations and bytes per second that limits must allow."""
        return self.ops_per_s_at_percentile * self.factor, self.bytes_per_s_at_percentile * self.factor


def asked_of(demand: Demand, charge: Charge, members: int = 1, chunk_kib: int | None = None) -> Requirement:
    """The part of ``demand`` for one of ``members`` that count it like this; their chunk is their unit if none is named.

    Sorting a day of seconds takes its time, so what was computed is kept with the demand.
    """
    chunk_bytes = charge.unit_bytes if chunk_kib is None else chunk_kib << 10
    key = (charge, members, chunk_bytes)
    if key not in demand.kept:
        load = demand.load.of_member(members, chunk_bytes)
        ops, size = load.charged(charge)
        ops_at, size_at = (quantile(series, load.seconds, demand.percentile) for series in (ops, size))
        least_ops, least_size = (least / members for least in (demand.least_iops, demand.least_mib_per_s * MIB))
        demand.kept[key] = Requirement(
            load.seconds,
            ops,
            size,
            max(ops_at, least_ops * charge.read_tokens),
            max(size_at, least_size),
            demand.factor,
        )
    requirement: Requirement = demand.kept[key]
    return requirement


def fit(iops: Rate, throughput: Rate, requirement: Requirement) -> Fit:
    """Hold what is asked against two rates."""
    sides = [
        _side("IOPS", iops, requirement.ops_per_s, requirement.ops_per_s_at_percentile, requirement),
        _side("throughput", throughput, requirement.bytes_per_s, requirement.bytes_per_s_at_percentile, requirement),
    ]
    nearest = min(sides, key=lambda side: (side.carries, side.headroom))
    ends = [side.empty_after_s for side in sides if side.empty_after_s is not None]
    return Fit(
        all(side.carries for side in sides),
        nearest.limit,
        nearest.headroom,
        any(side.on_credits for side in sides),
        min(ends, default=None),
    )


def _side(limit: Limit, rate: Rate, load: Series, at_percentile: float, requirement: Requirement) -> _Side:
    carries = at_least(rate.sustained, at_percentile * requirement.factor)
    room = _room(rate.sustained, at_percentile)
    if carries or not rate.bursts:
        return _Side(limit, carries, room, False, None)
    return _Side(limit, False, room, True, first_empty_s(rate, load * requirement.factor, requirement.seconds))


def at_least(limit: float, needed: float) -> bool:
    """Whether a limit is what is needed, but for the rounding of a sum."""
    return limit >= needed * (1 - _ROUNDING)


def _room(limit: float, value: float) -> float:
    return limit / value - 1 if value else math.inf
