"""What a server has counted, kept as one document: pg_stat_statements, settings, sequences, sizes.

Two of them, before and after a capture, say what its statements did in production. No literal of a statement is kept.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from pgdyno import session
from pgdyno.errors import InputError
from pgdyno.postgres import remote

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

VERSION = 1
"""The form of the document."""
_EXTENSION = """
SELECT pg_catalog.quote_ident(space.nspname), extension.extversion
FROM pg_catalog.pg_extension AS extension JOIN pg_catalog.pg_namespace AS space ON space.oid = extension.extnamespace
WHERE extension.extname OPERATOR(pg_catalog.=) 'pg_stat_statements'
"""
_COLUMNS = (
    "calls",
    "rows",
    "total_exec_time",
    "shared_blks_hit",
    "shared_blks_read",
    "shared_blks_dirtied",
    "shared_blks_written",
    "wal_records",
    "wal_fpi",
    "wal_bytes",
)
"""Columns of pg_stat_statements 1.8 and later, which is PostgreSQL 13's."""
_STATEMENTS = """
SELECT role.rolname, seen.queryid, {toplevel}, seen.query, {columns}
FROM {schema}.pg_stat_statements AS seen
JOIN pg_catalog.pg_database AS base ON base.oid OPERATOR(pg_catalog.=) seen.dbid
LEFT JOIN pg_catalog.pg_roles AS role ON role.oid OPERATOR(pg_catalog.=) seen.userid
WHERE base.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
ORDER BY seen.calls DESC, seen.queryid
"""
_SEQUENCES = """
SELECT schemaname, sequencename, last_value, increment_by, cache_size FROM pg_catalog.pg_sequences ORDER BY 1, 2
"""
_SIZES = """
SELECT space.nspname, class.relname, class.relkind::pg_catalog.text, pg_catalog.pg_relation_size(class.oid)
FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
WHERE class.relkind::pg_catalog.text OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'm', 'i', 't'])
  AND space.nspname OPERATOR(pg_catalog.<>) ALL (ARRAY['pg_catalog', 'information_schema'])
ORDER BY 1, 2
"""
_NOW = """
SELECT pg_catalog.current_setting('server_version'), pg_catalog.current_database(),
       (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::pg_catalog.int8,
       pg_catalog.pg_database_size(pg_catalog.current_database())
"""
_SECRET_SETTING = re.compile(r"conninfo|command|passphrase|password", re.IGNORECASE)
"""Settings whose values may name a password."""
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_NUMBER = re.compile(r"(?<![\w$.])\d[\w.]*")
_HIDDEN = "<insufficient privilege>"


def stats(dsn: str) -> dict[str, Any]:
    """Read one document from a server, in one transaction that writes nothing.

    :class:`InputError` when pg_stat_statements is missing or does not show other roles' statements.
    """
    import psycopg

    with remote.connect(dsn) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(session.SERVER_NAMES_LOCAL)
        version, database, at_us, size_bytes = remote.row_of(connection, _NOW)
        found = connection.execute(_EXTENSION).fetchone()
        if found is None:
            raise InputError(
                f"the database {database} has no pg_stat_statements",
                remedy="add it to shared_preload_libraries, start the server again, and CREATE EXTENSION pg_stat_statements",
            )
        try:
            statements = _statements(connection, str(found[0]), str(found[1]))
        except (psycopg.errors.ObjectNotInPrerequisiteState, psycopg.errors.InsufficientPrivilege) as error:
            why = error.diag.message_primary
            raise InputError(
                f"pg_stat_statements cannot be read: {why}",
                remedy="add it to shared_preload_libraries, or connect as a role that may read it",
            ) from error
        settings = connection.execute(
            "SELECT name, setting, unit, source FROM pg_catalog.pg_settings ORDER BY name"
        ).fetchall()
        sequences = connection.execute(_SEQUENCES).fetchall()
        sizes = connection.execute(_SIZES).fetchall()
        connection.execute("ROLLBACK")
    return {
        "stats_version": VERSION,
        "taken_unix_ns": time.time_ns(),
        "server_time_us": at_us,
        "server_version": version,
        "database": database,
        "size_bytes": size_bytes,
        "statements": statements,
        "settings": [
            dict(zip(("name", "setting", "unit", "source"), row, strict=True))
            for row in settings
            if not _SECRET_SETTING.search(row[0])
        ],
        "sequences": [
            dict(zip(("schema", "name", "last_value", "increment", "cache"), row, strict=True)) for row in sequences
        ],
        "relations": [dict(zip(("schema", "name", "kind", "size_bytes"), row, strict=True)) for row in sizes],
    }


def _statements(connection: Connection, schema: str, version: str) -> list[dict[str, Any]]:
    toplevel = "seen.toplevel" if tuple(map(int, version.split("."))) >= (1, 9) else "true"
    columns = ", ".join(f"seen.{column}" for column in _COLUMNS)
    query = _STATEMENTS.format(schema=schema, toplevel=toplevel, columns=columns)
    rows = connection.execute(query.encode()).fetchall()
    if any(row[3] == _HIDDEN for row in rows):
        raise InputError(
            "this role does not see the statements of others",
            remedy="connect as a member of pg_read_all_stats, for example after GRANT pg_read_all_stats TO your role",
        )
    names = ("role", "queryid", "toplevel", "query", *_COLUMNS)
    found = [dict(zip(names, row, strict=True)) for row in rows]
    for one in found:
        one["query"] = without_literals(str(one["query"]))
        one["wal_bytes"] = int(one["wal_bytes"])
    return found


def without_literals(text: str) -> str:
    """A statement as pg_stat_statements has it, without the literals that those of utility commands still have until version 15.

    One whose literals cannot be told apart by simple rules is reduced to its first word.
    """
    if "password" in text.lower() or "\\" in text or "$$" in text or re.search(r"\$\w+\$", text):
        return f"{text.split(maxsplit=1)[0]} …" if text.split() else ""
    return _NUMBER.sub("?", _LITERAL.sub("?", text))
