"""What all our sessions have in common, and whether they are sessions of the server's at all.

A connection pooler in transaction mode (PgBouncer and its like) gives each transaction whichever session of the server is
free. What outlives a transaction then belongs to the next client: settings, advisory locks, prepared statements. So
pgdyno leaves nothing behind where a pooler may be between, and what needs a session is refused there before it begins.
"""

from __future__ import annotations

import contextlib
import secrets
import selectors
import time
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import HostError, InputError

if TYPE_CHECKING:
    import psycopg

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

OPTIONS: dict[str, Any] = {
    # Left to the database, psycopg answers with bytes instead of text where the encoding is SQL_ASCII.
    "client_encoding": "UTF8",
    # psycopg would prepare what is executed five times, under names that all of its sessions use.
    "prepare_threshold": None,
}
"""For :func:`psycopg.connect`, of every session."""
SERVER_NAMES = "SET search_path = pg_catalog, pg_temp"
"""For a session of our own in which only the server's functions, operators and views are named: in a schema of the usual path
another role may have put some that suit better (CVE-2018-1058)."""
SERVER_NAMES_LOCAL = SERVER_NAMES.replace("SET", "SET LOCAL")
"""The same for a transaction, which is all that may be set where a connection pooler is between."""
SERVER_FIRST = """
SELECT pg_catalog.set_config('search_path', pg_catalog.btrim(
    pg_catalog.concat('pg_catalog, ', pg_catalog.current_setting('search_path')), ', '), true)
"""
"""For a transaction that names the user's tables too, as a session usually finds them."""
WRITTEN = ("DateStyle = ISO", "IntervalStyle = postgres", "extra_float_digits = 1")
"""For a session of our own that reads definitions and executes them later, perhaps after another session read them: so dates,
intervals and floating-point numbers in them mean the same whatever a role or a database has set (pg_dump does it too)."""
SECOND_SESSION_S = 10.0
"""How long a pooler may take to find a second session of the server: in session mode all of them may be in use."""
_ROUNDS = 8
"""PgBouncer gives the session that was used last, or each in turn: the first round sees either. With a pooler that draws one of
two by chance, a round sees it every second time, and eight miss it once in 256 times."""
_PROCESS = "SELECT pg_catalog.pg_backend_pid()"


class PoolerKind(Enum):
    """What is between us and the server."""

    NONE = "none"
    SESSION = "session"
    """A pooler that gives a session for as long as the connection lasts."""
    TRANSACTION = "transaction"
    """A pooler that gives a session for a transaction."""
    STATEMENT = "statement"
    """A pooler that gives a session for a statement, and allows no transactions of several."""


SHARED = (PoolerKind.TRANSACTION, PoolerKind.STATEMENT)
"""Those in which what outlives a transaction gets to other clients."""


def is_pooled(connection: Connection) -> bool:
    """Whether a pooler answered the log-in: then the process that works for us is not the one that it named."""
    return _process(connection) != connection.info.backend_pid


def pooling(connection: Connection, another: Callable[[], Connection]) -> PoolerKind:
    """What is between; ``another`` opens a second connection of the same string, both in autocommit.

    :class:`~pgdyno.base.errors.HostError` when a pooler gives no second session in :data:`SECOND_SESSION_S`.
    """
    if not is_pooled(connection):
        return PoolerKind.NONE
    with contextlib.closing(another()) as second:
        for _ in range(_ROUNDS):
            before = _process(connection)
            held = _in_transaction(second)
            if held is None:
                return PoolerKind.STATEMENT
            # While the second one holds the session that it was given, the first one may be given another.
            if held == before or _process(connection) != before:
                return PoolerKind.TRANSACTION
            second.execute("ROLLBACK")
    return PoolerKind.SESSION


def require_own(connection: Connection, another: Callable[[], Connection], what: str) -> None:
    """Refuse a pooler that hands sessions on. ``what`` needs one: "loading". :class:`~pgdyno.base.errors.InputError`."""
    kind = pooling(connection, another)
    if kind in SHARED:
        raise InputError(
            f"{what} needs its own sessions, but there is a connection pooler in {kind.value} mode",
            remedy="connect to the server directly, or to a pool in session mode",
        )


def require_prepared(connection: Connection, another: Callable[[], Connection]) -> None:
    """Refuse a pooler through which statements prepared by different clients collide. :class:`~pgdyno.base.errors.InputError`."""
    kind = pooling(connection, another)
    if kind is PoolerKind.STATEMENT or (kind is PoolerKind.TRANSACTION and not _renames_prepared(connection)):
        raise InputError(
            f"there is a connection pooler in {kind.value} mode, which does not keep clients' prepared statements apart",
            remedy="use --protocol simple or extended (workload.protocol in an experiment), connect to the server directly,"
            " or use PgBouncer 1.21 or later with max_prepared_statements",
        )


def _process(connection: Connection) -> int:
    row = connection.execute(_PROCESS).fetchone()
    assert row is not None
    return int(row[0])


def _in_transaction(connection: Connection) -> int | None:
    """Begin a transaction: the process that it is in. None where the pooler refuses it, and closes the connection."""
    import psycopg
    from psycopg import pq

    pgconn = connection.pgconn
    pgconn.send_query(f"BEGIN; {_PROCESS}".encode())
    deadline = time.monotonic() + SECOND_SESSION_S
    process = None
    with selectors.DefaultSelector() as selector, contextlib.suppress(psycopg.OperationalError):
        selector.register(pgconn.socket, selectors.EVENT_READ)
        while True:
            while pgconn.is_busy():
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise HostError(
                        f"the connection pooler gave no second session within {SECOND_SESSION_S:g} s",
                        remedy="raise its pool_size, or connect to the server directly",
                    )
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                break
            if result.status == pq.ExecStatus.TUPLES_OK:
                process = int(result.get_value(0, 0) or b"")
    return process


def _renames_prepared(connection: Connection) -> bool:
    """Whether the pooler gives prepared statements names of its own, which is how it keeps those of its clients apart."""
    from psycopg import sql

    name = f"pgdyno_{secrets.token_hex(8)}"
    # In one transaction, so that the statement is removed where it was made.
    with connection.transaction():
        connection.pgconn.prepare(name.encode(), b"SELECT 1")
        query = "SELECT FROM pg_catalog.pg_prepared_statements WHERE name OPERATOR(pg_catalog.=) %s"
        kept = connection.execute(query, (name,)).fetchone() is not None
        if kept:
            connection.execute(sql.SQL("DEALLOCATE {}").format(sql.Identifier(name)))
    return not kept
