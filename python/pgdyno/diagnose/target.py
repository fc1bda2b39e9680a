"""The server that is watched: what it is, through what it is reached, and whether it may be watched at all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pgdyno import session
from pgdyno.errors import HostError, InputError
from pgdyno.postgres.remote import RemoteServer, connect

if TYPE_CHECKING:
    import pyarrow as pa

_CONSOLE = "pgbouncer"
"""The database of PgBouncer that is its own console."""
_IDENTITY = """
SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE'), current_user::pg_catalog.text
"""
_ONE_PIECE = (
    ("started_unix_ms", "the server was restarted while it was watched"),
    ("reset_unix_ms", "the server's statistics were reset while it was watched"),
)
_NEVER_FALL = {
    "probe/wal": ("wal_bytes",),
    # Reset apart: what is written is the checkpointer's, what is allocated the background writer's.
    "probe/checkpointer": ("buffers_written", "buffers_alloc"),
    "probe/io": ("reads", "writes", "extends", "hits"),
}
"""Counters that only a reset makes smaller: the sum over the rows of a sample."""


@dataclass(frozen=True)
class Target:
    """A server as one connection showed it."""

    server: RemoteServer
    standby: bool
    pooler: bool
    """Whether a connection pooler is between."""
    role: str
    sees_all: bool
    """Whether the role may see what other roles' sessions do."""


def target_of(dsn: str) -> Target:
    """Connect and look. :class:`~pgdyno.errors.InputError` or :class:`~pgdyno.errors.HostError` where it cannot be watched."""
    import psycopg

    try:
        server = RemoteServer.open(dsn)
        with connect(dsn) as connection:
            row = connection.execute(_IDENTITY).fetchone()
            pooled = session.is_pooled(connection)
    except psycopg.Error as error:
        if _is_console(dsn):
            raise InputError(
                "this is the console of PgBouncer, and no database", remedy="connect to a database through it"
            ) from error
        raise HostError(
            f"the server cannot be looked at: {str(error).strip().partition(chr(10))[0]}",
            remedy="check the connection string, and that it is PostgreSQL",
        ) from error
    assert row is not None
    return Target(server, standby=row[0], pooler=pooled, role=row[2], sees_all=row[1])


def require_one_piece(tables: dict[str, pa.Table]) -> None:
    """Refuse counters that began again at 0 while the server was watched. :class:`HostError` says by what."""
    database = tables.get("probe/database")
    for column, what in _ONE_PIECE if database is not None else ():
        assert database is not None
        # None is a database that was never reset; once it has a time, it was.
        if column in database.column_names and len(set(database[column].to_pylist())) > 1:
            raise HostError(what, remedy="watch it again: counters that begin again at 0 cannot be judged")
    for name, columns in _NEVER_FALL.items():
        for column in columns if name in tables else ():
            if any(later < earlier for earlier, later in pairwise(_sums(tables[name], column))):
                raise HostError(
                    _ONE_PIECE[1][1], remedy="watch it again: counters that begin again at 0 cannot be judged"
                )


def _sums(table: pa.Table, column: str) -> list[int]:
    """The sum over the rows of each sample, in order of time."""
    of_samples = table.group_by("t_begin_ns").aggregate([(column, "sum")]).sort_by("t_begin_ns")
    return [value for value in of_samples[f"{column}_sum"].to_pylist() if value is not None]


def _is_console(dsn: str) -> bool:
    from pgdyno import endpoint

    return endpoint.effective(dsn).get("dbname") == _CONSOLE
