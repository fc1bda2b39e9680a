"""A world without PostgreSQL, devices or root: its figures are made up from the seed, in milliseconds.

Experiments, resumption, budgets, locks, reports and the command line are tested on it. It resolves arms and estimates times as
the emulated world does. Its records say ``fake``, so that no report passes its figures for measured ones.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pgdyno.experiment import Arm, Experiment
from pgdyno.probe.samples import ProbeTables
from pgdyno.workload.clients import Clients
from pgdyno.workload.outcome import Outcome
from pgdyno.world.base import PlannedRun, Preparation, PreparedWorld, RunOutcome, World
from pgdyno.world.resolved import ResolvedArm, emulated_arms

from ..base.specification import VolumeSpec
from ..results import record
from ..results.work_record import FailedCut, PowerCutsRecord
from ..workload.clients import clients_of
from ..workload.fill import Progress

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


SECOND_NS = 1_000_000_000
PAGE_BYTES = 8192
SERVICE_MS = 0.6
"""What a request takes below its volume's limit."""
CPU_SHARES = {
    "server": 0.30, "driver": 0.08, "daemon": 0.07, "probe": 0.005, "host_busy": 0.48, "host_steal": 0.0, "host_idle": 0.52,
}  # fmt: skip
"""Share of the machine's CPU time."""


@dataclass(frozen=True)
class Story:
    """What a run is said to have done."""

    spec: Clients
    rng: np.random.Generator
    begin_ns: int
    warmup_s: float
    measure_s: float
    tps: float
    requests_per_transaction: float
    iops_limits: dict[str, float]
    """By the role of the volume."""

    @property
    def measure_ns(self) -> tuple[int, int]:
        """Begin and end of the measure phase."""
        begin = self.begin_ns + round(self.warmup_s * SECOND_NS)
        return begin, begin + round(self.measure_s * SECOND_NS)

    @property
    def edges_ns(self) -> Any:
        """Whole seconds of each phase, with the ends of both."""
        import numpy as np

        begin, end = self.measure_ns
        parts = [np.arange(self.begin_ns, begin, SECOND_NS), np.arange(begin, end, SECOND_NS), np.array([end])]
        return np.concatenate(parts).astype(np.int64)

    @property
    def at_limit(self) -> bool:
        """Whether the data's volume is at its IOPS limit."""
        return self.tps * self.requests_per_transaction > 0.9 * self.iops_limits["data"]


def outcome(story: Story) -> Outcome:
    """What the driver reported."""
    import numpy as np

    from pgdyno.workload.histogram import document

    begin, end = story.measure_ns
    edges = story.edges_ns
    counts = np.maximum(0, np.rint(story.tps * np.diff(edges) / SECOND_NS)).astype(np.int64)
    latency = _latency(story, edges, counts)
    succeeded = int(counts[edges[:-1] >= begin].sum())
    return Outcome(
        phases=(
            record.RunPhase(name="warmup", begin_ns=story.begin_ns, end_ns=begin),
            record.RunPhase(name="measure", begin_ns=begin, end_ns=end),
        ),
        account=_account(succeeded),
        account_total=_account(int(counts.sum())),
        writes_total=0,
        uncounted_max=0,
        latency=latency,
        throughput=_throughput(story, edges, counts),
        service=None if story.spec.closed else latency,
        statement=None,
        histograms=document(latency, begin, end),
        checks=(),
        driver=record.DriverRecord(engine="native", threads=story.spec.threads),
        succeeded_by_type=_by_type(story, succeeded),
    )


def samples(story: Story) -> ProbeTables:
    """What the probes saw."""
    import numpy as np
    import pyarrow as pa

    t_ns = story.edges_ns
    elapsed = (t_ns - t_ns[0]).astype(np.int64)
    done = np.rint(story.tps * story.requests_per_transaction * elapsed / SECOND_NS).astype(np.int64)
    roles = list(story.iops_limits)
    share = {role: (2 / 3 if role == "data" and len(roles) > 1 else 1 / 3 if len(roles) > 1 else 1.0) for role in roles}
    parts: dict[str, list[pa.Table]] = {}
    for role in roles:
        of_volume = _volume(
            story, t_ns, elapsed, (done * share[role]).astype(np.int64), role == "data" and story.at_limit
        )
        for name, table in of_volume.items():
            parts.setdefault(name, []).append(table.append_column("volume", pa.array([role] * table.num_rows)))
    made = {name: pa.concat_tables(each) for name, each in parts.items()}
    return ProbeTables(made | {"probe/cpu": _cpu(t_ns, elapsed), "probe/checkpointer": _checkpoints(t_ns)})


def _by_type(story: Story, succeeded: int) -> dict[str, int]:
    """By the weights of the mix, the first type with what is left over."""
    if not story.spec.counts_types:
        return {}
    total = sum(weight for _, weight in story.spec.mix)
    counted = {name: succeeded * weight // total for name, weight in story.spec.mix}
    counted[story.spec.mix[0][0]] += succeeded - sum(counted.values())
    return counted


def _account(succeeded: int) -> record.Account:
    return record.Account(scheduled=succeeded, skipped=0, succeeded=succeeded, failed=0)


def _throughput(story: Story, edges: Any, counts: Any) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    nothing = np.zeros(len(counts), dtype=np.int64)
    columns = {
        "t_begin_ns": edges[:-1], "t_end_ns": edges[1:], "script": [story.spec.mix[0][0]] * len(counts),
        "transactions": counts, "failed": nothing, "skipped": nothing,
    }  # fmt: skip
    return pa.table(columns)


def _latency(story: Story, edges: Any, counts: Any) -> pa.Table:
    """A gamma law of shape 3, whose mean is Little's: clients over rate."""
    import numpy as np
    import pyarrow as pa

    from pgdyno.workload.histogram import bucket_us

    mean_us = story.spec.clients / max(story.tps, 1e-9) * 1e6
    rows: dict[str, list[Any]] = {name: [] for name in ("t_begin_ns", "t_end_ns", "script", "latency_us", "count")}
    for second, count in enumerate(counts.tolist()):
        values, times = np.unique(bucket_us(story.rng.gamma(3.0, mean_us / 3.0, count)), return_counts=True)
        rows["t_begin_ns"] += [int(edges[second])] * len(values)
        rows["t_end_ns"] += [int(edges[second + 1])] * len(values)
        rows["script"] += [story.spec.mix[0][0]] * len(values)
        rows["latency_us"] += values.tolist()
        rows["count"] += times.tolist()
    return pa.table(rows)


def _volume(story: Story, t_ns: Any, elapsed: Any, ops: Any, at_limit: bool) -> dict[str, pa.Table]:
    import numpy as np
    import pyarrow as pa

    reads = (ops * 2 // 3).astype(np.int64)
    writes = ops - reads
    each_ms = SERVICE_MS if not at_limit else story.spec.clients / story.requests_per_transaction / story.tps * 1e3
    time_ns = {"read": (reads * each_ms * 1e6).astype(np.int64), "write": (writes * each_ms * 1e6).astype(np.int64)}
    nothing = np.zeros(len(t_ns), dtype=np.int64)
    queue_ns = time_ns["read"] + time_ns["write"]
    counters = {
        "t_ns": t_ns, "read_ops": reads, "write_ops": writes, "read_bytes": reads * PAGE_BYTES,
        "write_bytes": writes * PAGE_BYTES, "flush_ops": ops // 6, "io_units": ops,
        "read_time_ns": time_ns["read"], "write_time_ns": time_ns["write"],
        "queue_length": nothing + round(float(queue_ns[-1]) / max(1, int(elapsed[-1]))), "queue_time_ns": queue_ns,
        "exceeded_iops_ns": elapsed if at_limit else nothing, "exceeded_throughput_ns": nothing,
        "read_modelled_ns": time_ns["read"], "write_modelled_ns": time_ns["write"],
        "late_read_ops": nothing, "late_write_ops": nothing, "overrun_ops": nothing, "daemon_cpu_ns": elapsed // 8,
    }  # fmt: skip
    disk = {
        "t_ns": t_ns, "reads": reads, "writes": writes, "read_bytes": reads * PAGE_BYTES,
        "write_bytes": writes * PAGE_BYTES, "read_time_ms": time_ns["read"] // 10**6,
        "write_time_ms": time_ns["write"] // 10**6, "in_flight": nothing + 8, "io_time_ms": elapsed // 10**6,
        "weighted_time_ms": queue_ns // 10**6,
    }  # fmt: skip
    return {
        "probe/volume": pa.table(counters),
        "probe/disk": pa.table(disk),
        "probe/volume_latency": _volume_latency(story, t_ns, {"read": reads, "write": writes}, each_ms),
    }


def _volume_latency(story: Story, t_ns: Any, ops: dict[str, Any], each_ms: float) -> pa.Table:
    """Histograms when measuring began and when it ended: every request took the mean."""
    import numpy as np
    import pyarrow as pa

    rows: dict[str, list[Any]] = {"t_ns": [], "op": [], "latency_ns": [], "count": []}
    edges = (int(np.searchsorted(t_ns, story.measure_ns[0])), len(t_ns) - 1)
    for name, counter in ops.items():
        for edge in edges:
            rows["t_ns"].append(int(t_ns[edge]))
            rows["op"].append(name)
            rows["latency_ns"].append(round(each_ms * 1e6))
            rows["count"].append(int(counter[edge]))
    return pa.table(rows)


def _cpu(t_ns: Any, elapsed: Any) -> pa.Table:
    import pyarrow as pa

    cores = 2
    parts = [
        pa.table({"t_ns": t_ns, "role": [role] * len(t_ns), "cpu_ns": (elapsed * cores * share).astype("int64")})
        for role, share in CPU_SHARES.items()
    ]
    return pa.concat_tables(parts)


def _checkpoints(t_ns: Any) -> pa.Table:
    import pyarrow as pa

    none = [0] * len(t_ns)
    instants = {"t_begin_ns": t_ns, "t_end_ns": t_ns + 2_000_000}
    return pa.table(instants | dict.fromkeys(("num_timed", "num_requested", "num_done", "buffers_written"), none))


LOAD_S = 1.0
"""What its preparation is estimated at."""
CPU_TPS = 4000.0
"""Transactions per second where no volume limits."""
REQUESTS_PER_TRANSACTION = 3.0
NOISE = 0.01
"""Relative standard deviation of a replicate."""
TRANSACTION_S = 0.002
"""What a transaction takes without waiting."""


class Fake(World):
    """Made-up figures."""

    kind = "fake"

    @classmethod
    def open(cls, experiment: Experiment, *, to_run: bool, yes_create: bool) -> Self:
        """See :meth:`World.open`."""
        del to_run, yes_create
        return cls(experiment, emulated_arms(experiment, to_run=False))

    def check(self) -> None:
        """Refuse loads, which need a server."""
        for arm in self.experiment.arms:
            if clients_of(arm.workload) is None:
                raise self.experiment.error(
                    arm, ("workload", "kind"), "a fake world has figures of transactions only", "use another kind"
                )

    def preparation(self, due: Sequence[Arm]) -> list[Preparation]:
        """One data set, which takes no time."""
        return [Preparation("load", "a data set that is made up", LOAD_S)] if due else []

    def clean_up(self, note: Callable[[str], None]) -> None:
        """It leaves nothing."""

    @contextlib.contextmanager
    def prepared(
        self, due: Sequence[Arm], directory: Path, step: Callable[[str], Progress], note: Callable[[str], None]
    ) -> Iterator[PreparedWorld]:
        """Nothing has to be made."""
        if due:
            step("load")(1.0, "made up")
            note("nothing loaded: the figures of this world are made up")
        yield self._measured

    def _measured(self, run: PlannedRun) -> RunOutcome:
        resolved = self.arms[run.cell.arm.index]
        run.progress(0.5, "make up")
        story = _story(run, resolved)
        run.watch.seconds |= dict(zip(("warmup", "measure"), resolved.arm.workload.phases_s, strict=True))
        return RunOutcome(
            outcome=outcome(story),
            samples=samples(story) | _events(resolved, story),
            checks=(record.Check(name="made up", ok=True, detail="no server was asked"),),
            settings=[{"name": name, "setting": value} for name, value in sorted(resolved.settings.items())],
            world=_world(resolved),
            postgres=resolved.postgres,
            client=record.ClientRecord(rtt_ms=resolved.arm.client.rtt_ms),
            power_cuts=_power_cuts(resolved, run.cell.block),
        )


def _story(run: PlannedRun, resolved: ResolvedArm) -> Story:
    """A run that its volume's IOPS, its clients or a CPU limit."""
    import numpy as np

    workload = clients_of(resolved.arm.workload)
    assert workload is not None
    rng = np.random.default_rng((run.workload_seed, run.cell.arm.index, run.cell.block))
    begin_ns = run.clock.instant_ns(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    limits = {role: _iops(spec) for role, spec in resolved.volumes.items()}
    most = min([limits["data"] / REQUESTS_PER_TRANSACTION, CPU_TPS, workload.clients / TRANSACTION_S])
    tps = most if workload.rate_per_s is None else min(most, workload.rate_per_s)
    return Story(
        spec=workload,
        rng=rng,
        begin_ns=begin_ns,
        warmup_s=workload.warmup_s,
        measure_s=workload.measure_s,
        tps=tps * (1 - NOISE * abs(float(rng.normal()))),
        requests_per_transaction=REQUESTS_PER_TRANSACTION,
        iops_limits=limits,
    )


FAKE_MODIFIED_USD = 42.0
"""Price a month of what a volume of this world becomes."""


def _events(resolved: ResolvedArm, story: Story) -> ProbeTables:
    """Each takes a tenth of a second."""
    from ..results.tables import from_rows

    begin_ns = story.begin_ns + int(story.warmup_s * 1e9)
    rows = [
        {
            "planned_s": event.at_s,
            "kind": event.do,
            "target": event.target,
            "words": event.words,
            "t_begin_ns": begin_ns + int(event.at_s * 1e9),
            "t_end_ns": begin_ns + int((event.at_s + 0.1) * 1e9),
            "result": "made up",
            "usd_per_month": FAKE_MODIFIED_USD if event.do == "modify" else None,
        }
        for event in resolved.arm.events
    ]
    return ProbeTables({"world/event": from_rows("world/event", rows)} if rows else {})


def _power_cuts(resolved: ResolvedArm, block: int) -> tuple[PowerCutsRecord, ...]:
    """Without full_page_writes one cut in ten fails where a write may tear; else none does."""
    table, off = resolved.arm.crash, bool(resolved.given_up)
    return tuple(
        PowerCutsRecord(
            reading=reading,
            cache=table.cache,
            cuts=table.cuts,
            failed=(failed := table.cuts // 10 if off and reading != "whole" else 0),
            by_check={"start": failed} if failed else {},
            first_failed=(
                FailedCut(id=f"made-up:{reading}:{block}:7", stratum="checkpoint", failures={"start": "made up"}),
            )
            if failed
            else (),
            strata={"checkpoint": table.cuts},
        )
        for reading in (table.reading if table.cuts else ())
    )


def _iops(volume: VolumeSpec) -> float:
    return float("inf") if volume.iops is None else volume.iops.maximum


def _world(resolved: ResolvedArm) -> record.WorldRecord:
    from ..results.record import HostRecord

    volumes = {
        role: record.VolumeRecord(spec=dict(spec.document), attach={}) for role, spec in resolved.volumes.items()
    }
    return record.WorldRecord(
        kind="fake",
        dilation=resolved.arm.world.dilation,
        volume=volumes["data"].spec,
        volumes=volumes,
        file_system=resolved.arm.world.file_system,
        mount_options=resolved.arm.world.mount_options,
        instance=resolved.instance,
        host=HostRecord.of_this_machine(),
    )
