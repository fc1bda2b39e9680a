"""What a measured load asks of a volume: counted operations and bytes per second, their percentiles, and their course.

A provider counts an operation of up to ``unit_bytes`` as one (256 KiB on EBS's SSD, 1 MiB on its HDD) and a larger one as
several; a file has only the mean size of an interval's requests. So a request of that mean size is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

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
