"""Tables and routines that another program has built on an existing server: whether they are those that are driven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError
from .remote import RemoteServer

if TYPE_CHECKING:
    import psycopg

_COLUMNS = """
SELECT c.relname::text, pg_catalog.array_agg(a.attname::text), pg_catalog.has_table_privilege(c.oid, 'SELECT'),
       pg_catalog.pg_table_is_visible(c.oid)
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = pg_catalog.to_regnamespace(%s) AND c.relkind IN ('r', 'p') AND c.relname = ANY (%s)
GROUP BY c.oid, c.relname"""
_ROUTINES = """
SELECT proname::text, prokind::text, pronargs FROM pg_catalog.pg_proc
WHERE pronamespace = pg_catalog.to_regnamespace(%s) AND proname = ANY (%s)"""
_KINDS = {"f": "functions", "p": "procedures"}


@dataclass(frozen=True)
class Built:
    """What there has to be."""

    by: str
    """The program that builds it, in words."""
    schema: str
    columns: Mapping[str, Sequence[str]]
    """Table -> its columns, in any order; there may be more."""
    routines: Mapping[str, int]
    """Routine -> its number of arguments; empty where none are called."""
    routine_kind: str
    """``functions`` or ``procedures``."""
    counted: str
    """The table whose rows say how large all of it is."""
    rows: int
    """That it has to have."""
    size_key: str
    """The key that says it."""
    rows_per_size: float
    """Rows for 1 of that key."""


def require_built(server: RemoteServer, wanted: Built) -> None:
    """Refuse a server on which something of it is missing or is another. :class:`InputError` in one sentence."""
    if server.read_only:
        raise InputError(
            "this server takes no writes (it is a standby, or read-only), and the workload writes",
            remedy="use another server",
        )
    with server.connect() as connection:
        _require_columns(connection, server, wanted)
        _require_routines(connection, server, wanted)
        _require_size(connection, wanted)


def _require_columns(connection: psycopg.Connection[Any], server: RemoteServer, wanted: Built) -> None:
    document = {
        name: (set(columns), may_read, visible)
        for name, columns, may_read, visible in connection.execute(
            _COLUMNS.encode(), (wanted.schema, list(wanted.columns))
        ).fetchall()
    }
    where = f"the schema {wanted.schema} of the database {server.record.dbname}"
    missing = [table for table in wanted.columns if table not in document]
    if missing:
        raise InputError(
            f"{where} has no table {' and no table '.join(missing)}",
            remedy=f"build it with {wanted.by}, name the database where it was built, or omit `schema`: pgdyno then has tables of its own",
        )
    for table, columns in wanted.columns.items():
        there, may_read, visible = document[table]
        lacks = [column for column in columns if column not in there]
        if lacks:
            raise InputError(
                f"the table {wanted.schema}.{table} is not that of {wanted.by}: it has no column {', '.join(lacks)}",
                remedy="name the database where it was built, or omit `schema`",
            )
        if not may_read:
            raise InputError(
                f"the role {server.record.user} may not read {wanted.schema}.{table}",
                remedy="connect as the role that built it",
            )
        if wanted.routines and not visible:
            raise InputError(
                f"the routines would not find {wanted.schema}.{table}: the search_path of the role {server.record.user} hides it",
                remedy=f"run `ALTER ROLE {server.record.user} RESET search_path`",
            )


def _require_routines(connection: psycopg.Connection[Any], server: RemoteServer, wanted: Built) -> None:
    if not wanted.routines:
        return
    rows = connection.execute(_ROUTINES.encode(), (wanted.schema, list(wanted.routines))).fetchall()
    there = {str(name): (_KINDS.get(str(kind), str(kind)), int(arguments)) for name, kind, arguments in rows}
    missing = [name for name in wanted.routines if name not in there]
    if missing:
        raise InputError(
            f"the schema {wanted.schema} of the database {server.record.dbname} has no routine {' and no routine '.join(missing)}",
            remedy=f"let {wanted.by} build its schema again: it makes them last",
        )
    for name, arguments in wanted.routines.items():
        kind, own = there[name]
        if kind != wanted.routine_kind:
            raise InputError(
                f"the routines in the schema {wanted.schema} are {kind}, not {wanted.routine_kind}",
                remedy=f'write routines = "{kind}"',
            )
        if own != arguments:
            raise InputError(
                f"the routine {wanted.schema}.{name} takes {own} arguments, and that of {wanted.by} takes {arguments}",
                remedy=f"build the schema with {wanted.by}",
            )


def _require_size(connection: psycopg.Connection[Any], wanted: Built) -> None:
    row = connection.execute(f"SELECT count(*) FROM {wanted.schema}.{wanted.counted}".encode()).fetchone()
    rows = 0 if row is None else int(row[0])
    if rows != wanted.rows:
        size = rows / wanted.rows_per_size
        raise InputError(
            f"the table {wanted.schema}.{wanted.counted} has {rows:,} rows, and {wanted.rows:,} were asked for",
            remedy=f"write {wanted.size_key} = {size:g}" if rows else f"let {wanted.by} load it",
        )
