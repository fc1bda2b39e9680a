"""Logs as PostgreSQL would write them: a large one, and one of many sessions."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = datetime(2026, 11, 25, 7, 4, 42, tzinfo=UTC)
SESSIONS = 60
"""Of the large log: sessions beside each other."""
LOOKUP = "SELECT abalance FROM pgbench_accounts WHERE aid = $1"


def large(path: Path, megabytes: int) -> float:
    """A csvlog of that size, of many sessions beside each other, of texts, values and durations. Its size in megabytes."""
    draw, written, lines = random.Random(1), 0, dict.fromkeys(range(100, 100 + SESSIONS), 0)
    stamp = f"{BEGIN:%Y-%m-%d %H:%M:%S}.123 UTC"
    with path.open("w") as out:
        while written < megabytes * 1_000_000:
            pid = draw.choice(list(lines))
            for message, detail in (
                ("statement: BEGIN", ""),
                ("duration: 0.041 ms", ""),
                (
                    "execute <unnamed>: SELECT id, placed_at, total FROM orders WHERE customer = $1 ORDER BY placed_at DESC",
                    f"parameters: $1 = '{draw.randrange(200_000)}'",
                ),
                ("duration: 3.912 ms", ""),
                (f"statement: UPDATE customers SET note = 'visit {draw.randrange(10**6)}' WHERE id = 7", ""),
                ("duration: 1.230 ms", ""),
                ("statement: COMMIT", ""),
                ("duration: 2.018 ms", ""),
            ):
                lines[pid] += 1
                written += out.write(_line(stamp, pid, lines[pid], message, detail, ("app", "shop")))
    return written / 1e6


def lookups(path: Path, place: tuple[str, str], sessions: int, per_s: float, seconds: float, accounts: int) -> None:
    """A csvlog of sessions that are open all the time and look rows of pgbench up, at an equal pace, in turns.

    ``place`` is their role and database.
    """
    draw, lines = random.Random(2), [0] * sessions

    def entry(at: datetime, session: int, message: str, detail: str = "") -> str:
        lines[session] += 1
        stamp = f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03} UTC"
        return _line(stamp, 1000 + session, lines[session], message, detail, place)

    with path.open("w") as out:
        for session in range(sessions):
            authorized = f"connection authorized: user={place[0]} database={place[1]} application_name=bench"
            out.write(entry(BEGIN, session, authorized))
        for number in range(round(per_s * seconds)):
            at = BEGIN + timedelta(seconds=1 + number / per_s)
            value = f"parameters: $1 = '{1 + draw.randrange(accounts)}'"
            out.write(entry(at, number % sessions, f"duration: 0.020 ms  execute lookup: {LOOKUP}", value))
        end = BEGIN + timedelta(seconds=2 + seconds)
        for session in range(sessions):
            out.write(entry(end, session, "disconnection: session time: 0:00:00.020"))


def _line(stamp: str, pid: int, number: int, message: str, detail: str, place: tuple[str, str]) -> str:
    return (
        f'{stamp},"{place[0]}","{place[1]}",{pid},"10.0.0.1:5000",6563.{pid:x},{number},"SELECT",{stamp[:19]} UTC,4/12,0,LOG,'
        f'00000,"{message}","{detail}",,,,,,,,"bench","client backend",,0\n'
    )
