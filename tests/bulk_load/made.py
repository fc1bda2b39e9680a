"""An experiment of loads that nobody ran: the analysis's made-up one, whose runs become loads."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..analysis.synthetic import GP3, GP3_WAITS, IO2BX, IO2BX_WAITS, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

S = 1_000_000_000
PLAN = Plan(arms=(replace(GP3, waits=GP3_WAITS), replace(IO2BX, waits=IO2BX_WAITS)), replicates=2, measure_s=30)
LIMITS = ({"writes to the volume": 0.8, "WAL": 0.2}, {"COPY on the server's CPU": 0.9, "unknown": 0.1})
"""What the loader said in each arm."""


def make_loads(root: Path, *, parallel: bool = False) -> Path:
    """Write the experiment below ``root`` and return its directory."""
    directory = make_experiment(root, PLAN)
    for path in sorted((directory / "runs").glob("*/run.json")):
        document = json.loads(path.read_text())
        path.write_text(json.dumps(_as_load(document, parallel)))
        for name in ("workload/latency.hdr.json", "workload/latency.parquet"):
            (path.parent / name).unlink()
    return directory


def _as_load(document: dict[str, Any], parallel: bool) -> dict[str, Any]:
    measure = next(phase for phase in document["phases"] if phase["name"] == "measure")
    # The arm with the faster volume takes half as long; each replicate a little more than the one before it.
    measure["end_ns"] -= (15 if document["arm_index"] else 0) * S - document["block"] * S // 10
    rows = document["account"]["succeeded"]
    limits = LIMITS[document["arm_index"]]
    tables = [
        {
            "table": name,
            "files": 1,
            "stored_bytes": 40 * rows // 2,
            "bytes": 40 * rows // 2,
            "rows": rows // 2 + (rows % 2 if name == "one" else 0),
            "chunks": 4,
            "connections": 2,
            "begin_ns": measure["begin_ns"],
            "end_ns": measure["end_ns"],
            "seconds": {"transfer": 10.0, "vacuum": 2.0, "checkpoint": 0.5},
            "limits": limits,
        }
        for name in ("one", "two")
    ]
    return document | {
        "phases": [measure],
        "workload": {
            "kind": "load",
            "seed": 7,
            "generate": "imdb",
            "scale": 0.01,
            "order": "parallel",
            "tables": ["one", "two"],
        },
        "bulk_load": {"parallel": parallel, "tables": tables, "checkpoint_s": 1.5},
        "driver": {"engine": "loader", "threads": 2, "cpu_ns": S, "elapsed_ns": 30 * S, "transactions": rows},
    }
