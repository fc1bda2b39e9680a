"""What the server's sessions do, several times a second: on a CPU, or waiting for what.

A sample sees an instant, so its counts are statistics: an event that takes a tenth of the sessions' time is seen in a
tenth of what is counted. A lost sample costs nothing but precision; how many were lost is in ``probe/cost``.
"""

from __future__ import annotations

from array import array
from typing import Any

from pgdyno.probe.blockers import Blockers
from pgdyno.probe.queries import choose_queries
from pgdyno.probe.sampler import Connection, SqlSampler, now_ns, reason
from pgdyno.probe.samples import Gap, ProbeTables

INTERVAL_S = 0.1
WATCHED_LOOKS = 60
"""The first looks of a watch, which come at that interval: as many as a watch of the record of diagnosis has."""
WATCHED_INTERVAL_S = 0.2
"""Between those that follow: a longer watch has more looks in any case, and what it costs the server is half. Also of half of the
looks in the record the rules say nothing wrong with high confidence (``python -m tools.diagnose --apart 200``)."""
COMMANDS_FOR_LOOKS = WATCHED_LOOKS
"""After a session of a watched server waited for a volume, this number of looks ask for the sessions' commands too, and at the
beginning: of no other sessions the rules need them, and where there is one wait the next is not far."""
_WAITED_FOR = frozenset({b"IO", b"IPC", b"Timeout"})
"""Types of the waits for a volume, and of a vacuum's pauses between its reads."""
GAP_S = 1.0
"""Deadlines missed for less than this are counted as lost samples and not named as a gap."""
_NOBODY = {"wait_event_type": b"CPU", "wait_event": b"CPU", "backend_type": b"client backend"}
"""A sample without active sessions is a sample, too: no client's session was on a CPU."""


class WaitEventProbe(SqlSampler):
    """Samples ``pg_stat_activity`` over a connection of its own."""

    name = "wait_events"

    def __init__(self, dsn: str, interval_s: float = INTERVAL_S, *, watched: bool = False, **options: Any) -> None:
        super().__init__(dsn, interval_s, **options)
        self._watched = self.notes_silence = watched
        self._query, self._query_brief = "", ""
        self._query_blockers: str | None = None
        self._blockers = Blockers()
        self._commands_for = COMMANDS_FOR_LOOKS
        """The next looks that ask for commands."""
        self._names: tuple[str, ...] = ()
        """Columns of a state: type, event, kind of process, and of a watched server the command."""
        self._states: dict[tuple[bytes | None, ...], int] = {}
        """State, in UTF-8 -> its number: an hour has many thousands of samples and a few dozen states."""
        self._rows = array("q")
        """begin, end, state, count; again and again."""

    def _begin(self, connection: Connection) -> None:
        queries = choose_queries(connection.info.server_version, watched=self._watched)
        self._query = queries["wait_events"]
        self._query_brief = queries.get("wait_states", self._query)
        self._query_blockers = queries.get("blockers")

    def _ask(self, connection: Connection) -> list[tuple[str, str]]:
        begin_ns = now_ns()
        answer = self._answer(connection, self._query if self._commands_for else self._query_brief)
        end_ns = now_ns()
        last = answer.nfields - 1
        if not self._names:
            self._names = tuple(_text(answer.fname(column)) or "" for column in range(last))
        self._commands_for = max(0, self._commands_for - 1)
        locked = False
        for row in range(answer.ntuples):
            state = tuple([answer.get_value(row, column) for column in range(last)])
            if state[0] in _WAITED_FOR:
                self._commands_for = COMMANDS_FOR_LOOKS
            locked |= state[0] == b"Lock"
            self._note(begin_ns, end_ns, state, int(answer.get_value(row, last) or 0))
        if not answer.ntuples:
            self._note(begin_ns, end_ns, tuple(map(_NOBODY.get, self._names)), 0)
        if locked and self._query_blockers is not None and self._blockers.is_due(end_ns):
            self._ask_who_blocks(connection, self._query_blockers)
        return []

    def _ask_who_blocks(self, connection: Connection, query: str) -> None:
        import psycopg

        begin_ns = now_ns()
        try:
            answer = self._question(connection, query)
            names = [column.name for column in answer.description or ()]
            self._blockers.keep(begin_ns, now_ns(), names, answer.fetchall())
        except psycopg.Error as error:
            self._blockers.give_up()
            self.ledger.add(Gap(begin_ns, now_ns(), "sql.blockers", reason(error)))

    def _note(self, begin_ns: int, end_ns: int, state: tuple[bytes | None, ...], count: int) -> None:
        self._rows.extend((begin_ns, end_ns, self._states.setdefault(state, len(self._states)), count))

    def _slow_down(self, took_ns: int) -> None:
        super()._slow_down(took_ns)
        if self._watched and self.cost.samples >= WATCHED_LOOKS:
            self._interval_ns = max(self._interval_ns, int(WATCHED_INTERVAL_S * 1e9))

    def _missed(self, due_ns: int, missed: int) -> None:
        if missed * self._interval_ns >= GAP_S * 1e9:
            super()._missed(due_ns, missed)

    def _parts(self) -> list[str]:
        return ["wait_events"]

    def _brought(self) -> ProbeTables:
        import numpy as np
        import pyarrow as pa

        begin_ns, end_ns, number, count = np.array(self._rows, np.int64).reshape(-1, 4).T
        arrays = {"t_begin_ns": pa.array(begin_ns), "t_end_ns": pa.array(end_ns)}
        for place, name in enumerate(self._names):
            names = pa.array([_text(state[place]) for state in self._states], pa.string())
            arrays[name] = names.take(pa.array(number))
        table = pa.table({**arrays, "count": pa.array(count)})
        tables = ProbeTables({"probe/wait_events": table} if table.num_rows else {}, self.ledger.gaps())
        return tables | self._blockers.brought()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")
