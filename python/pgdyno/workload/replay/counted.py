"""What pg_stat_statements has counted of each statement, and what of it is between two times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ...base.errors import InputError

if TYPE_CHECKING:
    import psycopg

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

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
VERSION_MIN = (1, 8)
_STATEMENTS = """
SELECT role.rolname, seen.queryid, {toplevel}, seen.query, {columns}
FROM {schema}.pg_stat_statements AS seen
JOIN pg_catalog.pg_database AS base ON base.oid OPERATOR(pg_catalog.=) seen.dbid
LEFT JOIN pg_catalog.pg_roles AS role ON role.oid OPERATOR(pg_catalog.=) seen.userid
WHERE base.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
ORDER BY seen.calls DESC, seen.queryid
"""
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_NUMBER = re.compile(r"(?<![\w$.])\d[\w.]*")
_HIDDEN = "<insufficient privilege>"
_MARK = re.compile(
    r"/\*|--[^\r\n]*|\"(?:[^\"]|\"\")*\"?|(?<![\w$])[Ee]'(?:[^'\\]|''|\\.)*'?|'(?:[^']|'')*'?|(?<![\w$])\$((?:[^\W\d]\w*)?)\$.*?(?:\$\1\$|\Z)",
    re.DOTALL,
)
"""Where a comment, a name in quotes or a literal begins; of the last two also their end."""
_NESTED = re.compile(r"/\*|\*/")
_PLACE = re.compile(r"\$\d+")
_LIST = re.compile(r"\?(?:\s*,\s*\?)+")
_SPACE = re.compile(r"\s+")


def counted(connection: Connection) -> list[dict[str, Any]]:
    """Every statement of the session's database, without its literals.

    :class:`InputError` when pg_stat_statements is missing, not loaded, or does not show other roles' statements.
    """
    import psycopg

    result = connection.execute(_EXTENSION).fetchone()
    if result is None:
        raise InputError(
            f"the database {connection.info.dbname} has no pg_stat_statements",
            remedy="add it to shared_preload_libraries, start the server again, and CREATE EXTENSION pg_stat_statements",
        )
    try:
        return _statements(connection, str(result[0]), str(result[1]))
    except (psycopg.errors.ObjectNotInPrerequisiteState, psycopg.errors.InsufficientPrivilege) as error:
        raise InputError(
            f"pg_stat_statements cannot be read: {error.diag.message_primary}",
            remedy="add it to shared_preload_libraries, or connect as a role that may read it",
        ) from error


def _statements(connection: Connection, schema: str, version: str) -> list[dict[str, Any]]:
    number = _numbered(version)
    if number < VERSION_MIN:
        raise _too_old(connection, version)
    toplevel = "seen.toplevel" if number >= (1, 9) else "true"
    columns = ", ".join(f"seen.{column}" for column in _COLUMNS)
    query = _STATEMENTS.format(schema=schema, toplevel=toplevel, columns=columns)
    rows = connection.execute(query.encode()).fetchall()
    if any(row[3] == _HIDDEN for row in rows):
        raise InputError(
            "this role does not see the statements of others",
            remedy="connect as a member of pg_read_all_stats, for example after GRANT pg_read_all_stats TO your role",
        )
    names = ("role", "queryid", "toplevel", "query", *_COLUMNS)
    statements = [dict(zip(names, row, strict=True)) for row in rows]
    for statement in statements:
        statement["query"] = without_literals(str(statement["query"]))
        statement["wal_bytes"] = int(statement["wal_bytes"])
    return statements


def _numbered(version: str) -> tuple[int, int]:
    """``1.7`` as numbers; a version of another form is taken to be a new one."""
    parts = version.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        return VERSION_MIN
    return int(parts[0]), int(parts[1])


def _too_old(connection: Connection, version: str) -> InputError:
    """An extension whose SQL was not updated with the server, as pg_upgrade leaves it; or a server that has no newer one."""
    named = f"the database {connection.info.dbname} has pg_stat_statements {version}"
    data = {"version": version, "database": connection.info.dbname}
    if connection.info.server_version < 130000:
        return InputError(
            f"{named}, which does not count WAL: the server is older than PostgreSQL 13",
            remedy="use a server of version 13 or later",
            code="statements.server.old",
            data=data,
        )
    return InputError(
        f"{named}, which is older than the server: it was not updated with it",
        remedy=f"run `ALTER EXTENSION pg_stat_statements UPDATE` in the database {connection.info.dbname}, as the extension's owner",
        code="statements.extension.old",
        data=data,
    )


def without_literals(text: str) -> str:
    """A statement as pg_stat_statements has it, without comments, into which tools write values, and without the literals that those of utility
    commands still have until version 15.

    One whose literals cannot be told apart by simple rules is reduced to its first word.
    """
    text = without_comments(text)
    if "password" in text.lower() or "\\" in text or "$$" in text or re.search(r"\$\w+\$", text):
        return f"{text.split(maxsplit=1)[0]} …" if text.split() else ""
    return _NUMBER.sub("?", _LITERAL.sub("?", text))


def without_comments(text: str) -> str:
    """A statement with a blank in the place of each comment; comments nest, and what looks like one in a literal or a name is none."""
    kept, at = [], 0
    while (match := _MARK.search(text, at)) is not None:
        kept.append(text[at : match.start()])
        if match.group() == "/*":
            kept.append(" ")
            at = _comment_end(text, match.end())
        elif match.group().startswith("--"):
            kept.append(" ")
            at = match.end()
        else:
            kept.append(match.group())
            at = match.end()
    return "".join([*kept, text[at:]]).strip() if kept else text


def _comment_end(text: str, at: int) -> int:
    """Where a comment ends whose inside begins ``at``; the end of a text that is cut."""
    depth = 1
    for match in _NESTED.finditer(text, at):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return match.end()
    return len(text)


def shape_of(text: str) -> str:
    """What statements of several servers are compared by: a parameter, a constant and a list of them are one ``?``.

    PostgreSQL 18 writes a list of constants as ``$1 /*, ... */``, and others write all of them.
    """
    bare = _PLACE.sub("?", without_comments(text))
    return _LIST.sub("?", _SPACE.sub(" ", bare)).replace("? )", "?)").strip().rstrip(";").rstrip()


@dataclass(frozen=True)
class Counts:
    """What a statement did."""

    calls: int
    rows: int
    exec_ms: float
    wal_records: int
    wal_images: int
    """Whole pages in the WAL: they follow from checkpoints and not from the statement."""
    wal_bytes: int
    blocks: int
    """Blocks of tables and indexes that were asked for, whether or not they were in shared_buffers."""


def grown(
    before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]], roles: Collection[str]
) -> dict[str, Counts]:
    """Shape -> what its statements did between two readings, of some roles; of all roles if none is named.

    A statement whose counters fell was evicted meanwhile: it counts from zero.
    """
    first = {_identity(document): document for document in before}
    sums: dict[str, Counter[str]] = {}
    for document in after:
        if roles and document["role"] not in roles:
            continue
        earlier = first.get(_identity(document))
        if earlier is not None and earlier["calls"] > document["calls"]:
            earlier = None
        of_shape = sums.setdefault(shape_of(document["query"]), Counter())
        for name in _COLUMNS:
            of_shape[name] += document[name] - (0 if earlier is None else earlier[name])
    return {shape: _counts(other) for shape, other in sums.items() if other["calls"] > 0}


def fallen(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> float:
    """Share of the calls of the first reading whose counters are smaller in the second, or gone: 1 after a reset."""
    last = {_identity(document): document["calls"] for document in after}
    calls = sum(document["calls"] for document in before)
    lost = sum(document["calls"] for document in before if last.get(_identity(document), 0) < document["calls"])
    return lost / calls if calls else 0.0


def _identity(document: Mapping[str, Any]) -> tuple[Any, ...]:
    return document["role"], document["queryid"], document["toplevel"]


def _counts(document: Mapping[str, Any]) -> Counts:
    return Counts(
        calls=document["calls"],
        rows=document["rows"],
        exec_ms=document["total_exec_time"],
        wal_records=document["wal_records"],
        wal_images=document["wal_fpi"],
        wal_bytes=document["wal_bytes"],
        blocks=document["shared_blks_hit"] + document["shared_blks_read"],
    )
