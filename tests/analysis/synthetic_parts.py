"""What an experiment that nobody ran has of arrays and instances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

SECOND_NS = 1_000_000_000
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
