"""Locks of others that statements of a replay wait for: a copy of a database should have no other users, and a forgotten session there is named."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import psycopg

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

LONG_S = 5.0
"""What an application's own locks hardly ever take; the others' may last for hours."""
LOOK_S = 2.0
"""How often it is looked at: the server locks its table of locks for that."""
_PRESENT = "SELECT pid FROM pg_catalog.pg_stat_activity WHERE pid IS NOT NULL"
_WAITS = """
SELECT DISTINCT blocker.pid, waiting.pid,
       CASE WHEN waiting.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
            THEN waiting.relation::pg_catalog.regclass::pg_catalog.text END,
       role.usename
FROM pg_catalog.pg_locks AS waiting
CROSS JOIN LATERAL pg_catalog.unnest(pg_catalog.pg_blocking_pids(waiting.pid)) AS blocker (pid)
LEFT JOIN pg_catalog.pg_stat_activity AS role ON role.pid = blocker.pid
WHERE NOT waiting.granted AND waiting.waitstart < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => %s)
"""


class Waits:
    """What keeps the sessions waiting that began after this was made: sessions that were there before, and prepared transactions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._present = {int(row[0]) for row in connection.execute(_PRESENT).fetchall()}
        self._told: set[int] = set()
        self._looked = time.monotonic()

    def notices(self) -> list[str]:
        """A sentence for each of them that has not been told yet. What cannot be asked is not told: a replay does not end for it."""
        import psycopg

        if time.monotonic() < self._looked + LOOK_S:
            return []
        self._looked = time.monotonic()
        try:
            rows = self._connection.execute(_WAITS, [LONG_S]).fetchall()
        except psycopg.Error:
            return []
        notices = []
        for blocker, waiting, table, role in rows:
            if waiting in self._present or blocker in self._told or not (blocker == 0 or blocker in self._present):
                continue
            self._told.add(blocker)
            whose = "a prepared transaction" if blocker == 0 else f"session {blocker}{f' of {role}' if role else ''}"
            which = f" on {table}" if table else ""
            notices.append(
                f"{whose} is not the replay's, and has kept its statements waiting for more than {LONG_S:g} s by a lock{which};"
                " end it: the replay waits for it until its own time is over"
            )
        return notices
