"""The statements that read, log and spill most, by pg_stat_statements: what grew during the watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...analysis.figures import BLOCK_BYTES
from ...results import StoredRun
from .noticed import RunningStatements, running_of

TABLE = "probe/statements"
SHOWN_MAX = 5
"""Statements by each figure."""
SLOW_MS = 1000.0
"""Where log_min_duration_statement is off: what is slow for most who turn it on."""


@dataclass(frozen=True)
class StatementLoad:
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
    """What log_min_duration_statement would see, as far as means tell, and what had not ended."""

    threshold_ms: float
    setting_ms: float
    """The setting; -1 is off and 0 logs all, and then the threshold is an example."""
    statements: int | None
    """Whose mean time is at the threshold or above; None where statements are not counted."""
    calls: int
    """Their calls during the watch."""
    running: RunningStatements | None = None
    """Statements that had not ended; None where the sessions were not counted."""

    @property
    def any(self) -> bool:
        """Whether there was a slow statement."""
        return bool(self.statements) or (self.running is not None and self.running.statements > 0)


def statements_of(run: StoredRun) -> tuple[StatementLoad, ...]:
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
    called = [load for load in grown if load is not None]
    return tuple(sorted(called, key=lambda item: -(item.read_bytes + item.wal_bytes + item.temp_bytes)))


def was_reset(run: StoredRun) -> bool:
    """Whether pg_stat_statements was reset during the watch: then nothing of it is of one piece."""
    return len(set(run.table(TABLE)["reset_unix_ms"].to_pylist())) > 1


def unseen_words(run: StoredRun, *, absent: bool = True) -> list[str]:
    """Why statements were not seen; empty where they were. ``absent``: say it too where the server does not count them."""
    if was_reset(run):
        return ["which statements: pg_stat_statements was reset during the watch"]
    gaps = run.table("probe/gap").to_pylist()
    unseen_words = [f"which statements: {gap['why']}" for gap in gaps if gap["what"] == "sql.statements"][:1]
    if not unseen_words and not sees_all(run):
        unseen_words = ["statements of other roles: `GRANT pg_monitor TO` the role"]
    if not unseen_words and absent and not run.table(TABLE).num_rows:
        unseen_words = ["which statements: the database that is connected has no pg_stat_statements"]
    return unseen_words


def top_of(statements: tuple[StatementLoad, ...]) -> tuple[StatementLoad, ...]:
    """The first by each of blocks read, WAL and temporary bytes, each statement once."""
    loads: dict[int, StatementLoad] = {}
    for name in ("read_bytes", "wal_bytes", "temp_bytes"):
        first = sorted(statements, key=lambda statement: -int(getattr(statement, name)))[:SHOWN_MAX]
        loads.update({load.queryid: load for load in first if getattr(load, name)})
    return tuple(statement for statement in statements if statement.queryid in loads)


def slow_of(run: StoredRun, statements: tuple[StatementLoad, ...]) -> Slow | None:
    """None where neither statements nor sessions are counted, or the role may not see those of others."""
    running = running_of(run)
    if (not statements and running is None) or not sees_all(run):
        return None
    settings = run.table("postgres/settings")
    values = dict(zip(settings["name"].to_pylist(), settings["setting"].to_pylist(), strict=True))
    set_ms = float(values.get("log_min_duration_statement") or -1)
    threshold_ms = set_ms if set_ms > 0 else SLOW_MS
    slow = [statement for statement in statements if statement.ms_mean >= threshold_ms]
    return Slow(threshold_ms, set_ms, len(slow) if statements else None, sum(load.calls for load in slow), running)


def sees_all(run: StoredRun) -> bool:
    """Whether the role of a watch may see other roles' sessions and statements; before it was recorded, what the sessions show."""
    recorded = run.record.workload.get("sees_all")
    if recorded is not None:
        return bool(recorded)
    return not any(
        visibility.what.startswith("wait events of other roles") and not visibility.seen
        for visibility in run.record.visibility
    )


def _grown(after: dict[str, Any], before: dict[str, Any] | None) -> StatementLoad | None:
    names = ("calls", "exec_time_ms", "shared_blks_read", "wal_bytes", "temp_blks_written")
    calls, time_ms, reads, wal, temporary = (after[name] - (0 if before is None else before[name]) for name in names)
    if calls <= 0 or min(time_ms, reads, wal, temporary) < 0:
        return None
    return StatementLoad(
        after["queryid"], calls, time_ms / calls, reads * BLOCK_BYTES, wal, temporary * BLOCK_BYTES, after["query"]
    )
