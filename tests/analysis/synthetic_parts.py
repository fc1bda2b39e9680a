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
