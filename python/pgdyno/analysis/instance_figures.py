"""The figures of one run's instance: what its limits to all of its volumes together did in the measure phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.analysis.counters import CounterSamples
from pgdyno.analysis.volume_figures import time_above_limit

from ..results import StoredRun

_RESERVES = {"iops": "iops_balance_ppm", "throughput": "throughput_balance_ppm"}


@dataclass(frozen=True)
class InstanceFigures:
    """The instance of one run, seen from its volumes. A figure is None when the run did not record what it needs."""

    iops: float | None
    """Requests that passed the instance per second, those above 256 KiB in pieces."""
    mib_per_s: float | None
    time_above_limit: Mapping[str, float]
    """Limit (``iops``, ``throughput``) -> share of the phase in which the first request in line waited for it."""
    reserve: Mapping[str, float]
    """Limit with a maximum above its baseline -> what was left of its reserve when the phase ended, 0 to 1."""


def instance_figures(run: StoredRun) -> InstanceFigures | None:
    """Reduce the instance's counters to its figures; None where it has no limits, or nobody asked."""
    table = run.table("probe/instance")
    if not table.num_rows:
        return None
    measure, counters = run.record.measure, CounterSamples.of(table)
    span = (measure.begin_ns, measure.end_ns)
    size = counters.mean_rate("bytes", *span)
    return InstanceFigures(
        iops=counters.mean_rate("ops", *span),
        mib_per_s=None if size is None else size / 2**20,
        time_above_limit=time_above_limit(counters, *span),
        reserve=_reserve(counters, *span),
    )


def _reserve(counters: CounterSamples, begin_ns: int, end_ns: int) -> dict[str, float]:
    if not counters.covers(begin_ns, end_ns):
        return {}
    left = {limit: counters.at(name, end_ns) / 1e6 for limit, name in _RESERVES.items() if name in counters.columns}
    return {limit: share for limit, share in left.items() if share == share}  # a limit without a reserve is NaN
