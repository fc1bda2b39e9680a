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
_SEQUENCES = """
SELECT pg_catalog.format('%I.%I', schemaname, sequencename), sequencename, coalesce(last_value, start_value - 1),
       CASE WHEN last_value IS NULL THEN 0 ELSE cache_size - 1 END, cache_size = 1
FROM pg_catalog.pg_sequences WHERE increment_by > 0
"""
_FUNCTIONS = """
SELECT DISTINCT proname FROM pg_catalog.pg_proc AS function JOIN pg_catalog.pg_namespace AS space ON space.oid = pronamespace
WHERE provolatile = 'v' AND prokind = 'f' AND nspname NOT IN ('pg_catalog', 'information_schema')
"""
_NEXTVAL = re.compile(r"nextval\('([^']+)'::regclass\)")


def catalogue(connection: psycopg.Connection[Any], sessions: int) -> dict[str, Any]:
    """The engine's input about keys. A sequence that the role may not read counts as unused.

    Where a sequence has a cache, each of ``sessions`` may still have had values below its last one, and values are not given in their
    order.
    """
    sequences = connection.execute(_SEQUENCES).fetchall()
    known = {
        key: {"after": max(0, int(last)), "cached": int(cached) * sessions, "in_order": in_order}
        for name, bare, last, cached, in_order in reversed(sequences)
        for key in (bare, name)
    }
    unused = {"after": 0, "cached": 0, "in_order": True}
    columns = []
    for _, table, column, kind, default, owned in connection.execute(_COLUMNS).fetchall():
        found = _NEXTVAL.search(default)
        sequence = owned or (found[1] if found else "")
        if sequence:
            own = known.get(sequence) or known.get(sequence.rpartition(".")[2].strip('"'), unused)
            columns.append({"table": table, "column": column, "kind": "number", **own})
        elif kind == "uuid":
            columns.append({"table": table, "column": column, "kind": "uuid"})
    return {
        "columns": columns,
        "sequences": [{"name": bare, **known[name]} for name, bare, *_ in sequences],
        "functions": [row[0] for row in connection.execute(_FUNCTIONS).fetchall()],
    }


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The catalogues of several databases as one."""
    return {key: [one for part in parts for one in part[key]] for key in ("columns", "sequences", "functions")}
