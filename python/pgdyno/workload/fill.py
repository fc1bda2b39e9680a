"""Filling of a database with a workload's tables: by pgdyno's own engine with parallel COPY, or by ``pgbench -i``.

``pgdyno-engine fill`` makes each table in the transaction of its COPY, with FREEZE. When it fails, or is interrupted,
it removes what it has made.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from pgdyno.workload.server import Server
from pgdyno.workload.tables import ROWS_PER_SCALE, PgbenchTables, Tables

from ..base import engine
from ..base.errors import EngineError, PgdynoError
from .kind import LoadManner
from .outcome import LoadMoment, LoadOutcome, LoadStep, Progress, checkpoint
from .server import environment, pgbench_path

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
    """Text of a progress line: rows while they are copied, otherwise the present step."""
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


__all__ = ["LoadOutcome", "Progress", "drop", "fill", "load", "progress_of", "step_seconds"]

_STEPS = "dtgvp"
_ROWS_DONE = re.compile(r"(\d+) of (\d+) tuples .* of pgbench_accounts done")
_SECONDS = re.compile(r"([a-z -]+?) (\d+\.\d+) s")
# Shares of the whole as measured at scales 20 to 100; they only place the bar.
_SHARE_ROWS = 0.62
_SHARE_VACUUM = 0.68


def load(
    server: Server,
    tables: PgbenchTables,
    progress: Progress | None = None,
    *,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    replace: bool = True,
    on_start: Callable[[int], None] | None = None,
) -> LoadOutcome:
    """Create and fill the tables, VACUUM ANALYZE them, checkpoint (if the role may), and count every row.

    ``env`` is what pgbench needs beside the connection string. Without ``replace`` tables that are there already are an
    error, and nothing is dropped. ``on_start`` gets pgbench's process id. Raises :class:`PgdynoError` with the end of
    pgbench's messages when it fails or a count is wrong.
    """
    report = progress or (lambda _share, _text: None)
    steps = _STEPS if replace else _STEPS.removeprefix("d")
    if tables.foreign_keys:
        steps += "f"
    arguments = [str(pgbench_path(server)), "-i", "-I", steps, "-s", str(tables.scale), "-F", str(tables.fillfactor)]
    for option, name in (("tablespace", tables.tablespace), ("index-tablespace", tables.index_tablespace)):
        if name is not None:
            arguments.append(f"--{option}={name}")
    process = subprocess.Popen(
        engine.child(arguments),
        env=environment(server, env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        if on_start is not None:
            on_start(process.pid)
        messages = _pgbench_lines(process, report)
        code = process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if log is not None:
        log.write_text("\n".join(messages) + "\n")
    if code != 0:
        raise PgdynoError(
            f"pgbench could not load scale {tables.scale} (exit code {code}): {' / '.join(messages[-3:])}",
            remedy="look at the server's log; a full volume is the usual cause",
        )
    report(0.97, "checkpoint")
    outcome = LoadOutcome(step_seconds(messages[-1]) | checkpoint(server), _count_rows(server, tables))
    report(1.0, "loaded")
    return outcome


def progress_of(line: str) -> tuple[float, str] | None:
    """(share, text) that a line of ``pgbench -i`` tells, or None."""
    if match := _ROWS_DONE.search(line):
        done, total = int(match[1]), int(match[2])
        return _SHARE_ROWS * done / total, f"{done:,} of {total:,} accounts"
    if line.startswith("vacuuming"):
        return _SHARE_ROWS, "vacuum"
    if line.startswith("creating primary keys"):
        return _SHARE_VACUUM, "primary keys"
    return None


def step_seconds(line: str) -> dict[str, float]:
    """Seconds by step from pgbench's last line, ``done in 2.54 s (vacuum 0.14 s, ...)``."""
    inside = line.partition("(")[2]
    return {name.strip(): float(seconds) for name, seconds in _SECONDS.findall(inside)}


def _pgbench_lines(process: subprocess.Popen[bytes], report: Progress) -> list[str]:
    """Output of pgbench until it ends, with the last of its progress lines."""
    assert process.stdout is not None
    messages: list[str] = []
    for line in _lines(process.stdout):
        shown = progress_of(line)
        if shown is None or not messages or not _ROWS_DONE.search(messages[-1]):
            messages.append(line)
        else:
            messages[-1] = line
        if shown is not None:
            report(*shown)
    return messages


def _lines(stream: IO[bytes]) -> Iterator[str]:
    """Lines that end in a newline, or in a carriage return as pgbench writes its progress to a terminal."""
    for raw in stream:
        for part in raw.decode(errors="replace").replace("\r", "\n").split("\n"):
            if part.strip():
                yield part.strip()


def _count_rows(server: Server, tables: PgbenchTables) -> dict[str, int]:
    import psycopg
    from psycopg import sql

    rows = {}
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        for table in (*ROWS_PER_SCALE, "pgbench_history"):
            query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
            result = connection.execute(query).fetchone()
            assert result is not None
            rows[table] = int(result[0])
            wanted = ROWS_PER_SCALE.get(table, 0) * tables.scale
            if rows[table] != wanted:
                raise PgdynoError(
                    f"{table} has {rows[table]:,} rows after loading, not {wanted:,}", remedy="fill the tables again"
                )
    return rows
