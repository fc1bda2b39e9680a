"""Samples what the sessions that copy do on the server, in a thread of its own."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from typing import Self

from pgdyno.loader.server import connect_another, many, session_name

from ..base.errors import PgdynoError
from ..base.session import Connection

INTERVAL_S = 0.2
"""A second then has five samples of each session; a question costs the server under a millisecond."""
_QUESTION = """
SELECT coalesce(wait_event_type, 'CPU'), coalesce(wait_event, 'CPU'), count(*)
FROM pg_stat_activity WHERE application_name = %s AND datname = current_database() AND state = 'active' GROUP BY 1, 2
"""


class SessionSampler:
    """Counts wait events from the beginning of a ``with`` block to its end. A server that does not answer gives none."""

    def __init__(self, dsn: str, job: int | None) -> None:
        self._dsn = dsn
        self._name = session_name(job)
        self._counted: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pgdyno-sessions", daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._stopping.set()
        self._thread.join(timeout=5.0)

    def taken(self) -> Counter[tuple[str, str]]:
        """What was counted since the last time."""
        with self._lock:
            counted, self._counted = self._counted, Counter()
        return counted

    def _watch(self) -> None:
        import psycopg

        while not self._stopping.wait(INTERVAL_S):
            with (
                contextlib.suppress(psycopg.Error, PgdynoError),
                contextlib.closing(connect_another(self._dsn)) as connection,
            ):
                while not self._stopping.wait(INTERVAL_S):
                    self._sample(connection)

    def _sample(self, connection: Connection) -> None:
        rows = many(connection, _QUESTION, (self._name,))
        with self._lock:
            for kind, event, count in rows:
                self._counted[kind, event] += count
