"""Cumulative counters of one volume, of a run or of a volume that is attached now, under the same names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...analysis.figures import CounterSamples, of_role, volume_roles, volume_spec
from ...base.errors import InputError
from ...machine.volume import AttachedVolume
from ...results import StoredRun
from ...results.record import Anchor

if TYPE_CHECKING:
    import numpy as np


_OF_A_DEVICE = {
    "read_ops": ("reads", 1),
    "write_ops": ("writes", 1),
    "read_bytes": ("read_bytes", 1),
    "write_bytes": ("write_bytes", 1),
    "read_time_ns": ("read_time_ms", 1_000_000),
    "write_time_ns": ("write_time_ms", 1_000_000),
    "queue_time_ns": ("weighted_time_ms", 1_000_000),
    "busy_ns": ("io_time_ms", 1_000_000),
}
"""Counter -> column of ``probe/disk`` and its unit in the counter's: a device that was there has no others."""


@dataclass(frozen=True)
class CounterHistory:
    """What one volume had counted, at instants of CLOCK_MONOTONIC."""

    volume: str
    """Its role in a run (``data``, ``wal``, ...), or its name."""
    spec: Mapping[str, Any]
    """The resolved specification; empty for a device that was there."""
    anchor: Anchor
    counters: CounterSamples
    earlier: tuple[tuple[int, Mapping[str, Any]], ...] = ()
    """What the volume was before each of its modifications, with the instant until which, the first one first."""

    @property
    def begin_ns(self) -> int:
        """The first instant."""
        return int(self.counters.t_ns[0])

    @property
    def end_ns(self) -> int:
        """The last instant."""
        return int(self.counters.t_ns[-1])

    def spec_at(self, t_ns: int) -> Mapping[str, Any]:
        """What the volume was at an instant."""
        return next((spec for until_ns, spec in self.earlier if t_ns <= until_ns), self.spec)

    def at(self, name: str, t_ns: int) -> float | None:
        """Value of a counter at an instant; None when it was not sampled."""
        if name not in self.counters.columns:
            return None
        value = self.counters.at(name, t_ns)
        return None if math.isnan(value) else value

    def delta(self, name: str, begin_ns: int, end_ns: int) -> float | None:
        """Growth of a counter between two instants; None when it was not sampled."""
        begin, end = self.at(name, begin_ns), self.at(name, end_ns)
        return None if begin is None or end is None else end - begin


def of_run(run: StoredRun, volume: str | None = None) -> list[CounterHistory]:
    """The samples of every volume of a run, the data's first, or of one of them.

    A volume that was not emulated is read from its block device's statistics. :class:`InputError` when the run has no such volume
    or no samples.
    """
    roles = volume_roles(run)
    if volume is not None and volume not in roles:
        raise InputError(f"the run {run.record.run_id} has no volume `{volume}`", remedy=f"it has {', '.join(roles)}")
    histories = [_of_role(run, role) for role in ([volume] if volume is not None else roles)]
    samples = [history for history in histories if history is not None]
    if not samples:
        raise InputError(
            f"the run {run.record.run_id} has no samples of a volume",
            remedy="choose a run on an emulated volume, or one whose server's devices could be seen",
        )
    return samples


def of_volume(attached: AttachedVolume) -> CounterHistory:
    """The samples that the daemon of an attached volume keeps: each full minute of the last day, and now."""
    kept = attached.minutes()
    now = attached.stats()
    rows = [*kept["minutes"], {"t_ns": now["seen_ns"], "counters": now["counters"]}]
    # A daemon that is older than this command does not say it.
    earlier = tuple((int(item["until_ns"]), item["spec"]) for item in kept.get("earlier", ()))
    return CounterHistory(attached.name, attached.spec, Anchor(**kept["anchor"]), _counters(rows), earlier)


def _counters(rows: list[dict[str, Any]]) -> CounterSamples:
    """Rows of the daemon as columns; a counter that a volume does not have is NaN."""
    import numpy as np

    names = rows[-1]["counters"]
    columns = {
        name: np.array([math.nan if row["counters"][name] is None else row["counters"][name] for row in rows], float)
        for name in names
    }
    return CounterSamples(np.array([row["t_ns"] for row in rows], np.int64), columns)


def _of_role(run: StoredRun, role: str) -> CounterHistory | None:
    """The volume's own counters, else its device's; None when neither has two samples."""
    table = of_role(run.table("probe/volume"), role)
    if table.num_rows > 1:
        return CounterHistory(role, volume_spec(run, role), run.record.anchor, CounterSamples.of(table))
    device = of_role(run.table("probe/disk"), role)
    if device.num_rows < 2:
        return None
    columns = CounterSamples.of(device)
    return CounterHistory(
        role, volume_spec(run, role), run.record.anchor, CounterSamples(columns.t_ns, _as_a_volume(columns))
    )


def _as_a_volume(device: CounterSamples) -> dict[str, np.ndarray[Any, Any]]:
    """A device's counters under a volume's names and in its units."""
    return {name: device.columns[column] * unit for name, (column, unit) in _OF_A_DEVICE.items()}


_COUNTERS = {
    "total_read_ops": ("read_ops", 1),
    "total_write_ops": ("write_ops", 1),
    "total_read_bytes": ("read_bytes", 1),
    "total_write_bytes": ("write_bytes", 1),
    "total_read_time": ("read_time_ns", 1000),
    "total_write_time": ("write_time_ns", 1000),
    "ebs_volume_performance_exceeded_iops": ("exceeded_iops_ns", 1000),
    "ebs_volume_performance_exceeded_tp": ("exceeded_throughput_ns", 1000),
    "ec2_instance_ebs_performance_exceeded_iops": ("instance_exceeded_iops_ns", 1000),
    "ec2_instance_ebs_performance_exceeded_tp": ("instance_exceeded_throughput_ns", 1000),
    "volume_queue_length": ("queue_length", 1),
}
"""Key of the page -> counter of the daemon and its unit in the page's."""


def statistics(document: Mapping[str, Any]) -> dict[str, Any]:
    """The page of a volume, from what its daemon says. A volume that no instance limits never waited for one."""
    counters = document["counters"]
    page: dict[str, Any] = {key: (counters.get(name) or 0) // unit for key, (name, unit) in _COUNTERS.items()}
    for operation in ("read", "write"):
        page[f"{operation}_io_latency_histogram"] = histogram(document["histograms"][f"{operation}_latency_us_log2"])
    return page


def histogram(counts: Sequence[int]) -> dict[str, Any]:
    """Bins [0, 1), [1, 2), [2, 4), ... of microseconds with their counts."""
    bins = [
        {"lower": 0 if place == 0 else 2 ** (place - 1), "upper": 2**place, "count": count}
        for place, count in enumerate(counts)
    ]
    return {"num_bins": len(bins), "bins": bins}
