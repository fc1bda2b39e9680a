"""What an experiment that nobody ran has of arrays and instances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

SECOND_NS = 1_000_000_000


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


def array_of_four() -> dict[str, Any]:
    """An array of four with its member's tables, which no reader wants to see."""
    table = [{"probability_ppm": ppm, "excess_ppm": 2 * ppm} for ppm in range(0, 1_000_000, 1000)]
    member = {"spec": "gp3:size=100GiB", "params": {"service_time": table}}
    return {"columns": 4, "copies": 1, "chunk_kib": 512, "multi_az_ms": None, "member": member}
