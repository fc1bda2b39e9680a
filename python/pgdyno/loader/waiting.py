"""Names the sessions that block a load by their locks.

Copying, building indexes and merging wait for such a lock as long as it is held: to give up and to resume would take longer.
Only optional steps, and those before anything is changed, give up after :data:`~pgdyno.loader.undo.LOCK_TIMEOUT_S`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

from pgdyno.loader.server import APPLICATION_NAME, connect_another, one
from pgdyno.loader.transfer import Tell

from ..base.errors import PgdynoError
from ..base.session import Connection

PATIENCE_S = 3.0
"""A shorter wait is not reported. A load that ends before opens no session to look for one."""
INTERVAL_S = 1.0
"""Between two looks."""
_HOLDERS = """
SELECT DISTINCT holder.pid, coalesce(nullif(h.application_name, ''), h.backend_type), h.usename, h.state
FROM pg_locks l JOIN pg_stat_activity w ON w.pid = l.pid
CROSS JOIN LATERAL unnest(pg_blocking_pids(l.pid)) AS holder(pid)
LEFT JOIN pg_stat_activity h ON h.pid = holder.pid
WHERE NOT l.granted AND l.waitstart < clock_timestamp() - make_interval(secs => %(patience_s)s)
  AND w.datname = current_database() AND holder.pid <> %(own)s AND h.application_name IS DISTINCT FROM w.application_name
  AND (l.pid = %(own)s OR w.application_name LIKE %(ours)s
       AND EXISTS (SELECT FROM pg_locks t WHERE t.pid = l.pid AND t.relation = ANY(%(tables)s::oid[])))
ORDER BY 1
"""
"""A load consists of its first session, and of those with our name that use its tables: they copy, or build indexes."""


def one_at_a_time(tell: Tell | None) -> Tell:
    """A function that any thread may call, and that calls ``tell`` unless it is None."""
    lock = threading.Lock()

    def locked(event: Mapping[str, Any]) -> None:
        if tell is not None:
            with lock:
                tell(event)

    return locked


class WaitSampler:
    """Looks for them from the beginning of a ``with`` block to its end, in a thread and a session of its own.

    ``note`` gets a sentence for each blocking session; it is called in that thread.
    """

    def __init__(self, dsn: str, note: Callable[[str], None]) -> None:
        self._dsn, self._note = dsn, note
        self._asked: dict[str, Any] = {"own": 0, "tables": []}
        self._told: set[int] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pgdyno-waiting", daemon=True)

    def watch(self, connection: Connection, *tables: int) -> None:
        """From now on ``connection`` is the first session of the load, and ``tables`` are those that it works on."""
        own = one(connection, "SELECT pg_backend_pid()")[0]
        self._asked = {"own": own, "tables": list(tables)}

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._stopping.set()
        self._thread.join(timeout=5.0)

    def _watch(self) -> None:
        import psycopg

        while not self._stopping.wait(PATIENCE_S):
            # A server that does not answer or has no session left is asked again later. Output that cannot be written
            # (OSError) is reported by the main thread, which writes to the same place.
            with (
                contextlib.suppress(psycopg.Error, PgdynoError, OSError),
                contextlib.closing(connect_another(self._dsn)) as connection,
            ):
                self._look(connection)
                while not self._stopping.wait(INTERVAL_S):
                    self._look(connection)

    def _look(self, connection: Connection) -> None:
        fixed = {"patience_s": PATIENCE_S, "ours": f"{APPLICATION_NAME}%"}
        result = connection.execute(_HOLDERS.encode(), fixed | self._asked).fetchall()
        for pid, program, role, state in result:
            if pid not in self._told:
                self._note(_said(pid, [program, f"role {role}" if role else None, state]))
        self._told = {row[0] for row in result}


def _said(pid: int, known: list[str | None]) -> str:
    if pid == 0:
        return "waiting for a lock that a prepared transaction holds; pg_prepared_xacts lists it"
    who = ", ".join(word for word in known if word)
    return (
        f"waiting for a lock that session {pid} holds{f' ({who})' if who else ''}; end its transaction, or the session with"
        f" `SELECT pg_terminate_backend({pid})`"
    )
