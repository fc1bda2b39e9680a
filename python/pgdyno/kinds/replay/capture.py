"""Statements of a capture: counts of pg_stat_statements, and rows of COPY FROM STDIN, which no log has."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...base import engine
from ...base.errors import InputError
from ...base.session import Connection

if TYPE_CHECKING:
    pass


_EXTENSION = """
SELECT pg_catalog.quote_ident(space.nspname), extension.extversion
FROM pg_catalog.pg_extension AS extension JOIN pg_catalog.pg_namespace AS space ON space.oid = extension.extnamespace
WHERE extension.extname OPERATOR(pg_catalog.=) 'pg_stat_statements'
"""
_COUNTERS = (
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
            remedy="add it to shared_preload_libraries, restart the server, and CREATE EXTENSION pg_stat_statements",
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
    columns = ", ".join(f"seen.{column}" for column in _COUNTERS)
    query = _STATEMENTS.format(schema=schema, toplevel=toplevel, columns=columns)
    rows = connection.execute(query.encode()).fetchall()
    if any(row[3] == _HIDDEN for row in rows):
        raise InputError(
            "this role does not see the statements of others",
            remedy="connect as a member of pg_read_all_stats, for example after GRANT pg_read_all_stats TO your role",
        )
    names = ("role", "queryid", "toplevel", "query", *_COUNTERS)
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
    """Key by which statements of several servers are compared: a parameter, a constant and a list of them are one ``?``.

    PostgreSQL 18 writes a list of constants as ``$1 /*, ... */``, and others write all of them.
    """
    bare = _PLACE.sub("?", without_comments(text))
    return _LIST.sub("?", _SPACE.sub(" ", bare)).replace("? )", "?)").strip().rstrip(";").rstrip()


@dataclass(frozen=True)
class Counts:
    """Work of a statement."""

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
        for name in _COUNTERS:
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


Copied = Literal["left_out", "made"]
"""Treatment of a COPY whose rows are not in the capture."""
VALUES_MAX = 200
"""Values of a column that are read from its table where it has no statistics, as json has none."""
BESIDE = 1_000_000
"""Numbers of a column with a sequence are made so far behind the last one: the statements of the replay take those in between."""
_NAME = r'(?:"(?:[^"]|"")+"|[\w$]+)'
_COPY = re.compile(
    rf"\s*COPY\s+(?P<table>{_NAME}(?:\s*\.\s*{_NAME})?)\s*(?:\((?P<columns>[^)]*)\))?\s*FROM\s+STDIN\b(?P<options>[^;]*);?\s*",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"\s*(?:WITH\s*)?(?:\(\s*(?:FORMAT\s+'?text'?)?\s*\)|TEXT)?\s*", re.IGNORECASE)
"""Options with which the rows are in COPY's own text format."""
_SHOW_S = 3600.0
"""A capture of a day has some ten gigabytes, which are read once."""
_TABLE = """
SELECT class.oid::pg_catalog.text, pg_catalog.format('%%I.%%I', space.nspname, class.relname), space.nspname, class.relname
FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
WHERE class.oid = coalesce(pg_catalog.to_regclass(%(name)s), (
    SELECT CASE pg_catalog.count(*) WHEN 1 THEN pg_catalog.min(other.oid::pg_catalog.int8)::pg_catalog.oid END
    FROM pg_catalog.pg_class AS other JOIN pg_catalog.pg_namespace AS its ON its.oid = other.relnamespace
    WHERE other.relname = %(bare)s AND other.relkind IN ('r', 'p') AND its.nspname NOT LIKE 'pg\\_%%'))
"""
"""A table by its name, in the search path of the session or as the only one of its name."""
_COLUMNS = """
SELECT attribute.attnum, attribute.attname, pg_catalog.format_type(attribute.atttypid, NULL),
       attribute.attidentity <> '' OR coalesce(pg_catalog.pg_get_expr(def.adbin, def.adrelid), '') LIKE 'nextval(%%',
       EXISTS (SELECT FROM pg_catalog.pg_constraint AS key
               WHERE key.conrelid = attribute.attrelid AND key.contype = 'f' AND attribute.attnum = ANY (key.conkey))
FROM pg_catalog.pg_attribute AS attribute
LEFT JOIN pg_catalog.pg_attrdef AS def ON def.adrelid = attribute.attrelid AND def.adnum = attribute.attnum
WHERE attribute.attrelid = %s::pg_catalog.oid AND attribute.attnum > 0 AND NOT attribute.attisdropped AND attribute.attgenerated = ''
ORDER BY attribute.attnum
"""
_UNIQUE = """
SELECT pg_catalog.string_to_array(indkey::pg_catalog.text, ' ')::pg_catalog.int2[]
FROM pg_catalog.pg_index WHERE indrelid = %s::pg_catalog.oid AND indisunique
"""
_STATISTICS = """
SELECT null_frac, most_common_vals::pg_catalog.text::pg_catalog.text[], most_common_freqs, histogram_bounds::pg_catalog.text::pg_catalog.text[]
FROM pg_catalog.pg_stats WHERE schemaname = %s AND tablename = %s AND attname = %s ORDER BY inherited LIMIT 1
"""
_NUMBERS = ("smallint", "integer", "bigint")


@dataclass(frozen=True)
class CopyColumn:
    """A column that a COPY fills."""

    number: int
    name: str
    kind: str
    has_sequence: bool
    refers: bool
    """To another table: its values are those that the column has."""


def copy_texts(capture: str, stamp: tuple[int, int]) -> dict[str, str]:
    """Shape -> text of each COPY FROM STDIN of a capture that has not changed since ``stamp``."""
    return dict(_texts(capture, stamp))


@functools.lru_cache(maxsize=8)
def _texts(capture: str, stamp: tuple[int, int]) -> tuple[tuple[str, str], ...]:
    del stamp
    shown = engine.run_json(
        ["capture", "show"], {"capture": capture, "values": True, "session": None}, timeout_s=_SHOW_S
    )
    results = ((statement["shape"], statement["example"]["text"]) for statement in shown["statements"])
    return tuple((shape, text) for shape, text in results if _COPY.fullmatch(text))


def copies_made(connection: Connection, texts: Mapping[str, str], work: Mapping[str, Counts]) -> list[dict[str, Any]]:
    """The engine's input: of each COPY whose rows can be made, how many an execution has, and what its columns get.

    ``work`` is what production counted. What is missing here is left out by the engine: formats other than text, tables that are empty or
    not there, unique columns of which no new value can be made, and COPYs that production did not count.
    """
    results = []
    for shape, text in texts.items():
        counted = work.get(shape_of(without_literals(text)))
        if counted is None or not counted.calls:
            continue
        columns = _columns(connection, text)
        if columns is not None:
            results.append({"shape": shape, "rows": counted.rows / counted.calls, "columns": columns})
    return results


def _columns(connection: Connection, text: str) -> list[dict[str, Any]] | None:
    named = _COPY.fullmatch(text)
    if named is None or not _PLAIN.fullmatch(named["options"]):
        return None
    name = re.sub(r"\s*\.\s*", ".", named["table"])
    bare = _unquoted(re.findall(_NAME, name)[-1])
    row = connection.execute(_TABLE.encode(), {"name": name, "bare": bare}).fetchone()
    if row is None:
        return None
    oid, qualified, schema, table = map(str, row)
    there = [CopyColumn(*row) for row in connection.execute(_COLUMNS.encode(), (oid,)).fetchall()]
    wanted = there
    if named["columns"]:
        by_name = {column.name: column for column in there}
        names = [_unquoted(part.strip()) for part in named["columns"].split(",")]
        if any(name not in by_name for name in names):
            return None
        wanted = [by_name[name] for name in names]
    unique = [list(row[0]) for row in connection.execute(_UNIQUE.encode(), (oid,)).fetchall()]
    fresh = _fresh(wanted, unique)
    if fresh is None:
        return None
    specs = []
    for column in wanted:
        spec = (
            _new(connection, qualified, column)
            if column.number in fresh
            else _drawn(connection, (qualified, schema, table), column)
        )
        if spec is None:
            return None
        specs.append(spec)
    return specs


def _fresh(wanted: Sequence[CopyColumn], unique: Sequence[Sequence[int]]) -> set[int] | None:
    """Columns that need values which no row has, one of each unique index; None if an index has none that can be made.

    An index with a column that COPY does not fill is the default's business.
    """
    by_number = {column.number: column for column in wanted}
    fresh: set[int] = set()
    for index in unique:
        own = [by_number[number] for number in index if number in by_number]
        if len(own) < len(index) or fresh & set(index):
            continue
        able = [item for item in own if item.kind in (*_NUMBERS, "uuid") and not item.refers]
        if not able:
            return None
        fresh.add(able[-1].number)
    return fresh


def _new(connection: Connection, table: str, column: CopyColumn) -> dict[str, Any]:
    if column.kind == "uuid":
        return {"kind": "uuid"}
    quoted = _quoted(column.name)
    row = connection.execute(f"SELECT coalesce(pg_catalog.max({quoted}), 0) FROM {table}".encode()).fetchone()
    assert row is not None
    return {"kind": "number", "next": max(0, int(row[0])) + 1 + (BESIDE if column.has_sequence else 0)}


def _drawn(connection: Connection, table: tuple[str, str, str], column: CopyColumn) -> dict[str, Any] | None:
    """Common values as often as they are, and the bounds of the histogram for all others."""
    qualified, schema, name = table
    row = connection.execute(_STATISTICS.encode(), (schema, name, column.name)).fetchone()
    nulls, common, shares, bounds = row or (0.0, None, None, None)
    values = dict(_weighted(common or (), shares or ()))
    if bounds:
        rest = max(0.0, 1.0 - float(nulls) - sum(values.values()))
        for bound in bounds:
            values[bound] = values.get(bound, 0.0) + rest / len(bounds)
    if not values and nulls < 1.0:
        quoted = _quoted(column.name)
        query = f"SELECT {quoted}::pg_catalog.text FROM {qualified} WHERE {quoted} IS NOT NULL LIMIT {VALUES_MAX}"
        for (item,) in connection.execute(query.encode()).fetchall():
            values[item] = values.get(item, 0.0) + 1.0
        if not values:
            return None
    return {"kind": "drawn", "values": list(values), "weights": list(values.values()), "nulls": float(nulls)}


def _weighted(values: Sequence[str], shares: Sequence[float]) -> Iterator[tuple[str, float]]:
    for value, share in zip(values, shares, strict=True):
        yield value, float(share)


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
