"""Fills a database by pgdyno's own engine: parallel COPY, tables equal to those of the originals.

``pgdyno-engine fill`` makes each table in the transaction of its COPY, with FREEZE. When it fails, or is interrupted,
it removes what it has made.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pgdyno.workload.kind.base import LoadManner
from pgdyno.workload.loaded import LoadMoment, LoadOutcome, LoadStep, Progress, checkpoint
from pgdyno.workload.server import Server
from pgdyno.workload.tables import Tables

from ..base import engine
from ..base.errors import EngineError

_SHARE_CHECKPOINT = 0.97
"""Share of the progress bar, as measured at scale 20: the checkpoint is the rest."""


def fill(
    server: Server,
    tables: Tables,
    progress: Progress | None = None,
    *,
    connections: int | None = None,
    split: bool = False,
    manner: LoadManner = "copy",
    replace: bool = True,
    seed: int = 1,
    log: Path | None = None,
    on_start: Callable[[int], None] | None = None,
) -> LoadOutcome:
    """Create and fill the tables, VACUUM ANALYZE them, add keys and indexes, checkpoint (if the role may).

    ``connections`` work at a time (default: as many as this machine has cores), each on a table of its own; with
    ``split`` several on one large table, whose rows are then frozen by a vacuum and not as they are written. The ``manner``
    `hammerdb` has keys first and small batches with a commit each. Without
    ``replace`` tables that are there already are an error, and nothing is dropped. ``log`` receives what the engine said, ``on_start`` its process id.

    :class:`~pgdyno.base.errors.InputError` for what the server refuses; nothing that was made is left then.
    """
    document = {
        "tables": tables.document(),
        "connections": connections or default_connections(),
        "split": split,
        "manner": manner,
        "replace": replace,
        "seed": seed,
    }
    documents = _follow(server, document, progress, on_start)
    if log is not None:
        log.write_text("".join(json.dumps(line) + "\n" for line in documents))
    if progress is not None:
        progress(_SHARE_CHECKPOINT, "checkpoint")
    outcome = _outcome(documents, checkpoint(server))
    if progress is not None:
        progress(1.0, "loaded")
    return outcome


def drop(server: Server, tables: Tables, *, connections: int | None = None) -> float:
    """Remove the tables, whether they are there or not: sysbench's ``cleanup``. Returns the seconds that it took."""
    document = {"tables": tables.document(), "connections": connections or default_connections(), "action": "drop"}
    summary = _follow(server, document, None, None)[-1]["summary"]
    return float(summary["end_ns"] - summary["begin_ns"]) / 1e9


def default_connections() -> int:
    """As many as this process may use cores: a session of the server keeps one busy while it takes rows in."""
    return len(os.sched_getaffinity(0))


def described(line: Mapping[str, Any]) -> str:
    """What a line of progress tells, for a progress bar: rows while they are copied, else what is under way."""
    names = list(line["under_way"])
    if "copy" in names or not names:
        rate = f", {line['rows_per_s']:,.0f}/s" if line["rows_per_s"] else ""
        return f"{line['rows']:,} of {line['rows_all']:,} rows{rate}"
    return ", ".join(names)


def _follow(
    server: Server,
    document: Mapping[str, Any],
    progress: Progress | None,
    on_start: Callable[[int], None] | None,
) -> list[dict[str, Any]]:
    """Every line of the engine, the summary last."""
    results = []
    order = {"server": server.endpoint.named("pgdyno fill"), **document}
    with contextlib.closing(engine.lines(["fill"], order, on_start=on_start)) as lines:
        for line in lines:
            results.append(line)
            if progress is not None and "progress" in line:
                result = line["progress"]
                progress(_SHARE_CHECKPOINT * result["share"], described(result))
    if not results or "summary" not in results[-1]:
        raise EngineError("the engine ended without a summary", remedy="this is a bug in pgdyno")
    return results


def _outcome(documents: list[dict[str, Any]], finish: Mapping[str, float]) -> LoadOutcome:
    summary = documents[-1]["summary"]
    moments = (line["progress"] for line in documents if "progress" in line)
    steps = (line["step"] for line in documents if "step" in line)
    return LoadOutcome(
        seconds={what: ns / 1e9 for what, ns in summary["ns"].items()} | dict(finish),
        rows={table: int(count) for table, count in summary["rows"].items()},
        loader="native",
        sessions=int(summary["sessions"]),
        row_bytes=int(summary["bytes"]),
        digests=summary["digests"],
        steps=tuple(LoadStep(**step) for step in steps),
        moments=tuple(LoadMoment(moment["t_ns"], moment["rows"], moment["bytes"]) for moment in moments),
    )
