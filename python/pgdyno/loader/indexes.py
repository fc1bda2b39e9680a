"""Indexes and constraints of a table as changes that can be undone: which may go, and what brings each back as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.loader.index_cost import ASCENDING_CORRELATION, IndexCost
from pgdyno.loader.server import many
from pgdyno.loader.undo import Change

if TYPE_CHECKING:
    from pgdyno.loader.server import Connection
    from pgdyno.loader.table import Table

_INDEXES = """
SELECT c.relname, quote_ident(c.relname), format('%%I.%%I', n.nspname, c.relname), pg_get_indexdef(i.indexrelid),
       i.indisunique, i.indisexclusion, i.indisclustered, quote_ident(s.spcname),
       quote_literal(obj_description(i.indexrelid, 'pg_class')),
       k.conname, k.contype::text, pg_get_constraintdef(k.oid), k.condeferrable, k.condeferred,
       quote_literal(obj_description(k.oid, 'pg_constraint')),
       abs(coalesce((SELECT p.correlation FROM pg_stats p JOIN pg_attribute a ON a.attname = p.attname
                     WHERE p.schemaname = n.nspname AND p.tablename = %s AND NOT p.inherited
                           AND a.attrelid = i.indrelid AND a.attnum = i.indkey[0]), 0))::float8,
       NOT (i.indisvalid AND i.indisready) OR i.indisreplident OR c.relispartition
       OR EXISTS (SELECT FROM pg_constraint f WHERE f.contype = 'f' AND f.conindid = i.indexrelid)
       OR EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                                                AND d.deptype IN ('e', 'x'))
       OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = i.indexrelid AND coalesce(a.attstattarget, -1) >= 0)
       OR (k.oid IS NOT NULL AND k.conname <> c.relname)
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x')
WHERE i.indrelid = %s ORDER BY c.relname
"""
"""What is last says that it must stay: others depend on it, or what it has cannot be said in a definition."""
_FOREIGN_KEYS = """
SELECT quote_ident(k.conname), pg_get_constraintdef(k.oid), quote_literal(obj_description(k.oid, 'pg_constraint'))
FROM pg_constraint k
WHERE k.conrelid = %s AND k.contype = 'f' AND k.convalidated AND k.conparentid = 0 AND k.coninhcount = 0
      AND k.confrelid <> k.conrelid
      AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgconstraint = k.oid AND t.tgenabled <> 'O')
ORDER BY k.conname
"""


@dataclass(frozen=True)
class Droppable:
    """An index, or a foreign key, that may be dropped and built again."""

    change: Change
    cost: IndexCost | None
    """None of a foreign key."""
    refuses: bool
    """Whether it refuses rows: without it, rows come in that do not let it come back."""


def droppable(connection: Connection, table: Table) -> list[Droppable]:
    """What may be dropped of a table: of one that this role owns, and that is no partition's parent."""
    if not table.owned or table.kind != "r":
        return []
    rows = many(connection, _INDEXES, (table.name, table.oid))
    indexes = [_index(table, row) for row in rows if not row[-1]]
    keys = [_foreign_key(table, *row) for row in many(connection, _FOREIGN_KEYS, (table.oid,))]
    return [*keys, *indexes]


def _index(table: Table, row: tuple[object, ...]) -> Droppable:
    """``row`` is one of :data:`_INDEXES`."""
    name, quoted, full, text, unique, exclusion, clustered, space, comment, constraint, kind, *rest = row
    constraint_text, deferrable, deferred, constraint_comment, correlation, _ = rest
    building = [f"SET LOCAL default_tablespace = {space}" if space else "SET LOCAL default_tablespace = ''", str(text)]
    after: list[str] = []
    adding = f"ALTER TABLE {table.quoted} ADD CONSTRAINT {quoted}"
    if constraint is not None and exclusion:
        # Such an index cannot be built apart from its constraint.
        building, after = [], [building[0], f"{adding} {constraint_text}"]
    elif constraint is not None:
        waits = " DEFERRABLE" if deferrable else ""
        waits += " INITIALLY DEFERRED" if deferred else ""
        after.append(f"{adding} {'PRIMARY KEY' if kind == 'p' else 'UNIQUE'} USING INDEX {quoted}{waits}")
    if comment:
        after.append(f"COMMENT ON INDEX {full} IS {comment}")
    if constraint_comment:
        after.append(f"COMMENT ON CONSTRAINT {quoted} ON {table.quoted} IS {constraint_comment}")
    if clustered:
        after.append(f"ALTER TABLE {table.quoted} CLUSTER ON {quoted}")
    dropping = f"DROP INDEX {full}" if constraint is None else f"ALTER TABLE {table.quoted} DROP CONSTRAINT {quoted}"
    stages = tuple(tuple(stage) for stage in (building, after))
    change = Change("index", f"{full} dropped, to be built again", (dropping,), stages)
    refuses = bool(unique) or constraint is not None
    return Droppable(change, IndexCost(str(name), _number(correlation) >= ASCENDING_CORRELATION), refuses)


def _foreign_key(table: Table, quoted: str, text: str, comment: str | None) -> Droppable:
    adding = [f"ALTER TABLE {table.quoted} ADD CONSTRAINT {quoted} {text}"]
    if comment:
        adding.append(f"COMMENT ON CONSTRAINT {quoted} ON {table.quoted} IS {comment}")
    dropping = f"ALTER TABLE {table.quoted} DROP CONSTRAINT {quoted}"
    change = Change("foreign key", f"{quoted} dropped, to be checked again", (dropping,), ((), (), tuple(adding)))
    return Droppable(change, None, refuses=True)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
