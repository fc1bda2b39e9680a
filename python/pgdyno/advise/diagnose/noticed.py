"""What a DBA would want to know of a watch beside its verdict: open transactions, statements that have not ended, conflicts with replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...base.text import duration, percent
from ...results import StoredRun
from .silence import Silence

IDLE_SHARE = 0.10
"""Share of the sessions from which those that are idle in a transaction are worth a line."""
IDLE_MIN = 5
"""Their number below which a share says nothing."""
IDLE_OLD_S = 300.0
"""Age of a single transaction from which it is worth a line: vacuum has not removed a row since then."""


@dataclass(frozen=True)
class RunningStatements:
    """Statements that had not ended when the sessions were counted; pg_stat_statements knows those that ended."""

    statements: int
    """The most at once that ran for as long as log_min_duration_statement says, or a second where it is off."""
    longest_ms: float


def running_of(run: StoredRun) -> RunningStatements | None:
    """None where the sessions were not counted."""
    counted = _column(run, "long_statements")
    if not counted:
        return None
    return RunningStatements(int(max(counted)), max(_column(run, "longest_statement_ms"), default=0.0))


def notes_of(run: StoredRun, silence: Silence | None) -> Iterator[str]:
    """Each a sentence's end."""
    if silence is not None and silence.spans and not silence.binds:
        yield silence.title
    yield from _open_transactions(run)
    yield from _conflicts(run)


def _open_transactions(run: StoredRun) -> Iterator[str]:
    idle, all_ = _column(run, "idle_in_transaction"), _column(run, "client_sessions")
    if not idle or not all_:
        return
    most, of = int(max(idle)), int(max(all_))
    oldest_s = max(_column(run, "longest_idle_in_transaction_ms"), default=0.0) / 1e3
    if (most >= IDLE_MIN and most >= IDLE_SHARE * of) or oldest_s >= IDLE_OLD_S:
        yield (
            f"{most:,} of {of:,} sessions {'was' if most == 1 else 'were'} idle in a transaction, the longest for {duration(oldest_s)}:"
            " they keep their locks, and vacuum removes no row that they might see"
        )


def _conflicts(run: StoredRun) -> Iterator[str]:
    """What a standby has beside: statements that were cancelled, and replay that waited for some."""
    if not run.record.workload.get("standby"):
        return
    counted = _column(run, "conflicts")
    cancelled = int(counted[-1] - counted[0]) if len(counted) > 1 else 0
    if cancelled > 0:
        yield (
            f"{cancelled:,} statement{'' if cancelled == 1 else 's'} of this standby {'was' if cancelled == 1 else 'were'} cancelled, because"
            " replay could not wait for them any longer: max_standby_streaming_delay, hot_standby_feedback"
        )
    table = run.table("probe/wait_events")
    if not table.num_rows:
        return
    names = ("t_begin_ns", "wait_event", "backend_type", "count")
    rows = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    waited = {at for at, event, backend, count in rows if backend == "startup" and count and _is_conflict(event)}
    looks = {row[0] for row in rows}
    if waited:
        yield f"replay waited for statements of this standby in {percent(len(waited) / len(looks))} of the looks, so its data were older"


def _is_conflict(event: str | None) -> bool:
    """Names of 14 to 19: RecoveryConflictSnapshot, RecoveryConflictTablespace; of a lock and a pin the usual ones."""
    return (event or "").startswith("RecoveryConflict") or event in ("BufferPin", "BufferCleanup", "relation")


def _column(run: StoredRun, name: str) -> list[Any]:
    """What is known of a figure of the sessions, in order of time."""
    table = run.table("probe/database")
    if name not in table.column_names:
        return []
    return [value for value in table[name].to_pylist() if value is not None]
