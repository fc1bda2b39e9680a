"""Likeness: whether the statements of a replay did the work that they did in production, by pg_stat_statements of both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..results.work_record import ComparedStatement, LikenessRecord, StatementWork

LIMITS: Mapping[str, float] = {"calls": 0.05, "rows": 0.05, "WAL records": 0.05, "blocks": 0.20}
"""How far a figure may be from production's: what a statement was asked for and wrote is known to 5 %, and 20 % of the blocks is what
bloat and another order of rows make (issue 21, point 10)."""
READ_WAL_LIMIT = 0.50
"""The same for WAL records of a SELECT. It prunes pages that others have changed, and how many depends on which snapshots are open meanwhile, so
on how fast the server is: replays on a volume without limits had 1.11 times production's, and 0.74 times where the machine was busy, of a SELECT
that writes nothing itself."""
PLAN_TIMES = 2.0
"""Twice the blocks, or half of them, are those of another plan, or of another database: what bloat makes is less."""
COUNT_MIN = 20
"""A figure is compared where one side counted 20: of fewer, one is more than 5 %."""
WRITES_MIN = 0.5
"""WAL records of a call, from which on a statement writes. What reads leave in the WAL follows from vacuum and checkpoints."""
NOISE_TIMES = 4.0
"""Multiple of the square root of the counts: WAL records and blocks also count pages that were split or pruned meanwhile, as chance
has it."""
SHARE_MOST = 0.01
"""Of production's calls, or of their time: a replay in which more of it did other work is not the captured load, as with those that
fail."""
NAMED_MOST = 3
_LETTERS = 60


@dataclass(frozen=True)
class Unlike:
    """A statement that did other work than in production."""

    statement: str
    calls: int
    """In production."""
    exec_ms: float
    """In production, together."""
    ratios: Mapping[str, float]
    """Figure -> its multiple of production's, of those that are beyond their limits; rows, WAL records and blocks by call."""

    @property
    def is_other(self) -> bool:
        """Whether bloat cannot be why."""
        blocks = self.ratios.get("blocks", 1.0)
        return len(self.ratios) > ("blocks" in self.ratios) or not 1 / PLAN_TIMES <= blocks <= PLAN_TIMES

    @property
    def words(self) -> str:
        """Its begin, with the figures."""
        short = self.statement if len(self.statement) <= _LETTERS else f"{self.statement[: _LETTERS - 1]}…"
        return f"{short} ({', '.join(f'{ratio:.2f} times the {name}' for name, ratio in self.ratios.items())})"


def unlike(record: LikenessRecord) -> list[Unlike]:
    """Statements beyond a limit, the one with the most time in production first."""
    each = [(statement, dict(_beyond(statement, whole=record.whole))) for statement in record.statements]
    return [
        Unlike(item.statement, item.production.calls, item.production.exec_ms, ratios)
        for item, ratios in each
        if ratios
    ]


def likeness_reasons(record: LikenessRecord) -> Iterator[str]:
    """Why it was not production's work; nothing if it was."""
    others = [other for other in unlike(record) if other.is_other]
    calls, exec_ms = (
        sum(getattr(unlike, name) for unlike in others)
        / max(1e-9, sum(getattr(statement.production, name) for statement in record.statements))
        for name in ("calls", "exec_ms")
    )
    if max(calls, exec_ms) > SHARE_MOST:
        named = "; ".join(unlike.words for unlike in others[:NAMED_MOST])
        more = f"; and {len(others) - NAMED_MOST} others" if len(others) > NAMED_MOST else ""
        yield f"statements with {calls:.1%} of the calls and {exec_ms:.1%} of the time did other work than in production: {named}{more}"


def _beyond(statement: ComparedStatement, *, whole: bool) -> Iterator[tuple[str, float]]:
    there, here = statement.production, statement.here
    if whole and max(there.calls, here.calls) >= COUNT_MIN and _is_beyond(LIMITS["calls"], here.calls, there.calls):
        yield "calls", here.calls / max(1, there.calls)
    if not here.calls:
        return
    # By call: production's counters were read a little before the capture and a little after it.
    expected = here.calls / there.calls
    for name, own, theirs, is_noisy in _by_call(there, here):
        wanted = theirs * expected
        limit = READ_WAL_LIMIT if name == "WAL records" and _reads(statement.statement) else LIMITS[name]
        if max(own, wanted) < COUNT_MIN or not _is_beyond(limit, own, wanted):
            continue
        if is_noisy and abs(own - wanted) <= NOISE_TIMES * math.sqrt(own + wanted):
            continue
        yield name, own / max(1.0, wanted)


def _by_call(there: StatementWork, here: StatementWork) -> Iterator[tuple[str, int, int, bool]]:
    yield "rows", here.rows, there.rows, False
    if max(here.wal_records / here.calls, there.wal_records / there.calls) >= WRITES_MIN:
        yield "WAL records", here.wal_records, there.wal_records, True
    yield "blocks", here.blocks, there.blocks, True


def _is_beyond(limit: float, here: float, production: float) -> bool:
    return abs(here - production) > limit * max(production, 1.0)


def _reads(statement: str) -> bool:
    return statement[:6].upper() == "SELECT"
