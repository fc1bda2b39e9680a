"""An experiment of streams of queries that nobody ran: the analysis's made-up one, whose runs become streams."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from pgdyno.results import tables

from ..analysis.synthetic import GP3, IO2BX, Plan, make_experiment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

S = 1_000_000_000
QUERIES = (1, 6, 9)
WAITS = (("IO", "DataFileRead", 0.6), ("IO", "BufFileWrite", 0.25), ("IO", "BufFileRead", 0.5))
PLAN = Plan(arms=(replace(GP3, waits=WAITS), replace(IO2BX, waits=WAITS)), replicates=2, measure_s=30)
FASTER = 2.0
"""How many times faster the second arm's queries are."""


def make_streams(root: Path, change: Callable[[int, int, dict[str, Any]], Mapping[str, Any]] | None = None) -> Path:
    """Write the experiment below ``root`` and return its directory. ``change`` gets arm, replicate and row of each query."""
    directory = make_experiment(root, PLAN)
    for path in sorted((directory / "runs").glob("*/run.json")):
        document = json.loads(path.read_text())
        measure = next(phase for phase in document["phases"] if phase["name"] == "measure")
        arm, block = document["arm_index"], document["block"]
        rows = [row | dict(change(arm, block, row) if change else {}) for row in _rows(measure["begin_ns"], arm, block)]
        pq.write_table(tables.from_rows("workload/query", rows), path.parent / "workload" / "query.parquet")
        path.write_text(json.dumps(_as_streams(document, measure, rows)))
    return directory


def seconds_of(query: int, arm: int, block: int) -> float:
    """What a query takes: later replicates a little longer."""
    return query * (1 + block / 100) / (FASTER if arm else 1.0)


def _rows(begin_ns: int, arm: int, block: int) -> list[dict[str, Any]]:
    rows, at_ns = [], begin_ns
    for place, query in enumerate(QUERIES, 1):
        end_ns = at_ns + round(seconds_of(query, arm, block) * S)
        rows.append(
            {
                "stream": 0, "query_set": 1, "place": place, "query": query, "parameters": f'{{"block": "{block}"}}',
                "t_begin_ns": at_ns, "t_end_ns": end_ns, "rows": query, "rows_hash": 1000 * block + query,
                "temp_bytes": query << 20, "plan": "Seq Scan on lineitem", "error": "",
            }
        )  # fmt: skip
        at_ns = end_ns
    return rows


def _as_streams(document: dict[str, Any], measure: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = {row["query"]: (row["t_end_ns"] - row["t_begin_ns"]) / S for row in rows}
    measure["end_ns"] = rows[-1]["t_end_ns"]
    mean = math.exp(sum(map(math.log, seconds.values())) / len(seconds))
    account = {"scheduled": 3, "skipped": 0, "succeeded": 3, "rolled_back": 0, "failed": 0}
    return document | {
        "phases": [measure],
        "workload": {
            "kind": "tpch", "seed": 7, "degree": 8, "profile": "spec", "scale_factor": 0.1, "clients": 2, "query_sets": 1,
            "queries": list(QUERIES), "limit_s": 60.0, "driver_cpus": None,
        },
        "account": account,
        "metric": "geomean_s",
        "streams": {
            "geometric_mean_s": mean,
            "query_s": {str(query): number for query, number in seconds.items()},
            "stream_s": {"0": sum(seconds.values())},
            "temp_bytes": {str(row["query"]): row["temp_bytes"] for row in rows},
        },
        "driver": {"engine": "streams", "threads": 2, "cpu_ns": S // 100, "elapsed_ns": 16 * S, "transactions": 3},
    }  # fmt: skip
