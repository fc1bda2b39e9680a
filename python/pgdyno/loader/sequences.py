"""Sequences that a load leaves behind: explicit numbers do not move them, and the next INSERT would take one that is there.

(PostgreSQL documentation, "Identity Columns" and "Sequence Manipulation Functions".)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.loader.server import many, one
from pgdyno.loader.sql import literal
from pgdyno.loader.table import TargetTable

from ..base.session import Connection

SCAN_BYTES_MAX = 1 << 30
"""The largest number of a larger table is read only from an index."""
_FEEDING = """
WITH of_column AS (
    SELECT a.attname::text AS name, a.attnum AS number, d.objid AS sequence, d.refobjid AS owner
    FROM pg_depend d
    JOIN pg_attribute o ON o.attrelid = d.refobjid AND o.attnum = d.refobjsubid
    JOIN pg_attribute a ON a.attrelid = %(table)s AND a.attname = o.attname AND NOT a.attisdropped
    WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
          AND (d.refobjid = %(table)s OR d.refobjid IN (SELECT relid FROM pg_partition_ancestors(%(table)s::regclass) AS relid))
    UNION
    SELECT a.attname::text, a.attnum, d.refobjid, NULL
    FROM pg_attrdef f
    JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass
    JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
    WHERE f.adrelid = %(table)s
)
SELECT DISTINCT ON (c.number, s.oid) c.name, format('%%I', c.name), format('%%I.%%I', n.nspname, s.relname),
       (SELECT format('%%I.%%I', p.nspname, r.relname) FROM pg_class r JOIN pg_namespace p ON p.oid = r.relnamespace
        WHERE r.oid = c.owner),
       q.seqincrement,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = %(table)s AND i.indkey[0] = c.number AND i.indisvalid
               AND i.indpred IS NULL),
       has_sequence_privilege(s.oid, 'SELECT, USAGE') AND has_table_privilege(%(table)s::oid, 'SELECT')
FROM of_column c
JOIN pg_class s ON s.oid = c.sequence AND s.relkind = 'S'
JOIN pg_namespace n ON n.oid = s.relnamespace
JOIN pg_sequence q ON q.seqrelid = s.oid
JOIN pg_attribute a ON a.attrelid = %(table)s AND a.attnum = c.number
WHERE a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'numeric'::regtype) AND c.name = ANY(%(loaded)s)
ORDER BY c.number, s.oid, c.owner NULLS LAST
"""
"""Column, the same as SQL has it, sequence, the table that owns it, increment, whether an index begins with the column, whether
the role may look."""


def behind(connection: Connection, target: TargetTable, loaded: Sequence[str]) -> list[dict[str, Any]]:
    """The sequences of loaded columns that would give a number that is in the table, with what sets them.

    What cannot be looked at, for want of rights or because the table is long and no index has the column, has no ``next``.
    """
    if target.kind == "f":
        return []
    results = []
    for name, column, sequence, owner, step, is_indexed, may in many(
        connection, _FEEDING, {"table": target.oid, "loaded": list(loaded)}
    ):
        most = "max" if step > 0 else "min"
        rows = f"(SELECT {most}({column}) FROM {target.quoted})"
        # A partition has some of the numbers; the sequence is for those of all.
        all_rows = f"(SELECT {most}({column}) FROM {owner or target.quoted})"
        which = literal(sequence) if owner is None else f"pg_get_serial_sequence({literal(owner)}, {literal(name)})"
        line: dict[str, Any] = {
            "column": name,
            "sequence": sequence,
            "next": None,
            "loaded": None,
            "statement": f"SELECT setval({which.strip()}, {all_rows})",
        }
        if may and (
            is_indexed or one(connection, "SELECT pg_table_size(%s::regclass)", (target.oid,))[0] < SCAN_BYTES_MAX
        ):
            last, is_called = one(connection, f"SELECT last_value, is_called FROM {sequence}")
            extreme = one(connection, f"SELECT {rows}")[0]
            following = int(last) + int(step) if is_called else int(last)
            if extreme is None or (following > extreme if step > 0 else following < extreme):
                continue
            line |= {"next": following, "loaded": int(extreme)}
        results.append(line)
    return results
