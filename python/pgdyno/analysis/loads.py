"""Loads: their pace and steps, what each volume wrote meanwhile, and whether the limit that the loader names holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pgdyno.analysis.arm import ArmSummary, mean_by_name, mean_known

from ..results import StoredLoad
from ..results.record import LoadRecord
from ..results.work_record import BulkLoadRecord
from .binding.rules import Limit
from .figures import DATA, CounterSamples, mean_ms, of_role, time_above_limit, volume_counters
from .ratio import NamedFigure
from .run import RunFigures
from .statistics import Estimate, t_interval

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


UNKNOWN = "unknown"
"""What the loader says when its sessions were not sampled."""
_OF_VOLUMES: frozenset[Limit] = frozenset(
    {"volume_iops", "volume_throughput", "burst_bucket", "instance_bandwidth", "volume_latency", "checkpoints"}
)
_OF_CLIENTS: frozenset[Limit] = frozenset({"client", "harness"})
_MEANS: dict[str, frozenset[Limit]] = {
    "writes to the volume": _OF_VOLUMES,
    "reads of the volume": _OF_VOLUMES,
    "WAL": _OF_VOLUMES | {"commit_latency", "locks"},
    "COPY on the server's CPU": frozenset({"server_cpu"}),
    "the client": _OF_CLIENTS,
    "reading the file": _OF_CLIENTS,
    "decompression": _OF_CLIENTS,
    "extension lock": frozenset({"locks"}),
    "pages of indexes": frozenset({"locks"}),
    "locks of others": frozenset({"locks"}),
}
"""What the loader says -> limits of the other verdict that mean the same. Waiting for WAL is waiting for its volume, for the
flush at a commit, or for the latch that another session holds meanwhile."""
_INDEXES_ON_CPU = "COPY and "
"""How it begins to say that the server's CPU is busy with indexes too."""


@dataclass(frozen=True)
class RunLoad:
    """The load of one run, in the time of its world."""

    run: RunFigures
    record: BulkLoadRecord

    @property
    def seconds(self) -> float:
        """From the word go to the end of the checkpoint."""
        return self.run.record.measure.seconds

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(table.rows for table in self.record.tables)

    @property
    def input_bytes(self) -> int:
        """Size of all files, uncompressed."""
        return sum(table.bytes for table in self.record.tables)

    @property
    def connections(self) -> int:
        """Sessions that copied at a time, at the end of each table's load; their sum where tables load in parallel."""
        each = [table.connections for table in self.record.tables]
        return sum(each) if self.record.parallel else max(each, default=0)

    @cached_property
    def steps_s(self) -> dict[str, float]:
        """Step -> seconds of all tables together; of tables at once the longest one's."""
        steps: dict[str, list[float]] = {}
        for table in self.record.tables:
            for step, seconds in table.seconds.items():
                steps.setdefault(step, []).append(seconds)
        values = {step: max(each) if self.record.parallel else math.fsum(each) for step, each in steps.items()}
        commits = values.pop("checkpoint", 0.0)
        whole = commits + (self.record.checkpoint_s or 0.0)
        return {**values, "checkpoint": whole}

    @cached_property
    def limits(self) -> dict[str, float]:
        """What the loader said that bound while it copied -> share of its seconds, the largest first."""
        spent: dict[str, float] = {}
        for table in self.record.tables:
            for name, share in table.limits.items():
                spent[name] = spent.get(name, 0.0) + share * max(table.seconds.get("transfer", 0.0), 1e-3)
        whole = math.fsum(spent.values())
        ordered = sorted(spent.items(), key=lambda item: -item[1])
        return {name: seconds / whole for name, seconds in ordered} if whole else {}

    @cached_property
    def written_bytes(self) -> float | None:
        """That reached the volumes; None where none was seen."""
        measure = self.run.record.measure
        grown = [
            volume_counters(self.run.run, role).delta("write_bytes", measure.begin_ns, measure.end_ns)
            for role in self.run.volumes
        ]
        known = [value for value in grown if value is not None]
        return math.fsum(known) if known else None


@dataclass(frozen=True)
class ArmLoad:
    """The loads of an arm's replicates."""

    runs: tuple[RunLoad, ...]

    @cached_property
    def seconds(self) -> Estimate:
        """Mean of the replicates, with its interval."""
        return t_interval([run.seconds for run in self.runs])

    @property
    def rows(self) -> int:
        """Rows that each run loads; all load the same."""
        return self.runs[0].rows

    @property
    def rows_per_s(self) -> float | None:
        """Over the whole load."""
        return mean_known([run.run.work_per_s for run in self.runs])

    @property
    def connections(self) -> int:
        """Sessions of the first replicate."""
        return self.runs[0].connections

    @property
    def input_mib_per_s(self) -> float | None:
        """Uncompressed input over the whole load."""
        return mean_known([run.input_bytes / 2**20 / run.seconds for run in self.runs if run.seconds > 0])

    @property
    def written_per_input_byte(self) -> float | None:
        """Bytes that reached the volumes for each byte of the files."""
        pairs = [(run.written_bytes, run.input_bytes) for run in self.runs]
        return mean_known([written / size for written, size in pairs if written is not None and size])

    @property
    def steps_s(self) -> dict[str, float]:
        """Step -> seconds, mean of the replicates."""
        return mean_by_name([run.steps_s for run in self.runs])

    @cached_property
    def limits(self) -> dict[str, float]:
        """What the loader said that bound -> share of its seconds, mean of the replicates, the largest first."""
        names = dict.fromkeys(name for run in self.runs for name in run.limits)
        means = {name: math.fsum(run.limits.get(name, 0.0) for run in self.runs) / len(self.runs) for name in names}
        return dict(sorted(means.items(), key=lambda item: -item[1]))

    @property
    def limit(self) -> str | None:
        """What bound most of the time by the loader's word; None where it does not know."""
        return next((name for name in self.limits if name != UNKNOWN), None)


def load_of(arm: ArmSummary) -> ArmLoad | None:
    """The load of an arm; None of other workloads."""
    runs = [replicate.figures for replicate in arm.replicates]
    loads = tuple(RunLoad(run, run.record.bulk_load) for run in runs if run.record.bulk_load is not None)
    return ArmLoad(loads) if loads else None


def agrees(text: str | None, limit: Limit | None) -> bool | None:
    """Whether what the loader said means the limit of the verdict; None where either of them says nothing."""
    if text is None or limit is None:
        return None
    if text.startswith(_INDEXES_ON_CPU):
        return limit == "server_cpu"
    return limit in _MEANS.get(text, frozenset())


def request_kib(iops: float | None, mib_per_s: float | None) -> float | None:
    """Mean size of a volume's requests."""
    return mib_per_s * 1024 / iops if iops and mib_per_s is not None else None


def shares_of(limits: Mapping[str, float], most: int = 2) -> list[tuple[str, float]]:
    """The largest shares, as many as say something."""
    return [(name, share) for name, share in list(limits.items())[:most] if share >= 0.1]
