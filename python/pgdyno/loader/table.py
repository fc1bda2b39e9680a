"""The table that is loaded: what it is, what may be done to it, its columns, and what of it makes COPY slow."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.loader.format import bare
from pgdyno.loader.server import many, maybe, one, said, usual_names
from pgdyno.loader.sql import quoted

from ..base.errors import InputError
from ..base.session import Connection

_KINDS = {"v": "a view", "m": "a materialized view", "S": "a sequence", "i": "an index", "c": "a type", "I": "an index"}
_TABLE = """
SELECT c.oid, n.nspname, c.relname, format('%%I.%%I', n.nspname, c.relname), c.relkind::text, c.relpersistence::text,
       pg_has_role(c.relowner, 'USAGE'), greatest(c.reltuples, 0)::float8,
       CASE WHEN c.relkind = 'r' THEN pg_relation_size(c.oid) ELSE 0 END,
       coalesce(c.reloptions, '{}'), coalesce(t.spcname, d.spcname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_database b ON b.datname = current_database() JOIN pg_tablespace d ON d.oid = b.dattablespace
LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
WHERE c.oid = %s
"""
_COLUMNS = """
SELECT a.attname, quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), a.attgenerated <> '',
       pg_get_expr(d.adbin, d.adrelid)
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_TRIGGERS = """
SELECT tgname, (tgtype & 2) <> 0 OR (tgtype & 64) <> 0
FROM pg_trigger WHERE tgrelid = %s AND NOT tgisinternal AND (tgtype & 4) <> 0 AND tgenabled <> 'D' ORDER BY tgname
"""
_VOLATILE = (
    "SELECT DISTINCT proname FROM pg_proc WHERE proname = ANY(%s) AND provolatile = 'v' AND proname <> 'nextval'"
)
_OF_THE_SERVER = ("pg_catalog", "information_schema", "pg_toast")
"""Schemas of the system catalogue: a row there is an object of the database, or a damaged database."""
_CALLED = re.compile(r"(\w+)\s*\(")


@dataclass(frozen=True)
class TableColumn:
    """A column."""

    name: str
    quoted: str
    type: str
    generated: bool = False
    """Computed by the server: not to be loaded."""
    default: str | None = None


@dataclass(frozen=True)
class TargetTable:
    """A table, as the server has it now."""

    oid: int
    schema: str
    name: str
    quoted: str
    """With its schema, as SQL writes it."""
    kind: str
    """``r``: a table, ``p``: a partitioned one, ``f``: a foreign one."""
    unlogged: bool
    owned: bool
    """Whether the role may alter it."""
    rows: float
    """About; by the last VACUUM or ANALYZE."""
    bytes: int
    options: tuple[str, ...]
    """Its storage parameters, as ``fillfactor=70``."""
    tablespace: str
    columns: tuple[TableColumn, ...] = field(repr=False)

    @property
    def loadable(self) -> tuple[TableColumn, ...]:
        """Columns that a file may have values of."""
        return tuple(column for column in self.columns if not column.generated)


def name_of(table: str | None, sources: Sequence[str]) -> str:
    """The table's name as SQL writes it: as asked for, else after the one file."""
    if table is not None:
        return table
    if len(sources) > 1 or sources[0] == "standard input":
        raise InputError("the files do not say which table is meant", remedy="name it with --table")
    stem = Path(bare(sources[0])).stem.lower()
    return '"' + (re.sub(r"\W+", "_", stem).strip("_") or "loaded") + '"'


def parts(connection: Connection, name: str) -> list[str]:
    """Schema and name, or the name alone, unquoted. :class:`InputError` for an invalid name."""
    import psycopg

    try:
        parts: list[str] = one(connection, "SELECT parse_ident(%s)", (name,))[0]
    except psycopg.Error as error:
        quoted = shlex.quote('"' + name.replace('"', "") + '"')
        raise InputError(
            f"--table: {name} is not a name as SQL writes it ({said(error)})",
            remedy=f"write `title` or `imdb.title`; a name with spaces or capitals needs quotes within quotes: --table {quoted}",
        ) from None
    if len(parts) > 2:
        raise InputError(f"--table: {name} has more than a schema and a name", remedy="write it as `imdb.title`")
    return parts


def find(connection: Connection, name: str) -> TargetTable | None:
    """The table of that name, in the search path unless it has a schema; None when there is none."""
    written = ".".join(quoted(part) for part in parts(connection, name))
    with connection.transaction(), usual_names(connection):
        oid = one(connection, "SELECT pg_catalog.to_regclass(%s)::pg_catalog.oid", (written,))[0]
    return None if oid is None else of(connection, int(oid))


def schema_of(connection: Connection, name: str) -> str:
    """The schema in which a table of that name is to be made: where psql would make it, unless the name has one."""
    named = parts(connection, name)
    if len(named) > 1:
        return named[0]
    with connection.transaction(), usual_names(connection):
        schema = one(connection, "SELECT pg_catalog.current_schema()")[0]
    if schema is None:
        raise InputError(f"there is no schema to make the table {name} in", remedy="name one, as `--table app.name`")
    return str(schema)


def of(connection: Connection, oid: int) -> TargetTable:
    """The table of an object identifier."""
    row = one(connection, _TABLE, (oid,))
    columns = tuple(TableColumn(*item) for item in many(connection, _COLUMNS, (oid,)))
    number, schema, name, written, kind, persistence, owned, rows, size, options, tablespace = row
    return TargetTable(
        number,
        schema,
        name,
        written,
        kind,
        unlogged=persistence == "u",
        owned=owned,
        rows=rows,
        bytes=int(size),
        options=tuple(options),
        tablespace=tablespace,
        columns=columns,
    )


def check(
    connection: Connection, table: TargetTable, *, truncate: bool, upsert: bool = False, staged: bool = False
) -> None:
    """Refuses what cannot be loaded, and what this role may not do.

    ``upsert``: rows that are there are replaced. ``staged``: rows are merged from a table like this one.
    """
    if table.schema in _OF_THE_SERVER:
        raise InputError(
            f"{table.quoted} belongs to the system catalogue, which is not loaded",
            remedy="name another table with --table",
        )
    if table.kind in _KINDS:
        raise InputError(f"{table.quoted} is {_KINDS[table.kind]}, not a table", remedy="name a table with --table")
    rights = [
        "INSERT",
        *(["TRUNCATE"] if truncate else []),
        *(["SELECT"] if staged or upsert else []),
        *(["UPDATE"] if upsert else []),
    ]
    for right in rights:
        if not one(connection, "SELECT has_table_privilege(%s::oid, %s)", (table.oid, right))[0]:
            role = one(connection, "SELECT quote_ident(current_user)")[0]
            raise InputError(
                f"the role {role} may not {right} the table {table.quoted}",
                remedy=f"run as its owner `GRANT {right} ON {table.quoted} TO {role}`",
            )
    if table.kind == "r":
        protected = maybe(connection, "SELECT row_security_active(%s::oid)", (table.oid,))
        if protected and protected[0]:
            raise InputError(
                f"{table.quoted} has row-level security, and COPY does not load such tables",
                remedy="load as its owner, or as a role with BYPASSRLS",
            )


def is_empty(connection: Connection, table: TargetTable) -> bool:
    """Whether there is no row. For a role without SELECT the answer is that there are some."""
    if not one(connection, "SELECT has_table_privilege(%s::oid, 'SELECT')", (table.oid,))[0]:
        return False
    return not one(connection, f"SELECT EXISTS (SELECT FROM {table.quoted})")[0]


def slow_paths(connection: Connection, table: TargetTable, loaded: Sequence[str]) -> list[str]:
    """What makes COPY insert row by row here (copyfrom.c of PostgreSQL 18 lists it), in words."""
    slow_paths = []
    for trigger, before in many(connection, _TRIGGERS, (table.oid,)):
        when = "before the row: COPY inserts row by row" if before else "after each row or statement"
        slow_paths.append(f"the trigger {trigger} fires {when}")
    for column in table.columns:
        if column.default is None or column.generated or not loaded or column.name in loaded:
            continue
        called = _CALLED.findall(column.default)
        names = many(connection, _VOLATILE, (called,)) if called else []
        if names:
            slow_paths.append(f"the default of {column.name} calls {names[0][0]}(): COPY inserts row by row")
    if table.kind == "p":
        slow_paths.append(
            "it is partitioned: rows are routed one by one; load a partition by its own name where you can"
        )
    if table.kind == "f":
        slow_paths.append("it is a foreign table: rows go through another server")
    return slow_paths
