"""Parts of an experiment that nobody ran, which its arms share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pgdyno.results import RunWriter

    from .synthetic import Arm

SECOND_NS = 1_000_000_000
PAGE_BYTES = 8192
WARMUP_S = 10
IO_PER_TRANSACTION = 3.0
FAILURE_PERCENT = {"gp3": [0.1, 0.2], "io2bx": [0.001, 0.001]}
"""Published annual failure rates by type, low and high."""


def instance_counters(above_iops: float, begin: int, requests: np.ndarray[Any, Any], page_bytes: int) -> pa.Table:
    """The counters of an instance with a reserve of bandwidth that loses 1 % a second, and none of IOPS."""
    seconds = np.arange(len(requests) + 1)
    ops = np.concatenate([[0], np.cumsum(np.rint(requests))]).astype(np.int64)
    columns = {
        "t_ns": begin + seconds * SECOND_NS,
        "ops": ops,
        "bytes": ops * page_bytes,
        "exceeded_iops_ns": (seconds * SECOND_NS * above_iops).astype(np.int64),
        "exceeded_throughput_ns": np.zeros(len(seconds), dtype=np.int64),
        "iops_balance_ppm": pa.nulls(len(seconds), pa.int64()),
        "throughput_balance_ppm": 1_000_000 - seconds * 10_000,
    }
    return pa.table(columns)


def array_of(columns: int, failure_percent: list[float] | None) -> dict[str, Any]:
    """A RAID-0 with its member's tables, which no reader wants to see."""
    table = [{"probability_ppm": ppm, "excess_ppm": 2 * ppm} for ppm in range(0, 1_000_000, 1000)]
    params = {"service_time": table}
    member = {"spec": "gp3:size=100GiB", "params": params, "annual_failure_rate_percent": failure_percent}
    return {"columns": columns, "copies": 1, "chunk_kib": 512, "multi_az_ms": None, "member": member}


def io_rows(
    instants: dict[str, Any], page_bytes: int, backend: str, kind: str, reads: Any, writes: Any, fsyncs: Any
) -> pa.Table:
    """One row of pg_stat_io over time: absent until it counts something, as the probe's query leaves it out."""
    counted = (reads + writes + fsyncs) > 0
    names = {"backend_type": backend, "object": kind, "context": "normal"}
    texts = {name: [text] * len(reads) for name, text in names.items()}
    numbers = {
        "reads": reads, "read_bytes": reads * page_bytes, "writes": writes, "write_bytes": writes * page_bytes,
        "extends": reads * 0, "extend_bytes": reads * 0, "fsyncs": fsyncs,
    }  # fmt: skip
    return pa.table({**instants, **texts, **numbers}).filter(pa.array(counted))


def attach_facts() -> dict[str, Any]:
    """What a daemon says when its volume is ready."""
    return {
        "name": "synthetic",
        "base_overhead": {
            "read": {"fixed_ns": 23_000, "per_kib_ps": 150_000},
            "write": {"fixed_ns": 25_000, "per_kib_ps": 180_000},
        },
        "proofs": {"fuse_magic": True, "dio": 1, "scheduler": "none", "max_sectors_kb": 256},
    }


def service_times(latency: pa.Table, share: float) -> pa.Table:
    """The same transactions, each with a share of its response time."""
    place = latency.schema.get_field_index("latency_us")
    values = (latency["latency_us"].to_numpy() * share).astype(np.int64)
    return latency.set_column(place, "latency_us", pa.array(values))


def statement_times(texts: tuple[str, ...], begin_ns: int, end_ns: int, latency: pa.Table) -> pa.Table:
    """Each statement with all latencies, the first twice; a text may be there several times."""
    parts = []
    for number, text in enumerate(texts):
        count = latency["count"].to_numpy() * (2 if number == 0 else 1)
        rows = len(count)
        columns = {
            "t_begin_ns": [begin_ns] * rows,
            "t_end_ns": [end_ns] * rows,
            "number": [number] * rows,
            "statement": [text] * rows,
            "latency_us": latency["latency_us"],
            "count": count,
        }
        parts.append(pa.table(columns))
    return pa.concat_tables(parts)


SETTINGS = (
    ("shared_buffers", "65536", "8kB", "configuration file", "16384"),
    ("max_wal_size", "4096", "MB", "configuration file", "1024"),
    ("checkpoint_timeout", "300", "s", "default", "300"),
    ("cluster_name", "<script>alert('setting')</script>", None, "configuration file", ""),
    ("data_checksums", "on", None, "override", "on"),
    ("block_size", "8192", None, "default", "8192"),
    ("track_io_timing", "on", None, "configuration file", "off"),
    *((f"setting_{number:03d}", str(number), None, "default", str(number)) for number in range(370)),
)


def settings_table(version: str) -> pa.Table:
    """A server's settings: some that were chosen, and many that were not."""
    rows = [*SETTINGS, ("server_version", version, None, "default", version)]
    names = ("name", "setting", "unit", "source", "boot_val")
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})


def server_counters(writer: RunWriter, arm: Arm, begin: int, transactions: np.ndarray[Any, Any]) -> None:
    """The server's own counters: 1,800 bytes of WAL and two blocks read for each transaction, a hit rate of 90 %."""
    done = np.concatenate([[0], np.cumsum(transactions)]).astype(np.int64)
    t_ns = begin + np.arange(len(done)) * SECOND_NS
    instants = {"t_begin_ns": t_ns, "t_end_ns": t_ns + 2_000_000}
    wal = {"wal_records": done * 9, "wal_fpi": done // 10, "wal_bytes": done * 1800, "wal_buffers_full": done // 500}
    if arm.version < "18":
        wal["wal_sync"] = done // 4
    writer.table("probe/wal", pa.table({**instants, **wal}))
    database = {"blks_read": done * 2, "blks_hit": done * 18, "temp_bytes": done * 0, "deadlocks": done * 0}
    writer.table("probe/database", pa.table({**instants, **database}))
    if arm.version >= "16":
        rows = [
            ("client backend", "relation", done * 2, done // 5, done * 0),
            ("checkpointer", "relation", done * 0, done, done // 50),
            *([("client backend", "wal", done * 0, done // 4, done // 4)] if arm.version >= "18" else []),
        ]
        writer.table("probe/io", pa.concat_tables([io_rows(instants, PAGE_BYTES, *row) for row in rows]))


def wait_events(writer: RunWriter, arm: Arm, begin: int, seconds: int) -> None:
    """Ten looks a second: of the clients what was asked for, of the checkpointer that it sleeps."""
    if not arm.waits:
        return
    lost = round(10 * seconds * arm.lost_looks)
    cost = {
        "t_begin_ns": [begin], "t_end_ns": [begin + seconds * SECOND_NS], "probe": ["wait_events"],
        "samples": [10 * seconds - lost], "lost_samples": [lost], "answer_ns": [seconds * 6_000_000],
        "client_cpu_ns": [seconds * 2_000_000], "server_cpu_ns": [seconds * 4_000_000],
    }  # fmt: skip
    writer.table("probe/cost", pa.table(cost))
    kinds = [*((kind, event, "client backend", mean) for kind, event, mean in arm.waits),
             ("Activity", "CheckpointerMain", "checkpointer", 1.0)]  # fmt: skip
    looks = 10 * seconds
    t_ns = begin + np.arange(looks) * (SECOND_NS // 10)
    parts = [
        pa.table(
            {
                "t_begin_ns": t_ns, "t_end_ns": t_ns + 1_500_000, "wait_event_type": [kind] * looks,
                "wait_event": [event or "CPU"] * looks, "backend_type": [backend] * looks,
                # Whole sessions whose mean is what was asked for.
                "count": np.diff(np.floor(np.arange(looks + 1) * mean + 1e-9)).astype(np.int64),
            }
        )
        for kind, event, backend, mean in kinds
    ]  # fmt: skip
    writer.table("probe/wait_events", pa.concat_tables(parts))
