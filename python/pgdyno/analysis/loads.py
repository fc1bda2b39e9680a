"""What a load came to: its pace, its steps, and what each volume wrote meanwhile."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pgdyno.analysis.counters import CounterSamples
from pgdyno.analysis.paired import NamedFigure
from pgdyno.analysis.volume_figures import DATA, mean_ms, of_role, time_above_limit, volume_counters

from ..results import StoredLoad
from ..results.load_record import LoadRecord

POINTS_MAX = 240
"""Points of a course, as of a run's series: a page cannot show more of them apart."""


@dataclass(frozen=True)
class LoadedVolume:
    """One volume during a load. A figure is None when the load did not record what it needs."""

    role: str
    iops: float | None
    """Requests that it completed per second."""
    write_mib_per_s: float | None
    write_bytes: float | None
    """That were written from the beginning of the load to its end, the checkpoint's too."""
    read_ms_mean: float | None
    """Mean latency of its reads; None where there were none."""
    write_ms_mean: float | None
    time_above_limit: Mapping[str, float]
    """Limit -> share of the load in which requests waited for it; empty for volumes without limits."""
    course_mib_per_s: tuple[tuple[float, float], ...]
    """(seconds since filling began, MiB/s written), the middle of each bin."""


@dataclass(frozen=True)
class LoadFigures:
    """One load in numbers; everything in the time of its world."""

    load: StoredLoad

    @property
    def record(self) -> LoadRecord:
        """The load's record."""
        return self.load.record

    @property
    def seconds(self) -> float:
        """How long it took, with the checkpoint at its end."""
        return (self.record.end_ns - self.record.begin_ns) / 1e9

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(self.record.rows.values())

    @property
    def rows_per_s(self) -> float | None:
        """Over the whole load, keys and indexes included."""
        return self.rows / self.seconds if self.seconds > 0 else None

    @property
    def row_mib_per_s(self) -> float | None:
        """Rows as COPY sends them, over the time in which any were copied; None where the loader does not tell it."""
        copied_s = self.record.seconds.get("copy", 0.0)
        if self.record.row_bytes is None or copied_s <= 0:
            return None
        return self.record.row_bytes / 2**20 / copied_s

    @cached_property
    def volumes(self) -> tuple[LoadedVolume, ...]:
        """Those that were sampled, the data's first."""
        nones: dict[str, None] = {}
        for name in ("probe/volume", "probe/disk"):
            nones |= dict.fromkeys(self.load.table(name)["volume"].unique().to_pylist())
        roles = sorted(nones, key=lambda role: (role != DATA, role))
        return tuple(self._volume(role) for role in roles)

    def _volume(self, role: str) -> LoadedVolume:
        counters, span = volume_counters(self.load, role), (self.record.begin_ns, self.record.end_ns)
        written = counters.mean_rate("write_bytes", *span)
        emulated = of_role(self.load.table("probe/volume"), role).num_rows > 0
        return LoadedVolume(
            role=role,
            iops=counters.mean_rate("ops", *span),
            write_mib_per_s=None if written is None else written / 2**20,
            write_bytes=counters.delta("write_bytes", *span),
            read_ms_mean=mean_ms(counters, "read", span),
            write_ms_mean=mean_ms(counters, "write", span),
            time_above_limit=time_above_limit(counters, *span) if emulated and self.record.limited else {},
            course_mib_per_s=_course(counters, *span),
        )


def _write_ms_mean(load: LoadFigures) -> float | None:
    return next((volume.write_ms_mean for volume in load.volumes if volume.role == DATA), None)


LOAD_METRICS = {
    named_figure.name: named_figure
    for named_figure in (NamedFigure("load_write_ms_mean", "load: writes, mean, ms", "ms", _write_ms_mean),)
}
"""Figures of a load, as metrics are of a run, by name."""


def loads_of(loads: Iterable[LoadFigures], volume: str) -> list[LoadFigures]:
    """The loads on an arm's own volumes, in their order; ``volume`` is that of its data. None where several data sets were filled on such a volume."""
    figures = [load for load in loads if load.record.limited and load.record.volumes.get(DATA) == volume]
    return figures if len({figure.record.title for figure in figures}) == 1 else []


def _course(counters: CounterSamples, begin_ns: int, end_ns: int) -> tuple[tuple[float, float], ...]:
    """Bytes written in equal parts of the time that was sampled; a second each, more where there would be too many."""
    if len(counters.t_ns) < 2 or "write_bytes" not in counters.columns:
        return ()
    first_ns, last_ns = max(begin_ns, int(counters.t_ns[0])), min(end_ns, int(counters.t_ns[-1]))
    if last_ns <= first_ns:
        return ()
    bins = min(POINTS_MAX, max(1, math.floor((last_ns - first_ns) / 1e9)))
    edges = [first_ns + (last_ns - first_ns) * place // bins for place in range(bins + 1)]
    at = [counters.at("write_bytes", edge) for edge in edges]
    return tuple(
        (
            ((edges[place] + edges[place + 1]) / 2 - begin_ns) / 1e9,
            (at[place + 1] - at[place]) / 2**20 / ((edges[place + 1] - edges[place]) / 1e9),
        )
        for place in range(bins)
    )
