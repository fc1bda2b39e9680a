"""Counts rows of a workload's tables, for proofs that the server did what the driver counted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pgdyno.workload.server import Server

from ..base import session
from ..base.errors import InputError, PgdynoError

if TYPE_CHECKING:
    import psycopg

ROWS_COUNTED_MAX = 2_000_000
"""Rows of all tables that are counted unasked: about 0.5 GB of sysbench's, so some seconds on the slowest of the usual volumes."""


@contextlib.contextmanager
def counting(server: Server) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A session that counts, which may take longer than the role's statement_timeout; errors say what the server said."""
    import psycopg

    try:
        with psycopg.connect(server.dsn) as connection:
            connection.execute(session.SERVER_FIRST)
            connection.execute("SET LOCAL statement_timeout = 0")  # not for the session, which a pooler may hand on
            yield connection
    except psycopg.Error as error:
        text = f"the workload's tables cannot be counted: {' '.join(str(error).split())}"
        if isinstance(error, psycopg.ProgrammingError):  # no such table, no right to read it
            raise InputError(text, remedy="create the tables first, and let the role read them") from error
        raise PgdynoError(text, remedy="look at the server's log") from error


def row_counts(server: Server, tables: Iterable[str]) -> dict[str, int]:
    """Rows of each table, by scans of all of them."""
    from psycopg import sql

    row_counts = {}
    with counting(server) as connection:
        for table in tables:
            row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
            row_counts[table] = 0 if row is None else int(row[0])
    return row_counts
