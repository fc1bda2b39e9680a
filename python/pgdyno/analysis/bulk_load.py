"""A load that was measured: what it took, by step, what it wrote, and whether what the loader said of its limit holds.

The loader names a limit each second while it copies, from where its sessions wait (``pgdyno load`` shows it to its user). The verdict
of :mod:`pgdyno.analysis.binding` is another one, from what the host and the server counted over the whole run. The report gives
both, and says whether they mean the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pgdyno.analysis.arm import ArmSummary, mean_by_name, mean_known
from pgdyno.analysis.binding.limits import Limit
from pgdyno.analysis.interval import Estimate, t_interval
from pgdyno.analysis.run_figures import RunFigures
from pgdyno.analysis.volume_figures import volume_counters

from ..results.work_record import BulkLoadRecord

UNKNOWN = "unknown"
"""What the loader says when its sessions were not sampled."""
_OF_VOLUMES: frozenset[Limit] = frozenset(
    {"volume_iops", "volume_throughput", "burst_bucket", "instance_bandwidth", "volume_latency", "checkpoints"}
)
_OF_CLIENTS: frozenset[Limit] = frozenset({"client", "laboratory"})
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
