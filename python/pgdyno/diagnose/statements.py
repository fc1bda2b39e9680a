"""The statements that read, log and spill most, by pg_stat_statements: what grew during the watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.server_figures import BLOCK_BYTES

if TYPE_CHECKING:
    from pgdyno.store import Run

TABLE = "probe/statements"
SHOWN_MAX = 5
"""Statements by each figure."""
SLOW_MS = 1000.0
"""Where log_min_duration_statement is off: what is slow for most who turn it on."""


@dataclass(frozen=True)
class Statement:
    """One statement, in all databases and of all roles together, during the watch."""

    queryid: int
    calls: int
    ms_mean: float
    """Time of a call."""
    read_bytes: int
    """Blocks that were not in shared_buffers; the page cache may have had them."""
    wal_bytes: int
    temp_bytes: int
    query: str | None = None
    """The first 200 characters; None unless texts were asked for."""


@dataclass(frozen=True)
class Slow:
    """What log_min_duration_statement would see, as far as means tell."""

    threshold_ms: float
    on: bool
    """Whether the setting is on; otherwise the threshold is an example."""
    statements: int
    """Whose mean time is at the threshold or above."""
    calls: int
    """Their calls during the watch."""


def statements_of(run: Run) -> tuple[Statement, ...]:
    """All that were called, the one that moved most bytes first; empty where the server does not count them.

    A statement whose counters fell was evicted or reset meanwhile, and is left out.
    """
    table = run.table(TABLE)
    rows = table.to_pylist() if table.num_rows else []
    times = sorted({row["t_end_ns"] for row in rows})
    if len(times) < 2 or was_reset(run):
        return ()
    before = {row["queryid"]: row for row in rows if row["t_end_ns"] == times[0]}
    grown = [_grown(row, before.get(row["queryid"])) for row in rows if row["t_end_ns"] == times[-1]]
    called = [one for one in grown if one is not None]
    return tuple(sorted(called, key=lambda one: -(one.read_bytes + one.wal_bytes + one.temp_bytes)))


def was_reset(run: Run) -> bool:
    """Whether pg_stat_statements was reset during the watch: then nothing of it is of one piece."""
    return len(set(run.table(TABLE)["reset_unix_ms"].to_pylist())) > 1


def unseen_words(run: Run) -> list[str]:
    """Why statements were not seen although the server counts them; empty where it does not, or they were."""
    if was_reset(run):
        return ["which statements: pg_stat_statements was reset during the watch"]
    gaps = run.table("probe/gap").to_pylist()
    return [f"which statements: {gap['why']}" for gap in gaps if gap["what"] == "sql.statements"][:1]


def top_of(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The first by each of blocks read, WAL and temporary bytes, each statement once."""
    found: dict[int, Statement] = {}
    for name in ("read_bytes", "wal_bytes", "temp_bytes"):
        first = sorted(statements, key=lambda one: -int(getattr(one, name)))[:SHOWN_MAX]
        found.update({one.queryid: one for one in first if getattr(one, name)})
    return tuple(one for one in statements if one.queryid in found)


def slow_of(run: Run, statements: tuple[Statement, ...]) -> Slow | None:
    """None where statements are not counted."""
    if not statements:
        return None
    settings = run.table("postgres/settings")
    values = dict(zip(settings["name"].to_pylist(), settings["setting"].to_pylist(), strict=True))
    set_ms = float(values.get("log_min_duration_statement") or -1)
    slow = [one for one in statements if one.ms_mean >= (set_ms if set_ms >= 0 else SLOW_MS)]
    return Slow(set_ms if set_ms >= 0 else SLOW_MS, set_ms >= 0, len(slow), sum(one.calls for one in slow))


def _grown(after: dict[str, Any], before: dict[str, Any] | None) -> Statement | None:
    names = ("calls", "exec_time_ms", "shared_blks_read", "wal_bytes", "temp_blks_written")
    calls, time_ms, reads, wal, temporary = (after[name] - (0 if before is None else before[name]) for name in names)
    if calls <= 0 or min(time_ms, reads, wal, temporary) < 0:
        return None
    return Statement(
        after["queryid"], calls, time_ms / calls, reads * BLOCK_BYTES, wal, temporary * BLOCK_BYTES, after["query"]
    )
