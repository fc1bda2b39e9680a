"""Rows of COPY FROM STDIN, which no log has: what they are made of, by the statistics of the table's columns and production's counters."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pgdyno.workload.replay.counted import Counts, shape_of, without_literals

from ...base import engine

if TYPE_CHECKING:
    import psycopg

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

Copied = Literal["left_out", "made"]
"""What becomes of a COPY whose rows are not in the capture."""
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


def texts_of(capture: str, stamp: tuple[int, int]) -> dict[str, str]:
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


def made(connection: Connection, texts: Mapping[str, str], work: Mapping[str, Counts]) -> list[dict[str, Any]]:
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
