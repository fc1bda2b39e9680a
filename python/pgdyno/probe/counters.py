"""PostgreSQL's own cumulative counters, once a second: a lost sample costs resolution and no truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pgdyno.probe.queries import choose_queries
from pgdyno.probe.sampler import Connection, SqlSampler, now_ns, reason
from pgdyno.probe.samples import ProbeTables

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg.pq.abc import PGresult

TABLES = ("checkpointer", "database", "io", "wal")
"""What is asked for, where the server's version has it."""


@dataclass
class _Source:
    """One query with what it brought."""

    query: str
    columns: list[tuple[str, int]] = field(default_factory=list)
    """(name, type's oid) of the answer."""
    answers: list[tuple[int, int, list[list[bytes | None]]]] = field(default_factory=list)
    """(begin, end, rows) of each sample, values as the server writes them."""

    def keep(self, begin_ns: int, answer: PGresult) -> None:
        """One more sample, asked for at ``begin_ns`` and answered now."""
        columns = range(answer.nfields)
        rows = [[answer.get_value(row, column) for column in columns] for row in range(answer.ntuples)]
        self.answers.append((begin_ns, now_ns(), rows))
        if not self.columns:
            self.columns = [((answer.fname(column) or b"").decode(), answer.ftype(column)) for column in columns]


class CounterProbe(SqlSampler):
    """Samples the views of counters. Rows are kept as they came and become tables when the run is over.

    The first sample asks for one after the other and so finds out what the server does not answer; from the next on they are asked
    for together, until one is missing. Through a pooler they never are: each question is a transaction of its own there.
    """

    name = "sql"

    def __init__(self, dsn: str, interval_s: float = 1.0, *, watched: bool = False, **options: Any) -> None:
        super().__init__(dsn, interval_s, **options)
        self._watched = self.notes_silence = watched
        self._sources: dict[str, _Source] = {}
        self._together = False
        """Whether the last sample had all of them."""

    def _begin(self, connection: Connection) -> None:
        queries = choose_queries(connection.info.server_version, watched=self._watched)
        self._sources = {table: _Source(queries[table]) for table in TABLES if table in queries}

    def _ask(self, connection: Connection) -> list[tuple[str, str]]:
        import psycopg

        if not (self._together and self._is_own):
            missing = self._asked_apart(connection)
            self._together = not missing
            return missing
        sources = self._sources.values()
        begin_ns = now_ns()
        try:
            answers = self._answers(connection, [source.query for source in sources])
        except psycopg.Error as error:
            self._together = False  # the next sample finds out which of them
            return [(part, reason(error)) for part in self._parts()]
        for source, answer in zip(sources, answers, strict=True):
            source.keep(begin_ns, answer)
        return []

    def _asked_apart(self, connection: Connection) -> list[tuple[str, str]]:
        import psycopg

        missing: list[tuple[str, str]] = []
        lost = ""
        for table, source in self._sources.items():
            if connection.closed:
                missing.append((f"sql.{table}", lost))
                continue
            try:
                begin_ns = now_ns()
                source.keep(begin_ns, self._answer(connection, source.query))
            except psycopg.Error as error:
                lost = reason(error)
                missing.append((f"sql.{table}", lost))
        return missing

    def _parts(self) -> list[str]:
        return [f"sql.{table}" for table in self._sources]

    def _brought(self) -> ProbeTables:
        return ProbeTables(
            {f"probe/{table}": _table(source) for table, source in self._sources.items() if source.answers},
            self.ledger.gaps(),
        )


def _table(source: _Source) -> pa.Table:
    import pyarrow as pa

    # bigint, double precision; everything else is text
    types: dict[int, tuple[pa.DataType, Callable[[bytes], Any]]] = {20: (pa.int64(), int), 701: (pa.float64(), float)}
    lengths = [len(rows) for _, _, rows in source.answers]
    begin = [begin_ns for (begin_ns, _, _), length in zip(source.answers, lengths, strict=True) for _ in range(length)]
    end = [end_ns for (_, end_ns, _), length in zip(source.answers, lengths, strict=True) for _ in range(length)]
    arrays: dict[str, pa.Array] = {"t_begin_ns": pa.array(begin, pa.int64()), "t_end_ns": pa.array(end, pa.int64())}
    for number, (name, type_oid) in enumerate(source.columns):
        type_, read = types.get(type_oid, (pa.string(), bytes.decode))
        written = (row[number] for _, _, rows in source.answers for row in rows)
        arrays[name] = pa.array([None if value is None else read(value) for value in written], type_)
    return pa.table(arrays)
