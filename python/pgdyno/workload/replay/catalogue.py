"""What a database says of the keys that it gives: columns with a sequence, an identity or a new uuid; its sequences; its functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

# pg_get_serial_sequence would ask for the right to use every schema.
_COLUMNS = """
SELECT space.nspname, class.relname, attribute.attname, pg_catalog.format_type(attribute.atttypid, NULL),
       coalesce(pg_catalog.pg_get_expr(def.adbin, def.adrelid), ''),
       coalesce((
           SELECT pg_catalog.format('%I.%I', own.nspname, sequence.relname) FROM pg_catalog.pg_depend AS link
           JOIN pg_catalog.pg_class AS sequence ON sequence.oid = link.objid AND sequence.relkind = 'S'
           JOIN pg_catalog.pg_namespace AS own ON own.oid = sequence.relnamespace
           WHERE link.classid = link.refclassid AND link.refclassid = class.tableoid AND link.refobjid = class.oid
             AND link.refobjsubid = attribute.attnum AND link.deptype IN ('a', 'i') LIMIT 1), '')
FROM pg_catalog.pg_attribute AS attribute
JOIN pg_catalog.pg_class AS class ON class.oid = attribute.attrelid AND class.relkind IN ('r', 'p')
JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
LEFT JOIN pg_catalog.pg_attrdef AS def ON def.adrelid = attribute.attrelid AND def.adnum = attribute.attnum
WHERE attribute.attnum > 0 AND NOT attribute.attisdropped AND space.nspname NOT IN ('pg_catalog', 'information_schema')
  AND (attribute.attidentity <> '' OR def.oid IS NOT NULL)
"""
# The right to read one is asked for by its number: by its name it would need the right to use the schema.
_SEQUENCES = """
SELECT pg_catalog.format('%I.%I', schemaname, sequencename), sequencename, last_value, start_value - 1,
       CASE WHEN last_value IS NULL THEN 0 ELSE cache_size - 1 END, cache_size = 1,
       pg_catalog.has_schema_privilege(space.oid, 'USAGE') AND pg_catalog.has_sequence_privilege(class.oid, 'SELECT')
FROM pg_catalog.pg_sequences
JOIN pg_catalog.pg_namespace AS space ON space.nspname = schemaname
JOIN pg_catalog.pg_class AS class ON class.relnamespace = space.oid AND class.relname = sequencename
WHERE increment_by > 0
"""
_FUNCTIONS = """
SELECT DISTINCT proname, provolatile = 'v' AND prokind IN ('f', 'p')
FROM pg_catalog.pg_proc AS function JOIN pg_catalog.pg_namespace AS space ON space.oid = pronamespace
WHERE nspname NOT IN ('pg_catalog', 'information_schema')
"""
# The type of a domain, and of an array's elements. A decimal number with a scale is a fraction.
_TABLES = """
WITH RECURSIVE kind (oid, base) AS (
    SELECT oid, CASE WHEN typtype = 'd' THEN typbasetype WHEN typcategory = 'A' THEN typelem ELSE oid END FROM pg_catalog.pg_type
), base (oid, base, depth) AS (
    SELECT oid, base, 0 FROM kind UNION ALL
    SELECT base.oid, kind.base, depth + 1 FROM base JOIN kind ON kind.oid = base.base WHERE kind.base <> kind.oid AND depth < 8
), typed (oid, base) AS (SELECT DISTINCT ON (oid) oid, base FROM base ORDER BY oid, depth DESC)
SELECT space.nspname, class.relname, CASE WHEN class.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(class.oid) ELSE '' END,
       pg_catalog.array_agg(attribute.attname::pg_catalog.text ORDER BY attribute.attnum),
       pg_catalog.array_agg(CASE
           WHEN typed.base IN (20, 21, 23) THEN 'number'
           WHEN typed.base = 1700 AND (attribute.atttypmod < 4 OR (attribute.atttypmod - 4) & 2047 = 0) THEN 'number'
           WHEN typed.base IN (25, 1042, 1043) THEN 'text'
           WHEN typed.base = 2950 THEN 'uuid'
           WHEN typed.base IN (114, 3802) THEN 'json'
           ELSE 'other' END ORDER BY attribute.attnum)
FROM pg_catalog.pg_class AS class
JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
JOIN pg_catalog.pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum > 0 AND NOT attribute.attisdropped
JOIN typed ON typed.oid = attribute.atttypid
WHERE class.relkind IN ('r', 'p', 'v', 'm', 'f') AND space.nspname NOT IN ('pg_catalog', 'information_schema') AND space.nspname NOT LIKE 'pg\\_t%'
GROUP BY space.nspname, class.relname, class.oid, class.relkind
"""
# By foreign keys, and of partitions and other children by the names of their columns.
_SAME = """
SELECT own_space.nspname, own.relname, own_column.attname, its_space.nspname, its.relname, its_column.attname, true
FROM pg_catalog.pg_constraint AS link
CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(link.conkey), pg_catalog.unnest(link.confkey)) AS pair (own_number, its_number)
JOIN pg_catalog.pg_class AS own ON own.oid = link.conrelid
JOIN pg_catalog.pg_namespace AS own_space ON own_space.oid = own.relnamespace
JOIN pg_catalog.pg_attribute AS own_column ON own_column.attrelid = own.oid AND own_column.attnum = pair.own_number
JOIN pg_catalog.pg_class AS its ON its.oid = link.confrelid
JOIN pg_catalog.pg_namespace AS its_space ON its_space.oid = its.relnamespace
JOIN pg_catalog.pg_attribute AS its_column ON its_column.attrelid = its.oid AND its_column.attnum = pair.its_number
WHERE link.contype = 'f'
UNION ALL
SELECT own_space.nspname, own.relname, own_column.attname, its_space.nspname, its.relname, its_column.attname, false
FROM pg_catalog.pg_inherits AS link
JOIN pg_catalog.pg_class AS own ON own.oid = link.inhrelid AND own.relkind IN ('r', 'p', 'f')
JOIN pg_catalog.pg_namespace AS own_space ON own_space.oid = own.relnamespace
JOIN pg_catalog.pg_class AS its ON its.oid = link.inhparent
JOIN pg_catalog.pg_namespace AS its_space ON its_space.oid = its.relnamespace
JOIN pg_catalog.pg_attribute AS its_column ON its_column.attrelid = its.oid AND its_column.attnum > 0 AND NOT its_column.attisdropped
JOIN pg_catalog.pg_attribute AS own_column ON own_column.attrelid = own.oid AND own_column.attname = its_column.attname
"""
_PRIMARY = """
SELECT space.nspname, class.relname, attribute.attname
FROM pg_catalog.pg_index AS index
JOIN pg_catalog.pg_class AS class ON class.oid = index.indrelid
JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
JOIN pg_catalog.pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum = index.indkey[0]
WHERE index.indisprimary AND index.indnatts = 1 AND space.nspname NOT IN ('pg_catalog', 'information_schema')
"""
_BATCH = 200
"""Sequences that are read by one statement."""
_NEXTVAL = re.compile(r"nextval\('([^']+)'::regclass\)")


def catalogue(connection: psycopg.Connection[Any], sessions: int) -> dict[str, Any]:
    """What one database says of keys, as the engine takes it. A sequence that the role may not read counts as unused.

    Where a sequence has a cache, each of ``sessions`` may still have had values below its last one, and values are not given in their
    order.
    """
    result = connection.execute(_SEQUENCES).fetchall()
    next_values = _next_values(connection, [str(row[0]) for row in result if row[2] is None and row[-1]])
    sequences = [
        {
            "qualified": name,
            "name": bare,
            "after": max(0, int(next_values.get(name, start) if last is None else last)),
            "cached": int(cached) * sessions,
            "in_order": in_order,
        }
        for name, bare, last, start, cached, in_order, _ in result
    ]
    whole = {
        name: str(sequence["qualified"])
        for sequence in reversed(sequences)
        for name in (sequence["name"], sequence["qualified"])
    }
    columns = []
    for schema, table, column, kind, default, owned in connection.execute(_COLUMNS).fetchall():
        named_in = _NEXTVAL.search(default)
        sequence = owned or (named_in[1] if named_in else "")
        named = {"schema": schema, "table": table, "column": column}
        if sequence:
            known = whole.get(sequence) or whole.get(sequence.rpartition(".")[2].strip('"'), "")
            columns.append(named | {"kind": "number", "sequence": known})
        elif kind == "uuid":
            columns.append(named | {"kind": "uuid"})
    functions = connection.execute(_FUNCTIONS).fetchall()
    return {
        "name": connection.info.dbname,
        "tables": [
            {
                "schema": schema,
                "name": name,
                "definition": definition or "",
                "columns": list(zip(names, kinds, strict=True)),
            }
            for schema, name, definition, names, kinds in connection.execute(_TABLES.encode()).fetchall()
        ],
        "columns": columns,
        "sequences": sequences,
        "same": [[row[:3], row[3:6], row[6]] for row in connection.execute(_SAME).fetchall()],
        "primary": [list(row) for row in connection.execute(_PRIMARY).fetchall()],
        "functions": sorted({name for name, writes in functions if writes}),
        "own_functions": sorted({name for name, _ in functions}),
    }


def _next_values(connection: psycopg.Connection[Any], unused: list[str]) -> dict[str, int]:
    """The value before the first one of sequences that have given none: ``RESTART WITH 20`` is in no view of the system."""
    next_values = {}
    for begin in range(0, len(unused), _BATCH):
        parts = (f"SELECT last_value - 1 FROM {name}" for name in unused[begin : begin + _BATCH])
        rows = connection.execute(" UNION ALL ".join(parts).encode()).fetchall()
        next_values.update({name: int(row[0]) for name, row in zip(unused[begin:], rows, strict=False)})
    return next_values


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The catalogues of several databases as one."""
    return {"databases": parts}
