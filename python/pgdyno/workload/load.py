"""Fills a database with a workload's tables: by ``pgbench -i`` here, by pgdyno's own engine in :func:`fill`.

pgbench generates rows in the client (step ``g``), not in the server (``G``). Both write the same rows (compared by
digest); ``g`` copies with FREEZE, so no later visit has hint bits to set, and 2 million accounts took 1.6 s instead of
2.6 s on two cores.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

from pgdyno.workload.client import environment, pgbench_path
from pgdyno.workload.fill import drop, fill
from pgdyno.workload.loaded import LoadOutcome, Progress, checkpoint
from pgdyno.workload.server import Server
from pgdyno.workload.tables import ROWS_PER_SCALE, PgbenchTables

from ..base import engine
from ..base.errors import PgdynoError

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
        messages = _heard(process, report)
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


def _heard(process: subprocess.Popen[bytes], report: Progress) -> list[str]:
    """What pgbench says until it ends; of its lines of progress the last."""
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
                    f"{table} has {rows[table]:,} rows after loading, not {wanted:,}", remedy="load again"
                )
    return rows
