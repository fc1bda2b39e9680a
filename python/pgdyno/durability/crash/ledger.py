"""The ledger: numbered transactions whose acknowledgement is noted outside the server, and what must be there after a cut.

Each client sends the transactions 1, 2, 3, … and reads each answer before it sends the next. A transaction inserts a row, adds its
number to a sum, and rewrites a wide row and some rows of another table, so that a half of it would be seen. Some are rolled
back, some are committed in two phases. Client 0 makes and drops tables.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...server.cluster import Cluster

if TYPE_CHECKING:
    import psycopg

WIDE_ROWS = 40
PAGE_ROWS = 1000
"""Rows of a client in the two tables that its transactions rewrite: the first is hot, the second spreads over many pages."""
PAGES_PER_TRANSACTION = 3
PART_ROWS = 500
ROLLED_BACK_EVERY = 11
TWO_PHASE_EVERY = 7
SCHEMA_CLIENT = 0
"""The client whose transactions make, truncate and drop tables."""
TABLESPACE = "beside"
TABLESPACE_SINCE = 15
"""The first major version with tablespaces inside the data directory, which hold wherever that is mounted."""

SCHEMA = f"""
CREATE EXTENSION amcheck;
CREATE TABLE ledger (client int, number bigint, body text NOT NULL, PRIMARY KEY (client, number));
CREATE TABLE account (client int PRIMARY KEY, count bigint NOT NULL, total bigint NOT NULL);
CREATE TABLE wide (client int, slot int, number bigint NOT NULL, payload text NOT NULL, PRIMARY KEY (client, slot));
ALTER TABLE wide ALTER payload SET STORAGE PLAIN;
CREATE INDEX ON wide (number);
CREATE TABLE page (client int, slot int, number bigint NOT NULL, body text NOT NULL, PRIMARY KEY (client, slot));
ALTER TABLE page ALTER body SET STORAGE PLAIN;
CREATE UNLOGGED TABLE scratch (number bigint PRIMARY KEY);
INSERT INTO account SELECT client, 0, 0 FROM generate_series(0, %(clients)s) AS client;
INSERT INTO wide SELECT client, slot, 0, repeat(md5(client || '/0'), 58)
    FROM generate_series(1, %(clients)s) AS client, generate_series(0, {WIDE_ROWS - 1}) AS slot;
INSERT INTO page SELECT client, slot, 0, repeat(md5(client || '/' || slot || '/0'), 18)
    FROM generate_series(1, %(clients)s) AS client, generate_series(0, {PAGE_ROWS - 1}) AS slot;
"""


@dataclass
class SentTransaction:
    """A transaction as its client saw it, in nanoseconds of CLOCK_MONOTONIC."""

    number: int
    sent_ns: int
    prepared_ns: int | None = None
    acknowledged_ns: int | None = None


@dataclass
class Ledger:
    """What the clients sent and what was acknowledged, by client."""

    clients: dict[int, list[SentTransaction]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As a document."""
        return {
            str(client): [
                [transaction.number, transaction.sent_ns, transaction.prepared_ns, transaction.acknowledged_ns]
                for transaction in sent
            ]
            for client, sent in self.clients.items()
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Ledger:
        """From a document."""
        return cls({int(client): [SentTransaction(*item) for item in sent] for client, sent in document.items()})

    def acknowledgements(self) -> Iterator[int]:
        """The instants at which clients knew that something is committed."""
        for sent in self.clients.values():
            yield from (transaction.acknowledged_ns for transaction in sent if transaction.acknowledged_ns is not None)

    def until(self, cut_ns: int) -> Ledger:
        """What is known when a server was cut at this instant: nothing was sent or acknowledged after it."""

        def before(at: int | None) -> int | None:
            return at if at is not None and at < cut_ns else None

        return Ledger(
            {
                client: [
                    SentTransaction(
                        transaction.number,
                        transaction.sent_ns,
                        before(transaction.prepared_ns),
                        before(transaction.acknowledged_ns),
                    )
                    for transaction in sent
                    if transaction.sent_ns <= cut_ns
                ]
                for client, sent in self.clients.items()
            }
        )

    def bounds(self, client: int, cut_ns: int) -> tuple[int, int]:
        """The last number that must be there after a cut at this instant, and the last one that may be."""
        sent = self.clients[client]
        known = (transaction.prepared_ns or transaction.acknowledged_ns for transaction in sent)
        must = sum(1 for at in known if at is not None and at < cut_ns)
        may = sum(1 for transaction in sent if transaction.sent_ns <= cut_ns)
        return must, may


def page_slots(number: int) -> list[int]:
    """The rows of ``page`` that a transaction rewrites."""
    return [(number * 7919 + part * 104_729) % PAGE_ROWS for part in range(PAGES_PER_TRANSACTION)]


def _statements(client: int, number: int) -> str:
    slots = page_slots(number)
    return f"""
INSERT INTO ledger VALUES ({client}, {number}, repeat(md5('{client}/{number}'), 3));
UPDATE account SET count = count + 1, total = total + {number} WHERE client = {client};
UPDATE wide SET number = {number}, payload = repeat(md5('{client}/{number}'), 58)
    WHERE client = {client} AND slot = {number % WIDE_ROWS};
UPDATE page SET number = {number}, body = repeat(md5(client || '/' || slot || '/{number}'), 18)
    WHERE client = {client} AND slot IN ({", ".join(map(str, slots))});
"""


def _schema_statements(number: int, tablespace: str) -> str:
    """Every second table is made in ``tablespace``."""
    where = f" TABLESPACE {tablespace}" if tablespace and number % 2 == 0 else ""
    return f"""
CREATE TABLE part_{number}{where} AS SELECT id, md5(id::text) AS body FROM generate_series(1, {PART_ROWS}) AS id;
CREATE INDEX ON part_{number} (id);
{f"TRUNCATE part_{number - 1};" if number > 1 else ""}
{f"DROP TABLE part_{number - 2};" if number > 2 else ""}
INSERT INTO ledger VALUES ({SCHEMA_CLIENT}, {number}, repeat(md5('{SCHEMA_CLIENT}/{number}'), 3));
UPDATE account SET count = count + 1, total = total + {number} WHERE client = {SCHEMA_CLIENT};
INSERT INTO scratch VALUES ({number});
"""


def make(cluster: Cluster, clients: int) -> None:
    """Make the tables in an empty database, and a tablespace."""
    with cluster.connect() as connection:
        if tablespace(cluster):
            connection.execute("SET allow_in_place_tablespaces = on")
            connection.execute(f"CREATE TABLESPACE {TABLESPACE} LOCATION ''".encode())
        connection.execute((SCHEMA % {"clients": clients}).encode())


def tablespace(cluster: Cluster) -> str:
    """The tablespace that the cluster has beside its own; empty for a version that cannot have one."""
    return TABLESPACE if cluster.binaries.major >= TABLESPACE_SINCE else ""


class Client(threading.Thread):
    """A client that sends transactions until it is stopped. ``error`` is what ended it before."""

    def __init__(self, cluster: Cluster, client: int, sent: list[SentTransaction], stop: threading.Event) -> None:
        super().__init__(name=f"client-{client}")
        self._cluster, self._client, self._sent, self._stop_event = cluster, client, sent, stop
        self.error: Exception | None = None

    def run(self) -> None:
        """Send until stopped."""
        try:
            with self._cluster.connect() as connection:
                while not self._stop_event.is_set():
                    self._next(connection)
        except Exception as error:  # noqa: BLE001 - it is raised where the thread is joined
            self.error = error
            self._stop_event.set()

    def _next(self, connection: psycopg.Connection[Any]) -> None:
        number = len(self._sent) + 1
        if number % ROLLED_BACK_EVERY == 0:
            connection.execute(f"BEGIN; {_statements(self._client, -number)} ROLLBACK".encode())
        send(connection, self._client, number, self._sent, _statements(self._client, number))


def send_schema_change(connection: psycopg.Connection[Any], sent: list[SentTransaction], tablespace: str) -> None:
    """The next transaction of the client that makes tables, some of them in ``tablespace``."""
    number = len(sent) + 1
    send(connection, SCHEMA_CLIENT, number, sent, _schema_statements(number, tablespace))


def send(
    connection: psycopg.Connection[Any], client: int, number: int, sent: list[SentTransaction], statements: str
) -> None:
    """Send one transaction, and note when its acknowledgements are read."""
    transaction = SentTransaction(number, time.monotonic_ns())
    sent.append(transaction)
    if client != SCHEMA_CLIENT and number % TWO_PHASE_EVERY == 0:
        connection.execute(f"BEGIN; {statements} PREPARE TRANSACTION '{client}_{number}'".encode())
        transaction.prepared_ns = time.monotonic_ns()
        connection.execute(f"COMMIT PREPARED '{client}_{number}'".encode())
    else:
        connection.execute(f"BEGIN; {statements} COMMIT".encode())
    transaction.acknowledged_ns = time.monotonic_ns()


def examine(connection: psycopg.Connection[Any], ledger: Ledger, cut_ns: int) -> list[str]:
    """What is wrong after a cut at ``cut_ns``: commits that are missing, that were never sent, or that are there by half.

    Transactions that were prepared are committed first: their clients may know that they are prepared.
    """
    for (gid,) in connection.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
        connection.execute(f"COMMIT PREPARED '{gid}'".encode())
    examine = list(_of_clients(connection, ledger, cut_ns))
    last: dict[int, int] = dict(connection.execute("SELECT client, count FROM account").fetchall())
    examine += _of_rows(connection, last)
    examine += _of_tables(connection, last.get(SCHEMA_CLIENT, 0))
    return examine


def _of_clients(connection: psycopg.Connection[Any], ledger: Ledger, cut_ns: int) -> Iterator[str]:
    rows = connection.execute(
        "SELECT account.client, account.count, account.total, coalesce(rows, 0), coalesce(low, 1), coalesce(high, 0),"
        " coalesce(whole, true) FROM account LEFT JOIN"
        " (SELECT client, count(*) AS rows, min(number) AS low, max(number) AS high,"
        "  bool_and(body = repeat(md5(client || '/' || number), 3)) AS whole FROM ledger GROUP BY client) AS seen"
        " USING (client) ORDER BY client"
    ).fetchall()
    if len(rows) != len(ledger.clients):
        yield f"{len(rows)} clients of {len(ledger.clients)} are there"
    for client, count, total, there, low, high, whole in rows:
        must, may = ledger.bounds(client, cut_ns)
        if there < must:
            yield f"client {client}: {must - there} acknowledged commits are missing: {there} of {must} are there"
        if high > may:
            yield f"client {client}: number {high} is there, and {may} were sent"
        if (low, high) != (1, there):
            yield f"client {client}: {there} rows have numbers from {low} to {high}"
        if (count, total) != (there, there * (there + 1) // 2):
            yield f"client {client}: the sum is of {count} transactions ({total}), and {there} rows are there"
        if not whole:
            yield f"client {client}: a row of the ledger is damaged"


def _of_rows(connection: psycopg.Connection[Any], last: dict[int, int]) -> Iterator[str]:
    wide = connection.execute(
        "SELECT client, slot, number, payload = repeat(md5(client || '/' || number), 58) FROM wide"
    ).fetchall()
    page = connection.execute(
        "SELECT client, slot, number, body = repeat(md5(client || '/' || slot || '/' || number), 18) FROM page"
    ).fetchall()
    yield from _differences("wide", wide, {client: _wide(count) for client, count in last.items()}, WIDE_ROWS)
    yield from _differences("page", page, {client: _page(count) for client, count in last.items()}, PAGE_ROWS)


def _wide(count: int) -> dict[int, int]:
    return {number % WIDE_ROWS: number for number in range(max(1, count - WIDE_ROWS + 1), count + 1)}


def _page(count: int) -> dict[int, int]:
    return {slot: number for number in range(1, count + 1) for slot in page_slots(number)}


def _differences(
    table: str, rows: Iterable[tuple[Any, ...]], expected: dict[int, dict[int, int]], size: int
) -> Iterator[str]:
    seen = {(client, slot) for client, slot, _, _ in rows}
    clients = len(expected) - 1
    if len(seen) != clients * size:
        yield f"{table}: {len(seen)} rows of {clients * size} are there"
    wrong = [
        (client, slot, number)
        for client, slot, number, whole in rows
        if not whole or number != expected.get(client, {}).get(slot, 0)
    ]
    if wrong:
        client, slot, number = wrong[0]
        should = expected.get(client, {}).get(slot, 0)
        yield f"{table}: {len(wrong)} rows differ; row {slot} of client {client} is of transaction {number}, not {should}"


def _of_tables(connection: psycopg.Connection[Any], count: int) -> Iterator[str]:
    names = connection.execute("SELECT relname FROM pg_class WHERE relname ~ '^part_[0-9]+$'").fetchall()
    expected = {f"part_{count - back}": PART_ROWS * (back == 0) for back in (0, 1) if count - back > 0}
    document = {}
    for (name,) in names:
        (rows,) = connection.execute(f"SELECT count(*) FROM {name} WHERE body = md5(id::text)".encode()).fetchone() or (
            0,
        )
        document[name] = rows
    if document != expected:
        yield f"after {count} schema changes the tables are {document}, not {expected}"
    (scratch,) = connection.execute("SELECT count(*) FROM scratch").fetchone() or (0,)
    if scratch:
        yield f"the unlogged table has {scratch} rows after a crash"
