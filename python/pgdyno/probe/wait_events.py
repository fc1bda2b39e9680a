"""What the server's sessions do, ten times a second: on a CPU, or waiting for what.

A sample sees an instant, so its counts are statistics: an event that takes a tenth of the sessions' time is seen in a
tenth of what is counted. A lost sample costs nothing but precision; how many were lost is in ``probe/cost``.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from pgdyno.probe.queries import choose_queries
from pgdyno.probe.sampler import SqlSampler, now_ns
from pgdyno.probe.samples import Samples

if TYPE_CHECKING:
    from pgdyno.probe.sampler import Connection

INTERVAL_S = 0.1
GAP_S = 1.0
"""Deadlines missed for less than this are counted as lost samples and not named as a gap."""
_NOBODY = {"wait_event_type": "CPU", "wait_event": "CPU", "backend_type": "client backend"}
"""A sample without active sessions is a sample, too: no client's session was on a CPU."""


class WaitEventProbe(SqlSampler):
    """Samples ``pg_stat_activity`` over a connection of its own."""

    name = "wait_events"

    def __init__(self, dsn: str, interval_s: float = INTERVAL_S, *, watched: bool = False, **options: Any) -> None:
        super().__init__(dsn, interval_s, **options)
        self._watched = watched
        self._query = ""
        self._names: tuple[str, ...] = tuple(_NOBODY)
        """Columns of a state: type, event, kind of process, and of a watched server the command."""
        self._states: dict[tuple[str | None, ...], int] = {}
        """State -> its number: an hour has 36,000 samples and a few dozen states."""
        self._rows = array("q")
        """begin, end, state, count; again and again."""

    def _begin(self, connection: Connection) -> None:
        self._query = choose_queries(connection.info.server_version, watched=self._watched)["wait_events"]

    def _ask(self, connection: Connection) -> list[tuple[str, str]]:
        begin_ns = now_ns()
        cursor = self._question(connection, self._query)
        rows = cursor.fetchall()
        end_ns = now_ns()
        self._names = tuple(column.name for column in cursor.description or ())[:-1]
        for row in rows or (self._nobody(),):
            number = self._states.setdefault(tuple(row[:-1]), len(self._states))
            self._rows.extend((begin_ns, end_ns, number, row[-1]))
        return []

    def _nobody(self) -> tuple[Any, ...]:
        return (*map(_NOBODY.get, self._names), 0)

    def _missed(self, due_ns: int, missed: int) -> None:
        if missed * self._interval_ns >= GAP_S * 1e9:
            super()._missed(due_ns, missed)

    def _parts(self) -> list[str]:
        return ["wait_events"]

    def _brought(self) -> Samples:
        import numpy as np
        import pyarrow as pa

        begin_ns, end_ns, number, count = np.array(self._rows, np.int64).reshape(-1, 4).T
        arrays = {"t_begin_ns": pa.array(begin_ns), "t_end_ns": pa.array(end_ns)}
        for place, name in enumerate(self._names):
            names = pa.array([state[place] for state in self._states], pa.string())
            arrays[name] = names.take(pa.array(number))
        table = pa.table({**arrays, "count": pa.array(count)})
        return Samples({"probe/wait_events": table} if table.num_rows else {}, self.ledger.gaps())
