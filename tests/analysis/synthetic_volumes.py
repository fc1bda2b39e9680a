"""The tables of the volumes of an experiment that was not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .synthetic_parts import FAILURE_PERCENT, IO_PER_TRANSACTION, PAGE_BYTES, SECOND_NS, WARMUP_S, array_of

if TYPE_CHECKING:
    from pgdyno.results import RunWriter

    from .synthetic import Arm


def write_volumes(
    writer: RunWriter, arm: Arm, begin: int, transactions: np.ndarray[Any, Any], rng: np.random.Generator
) -> None:
    """The tables of every volume, one below the other."""
    tables: dict[str, list[pa.Table]] = {}
    log_share = 1 / 3 if arm.others else 0.0
    shares = [("data", arm, 1 - log_share), *((role, other, log_share) for role, other in arm.others)]
    for role, volume, share in shares:
        reads_share = 2 / 3 if role == "data" else 0.0
        for name, table in _volume(volume, begin, transactions * share, reads_share, rng).items():
            column = pa.array([role] * table.num_rows, pa.string())
            tables.setdefault(name, []).append(table.append_column("volume", column))
    for name, parts in tables.items():
        writer.table(name, pa.concat_tables(parts))


def _volume(
    arm: Arm, begin: int, transactions: np.ndarray[Any, Any], reads_share: float, rng: np.random.Generator
) -> dict[str, pa.Table]:
    t_ns = begin + np.arange(len(transactions) + 1) * SECOND_NS + rng.integers(0, 200_000, len(transactions) + 1)
    ops = np.concatenate([[0], np.cumsum(np.rint(transactions * IO_PER_TRANSACTION))]).astype(np.int64)
    reads = (ops * reads_share + 1e-6).astype(np.int64)
    writes = ops - reads
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
        "read_modelled_ns": (reads * arm.read_ms * 1e6).astype(np.int64),
        "write_modelled_ns": (writes * arm.write_ms * 1e6).astype(np.int64),
        "late_read_ops": (reads * arm.late_share).astype(np.int64),
        "late_write_ops": (writes * arm.late_share).astype(np.int64),
        "overrun_ops": (ops * arm.overrun_share).astype(np.int64),
        "daemon_cpu_ns": elapsed // 8,
    }
    members = _members(arm, columns)
    kept = [second for second in range(len(t_ns)) if second not in arm.lost_seconds]
    disk = {
        "t_ns": t_ns,
        "reads": reads,
        "writes": writes,
        "read_bytes": reads * PAGE_BYTES,
        "write_bytes": writes * PAGE_BYTES,
        "read_time_ms": (reads * arm.read_ms * arm.device_share).astype(np.int64),
        "write_time_ms": (writes * arm.write_ms * arm.device_share).astype(np.int64),
        "in_flight": np.full(len(t_ns), arm.in_flight),
        "io_time_ms": elapsed // 1_000_000,
        "weighted_time_ms": queue_ns // 1_000_000,
    }
    return {
        "probe/volume": pa.table(columns).take(kept),
        "probe/disk": pa.table(disk),
        "probe/volume_latency": _volume_latency(arm, t_ns, reads, writes, rng),
    } | ({} if members is None else {"probe/member": members})


def _members(arm: Arm, volume: dict[str, Any]) -> pa.Table | None:
    """Each has its part of the array's requests; the last takes twice the time."""
    count = columns_of(arm)
    if not count:
        return None
    at = [WARMUP_S, len(volume["t_ns"]) - 1]
    rows = []
    for member in range(count):
        slower = 2 if member == count - 1 else 1
        counted = {
            name: volume[name][at] // count * (slower if name.endswith("_time_ns") else 1)
            for name in ("read_ops", "write_ops", "read_time_ns", "write_time_ns")
        }
        exceeded = {name: volume[name][at] for name in ("exceeded_iops_ns", "exceeded_throughput_ns")}
        rows.append(pa.table({"t_ns": volume["t_ns"][at], "member": [member] * 2, **counted, **exceeded}))
    return pa.concat_tables(rows)


def columns_of(arm: Arm) -> int:
    """Columns of the arm's array, 0 without one."""
    return int(arm.spec.partition("x")[0]) if arm.spec[:1].isdigit() else 0


def _volume_latency(arm: Arm, t_ns: Any, reads: Any, writes: Any, rng: np.random.Generator) -> pa.Table:
    rows: dict[str, list[Any]] = {"t_ns": [], "op": [], "latency_ns": [], "count": []}
    for operation, mean_ms, counter in (("read", arm.read_ms, reads), ("write", arm.write_ms, writes)):
        shape = rng.gamma(2.0 if arm.above_iops > 0.5 else 30.0, 1.0, 4000)
        values = np.rint(shape / shape.mean() * mean_ms * 1e6 / 20_000) * 20_000
        for instant in (WARMUP_S, len(t_ns) - 1):
            # The histogram of warm-up is ten times slower, so that a forgotten subtraction shows.
            warm, measured = int(counter[WARMUP_S]), int(counter[instant] - counter[WARMUP_S])
            drawn = np.bincount(rng.integers(0, len(values), measured), minlength=len(values))
            result, place = np.unique([mean_ms * 1e7, *values[drawn > 0]][not warm :], return_inverse=True)
            counts = np.bincount(place, [warm, *drawn[drawn > 0]][not warm :]).astype(np.int64)
            rows["t_ns"] += [int(t_ns[instant])] * len(result)
            rows["op"] += [operation] * len(result)
            rows["latency_ns"] += result.astype(np.int64).tolist()
            rows["count"] += counts.tolist()
    if arm.late_by_us:
        for operation, counter in (("read lateness", reads), ("write lateness", writes)):
            for instant in (WARMUP_S, len(t_ns) - 1):
                requests = int(counter[instant])
                late = round(requests * arm.late_share)
                rows["t_ns"] += [int(t_ns[instant])] * 2
                rows["op"] += [operation] * 2
                rows["latency_ns"] += [0, int(arm.late_by_us * 1000)]
                rows["count"] += [requests - late, late]
    return pa.table(rows)


def spec_of(arm: Arm) -> dict[str, Any]:
    columns = columns_of(arm)
    return {
        "spec": arm.spec,
        "type": arm.kind,
        "title": f"Amazon EBS {arm.kind}",
        "size_bytes": arm.size_gib * 2**30,
        "limits": {"iops": arm.iops_limit, "throughput_mib_per_s": 125},
        "burst": {"iops": arm.burst_iops, "throughput_mib_per_s": None},
        "accounting_unit_kib": 256,
        "usd_per_month": arm.usd_per_month,
        "price_region": "us-east-1",
        "durability": "99.8-99.9 %",
        "params": {},
        "annual_failure_rate_percent": None if columns else FAILURE_PERCENT.get(arm.kind),
        "volatile": arm.kind == "instance-store",
        "array": array_of(columns, FAILURE_PERCENT.get(arm.kind)) if columns else None,
    }
