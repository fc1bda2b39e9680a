"""Samples PostgreSQL's own counters over one connection, once a second, in a thread.

The queries are files, ``sql/<table>_from_<first version>.sql``; of each table the newest that the server is new enough
for is used. They are prepared once, rows are kept as they came and become tables when the run is over.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any, Self

from pgdyno.errors import PgdynoError
from pgdyno.probe.samples import Gap, GapLedger, Samples

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa

_NS = 1_000_000_000
_FILE = re.compile(r"([a-z]+)_from_(\d{6})\.sql")
_PATIENCE_S = 5.0
"""A server that does not answer a query about its counters in this time is recorded as a gap."""


def choose_queries(server_version: int) -> dict[str, str]:
    """Table (``io``) -> query, for a server of that ``server_version_num``; a table it cannot have is left out."""
    chosen: dict[str, tuple[int, str]] = {}
    for file in resources.files("pgdyno.probe").joinpath("sql").iterdir():
        if found := _FILE.fullmatch(file.name):
            table, first_version = found[1], int(found[2])
            if first_version <= server_version and first_version > chosen.get(table, (0, ""))[0]:
                chosen[table] = (first_version, file.read_text())
    return {table: query for table, (_, query) in sorted(chosen.items())}


@dataclass
class _Source:
    """One query with what it brought."""

    query: str
    columns: list[tuple[str, int]] = field(default_factory=list)
    """(name, type's oid) of the answer."""
    answers: list[tuple[int, int, list[tuple[Any, ...]]]] = field(default_factory=list)
    """(begin, end, rows) of each sample."""


class SqlProbe:
    """Samples one server, ``dsn`` in libpq's notation, from ``start`` until ``stop``.

    A query that fails is a gap; a connection that is lost is opened again for the next sample.
    """

    def __init__(self, dsn: str, interval_s: float = 1.0) -> None:
        self._dsn = dsn
        self._interval_ns = int(interval_s * _NS)
        self._sources: dict[str, _Source] = {}
        self._ledger = GapLedger()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self.samples_taken = 0
        """How often the server was asked, with or without an answer."""

    def start(self) -> Self:
        """Connect, prepare, take a first sample, go on in a thread. :class:`PgdynoError` when there is no server."""
        import psycopg

        try:
            self._connection = self._connect()
        except psycopg.Error as error:
            raise PgdynoError(f"the server cannot be sampled: {error}", remedy="look at the server's log") from error
        self._sources = {
            table: _Source(query) for table, query in choose_queries(self._connection.info.server_version).items()
        }
        first_ns = _now_ns()
        self._sample(first_ns)
        self._thread = threading.Thread(target=self._go_on, args=(first_ns,), name="pgdyno-sql-probe", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> Samples:
        """Take a last sample, disconnect, and return everything."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None
            self._sample(_now_ns())
        self._disconnect()
        return Samples(
            {f"probe/{table}": _table(source) for table, source in self._sources.items() if source.answers},
            self._ledger.gaps(),
        )

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop if nobody did."""
        self.stop()

    def _go_on(self, first_ns: int) -> None:
        """Sample on a grid of absolute instants, so that a slow answer does not shift the next ones."""
        due_ns = first_ns + self._interval_ns
        while not self._stopping.wait(max(0.0, (due_ns - _now_ns()) / _NS)):
            self._sample(due_ns)
            missed = (_now_ns() - due_ns) // self._interval_ns
            if missed > 0:
                self._ledger.add(Gap(due_ns, _now_ns(), "sql.samples", f"{missed} deadlines were missed"))
            due_ns += (1 + missed) * self._interval_ns

    def _sample(self, due_ns: int) -> None:
        import psycopg

        missing: list[tuple[str, str]] = []
        lost = ""
        if self._connection is None:
            try:
                self._connection = self._connect()
            except psycopg.Error as error:
                lost = _reason(error)
        for table, source in self._sources.items():
            if self._connection is None:
                missing.append((f"sql.{table}", lost))
                continue
            try:
                begin_ns = _now_ns()
                cursor = self._connection.execute(source.query.encode(), prepare=True)
                rows = cursor.fetchall()
                source.answers.append((begin_ns, _now_ns(), rows))
                source.columns = [(column.name, column.type_code) for column in cursor.description or ()]
            except psycopg.Error as error:
                missing.append((f"sql.{table}", _reason(error)))
                if self._connection.closed:
                    lost = _reason(error)
                    self._disconnect()
        self._ledger.sample(due_ns, _now_ns(), missing)
        self.samples_taken += 1

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        options = f"-c statement_timeout={int(_PATIENCE_S * 1000)} -c jit=off"
        return psycopg.connect(
            self._dsn,
            autocommit=True,
            application_name="pgdyno probe",
            connect_timeout=max(2, int(_PATIENCE_S)),
            options=options,
        )

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _table(source: _Source) -> pa.Table:
    import pyarrow as pa

    types = {20: pa.int64(), 701: pa.float64()}  # bigint, double precision; everything else is text
    lengths = [len(rows) for _, _, rows in source.answers]
    begin = [begin_ns for (begin_ns, _, _), length in zip(source.answers, lengths, strict=True) for _ in range(length)]
    end = [end_ns for (_, end_ns, _), length in zip(source.answers, lengths, strict=True) for _ in range(length)]
    arrays: dict[str, pa.Array] = {"t_begin_ns": pa.array(begin, pa.int64()), "t_end_ns": pa.array(end, pa.int64())}
    for number, (name, type_oid) in enumerate(source.columns):
        values = [row[number] for _, _, rows in source.answers for row in rows]
        arrays[name] = pa.array(values, types.get(type_oid, pa.string()))
    return pa.table(arrays)


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
