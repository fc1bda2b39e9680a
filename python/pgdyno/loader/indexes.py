"""Indexes and foreign keys of a table: which may be dropped for the time of a load, and the facts that bring each back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pgdyno.loader import facts, foreign_code
from pgdyno.loader.index_cost import ASCENDING_CORRELATION, IndexCost
from pgdyno.loader.server import many
from pgdyno.loader.table import TargetTable
from pgdyno.loader.undo import TargetChange

from ..base.session import Connection

PATH_IS_PINNED_FROM = 170000
"""CREATE INDEX has a ``search_path`` of its own from this version on (release notes of PostgreSQL 17)."""
_KEYS = """
SELECT jsonb_agg(jsonb_build_object(
           'column', a.attname,
           'expression', CASE WHEN k.number = 0 THEN pg_get_indexdef(i.indexrelid, k.place::int, false) END,
           'collation', CASE WHEN l.oid IS NOT NULL THEN jsonb_build_array(ln.nspname, l.collname) END,
           'operator_class', jsonb_build_array(pn.nspname, p.opcname),
           'parameters', {parameters_of_key},
           'descending', CASE WHEN pg_indexam_has_property(c.relam, 'can_order') THEN k.option & 1 <> 0 END,
           'nulls_first', CASE WHEN pg_indexam_has_property(c.relam, 'can_order') THEN k.option & 2 <> 0 END,
           'operator', CASE WHEN o.oid IS NOT NULL THEN jsonb_build_array(op.nspname, o.oprname) END) ORDER BY k.place)
FROM unnest(i.indkey::int2[], i.indcollation::oid[], i.indclass::oid[], i.indoption::int2[], k.conexclop)
     WITH ORDINALITY AS k(number, collated, class, option, exclusion, place)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND k.number > 0
JOIN pg_attribute ia ON ia.attrelid = i.indexrelid AND ia.attnum = k.place
LEFT JOIN pg_collation l ON l.oid = k.collated LEFT JOIN pg_namespace ln ON ln.oid = l.collnamespace
JOIN pg_opclass p ON p.oid = k.class JOIN pg_namespace pn ON pn.oid = p.opcnamespace
LEFT JOIN pg_operator o ON o.oid = k.exclusion LEFT JOIN pg_namespace op ON op.oid = o.oprnamespace
WHERE k.place <= i.indnkeyatts
"""
_PARAMETERS = """
coalesce((SELECT jsonb_agg(jsonb_build_array(split_part(o, '=', 1), substr(o, strpos(o, '=') + 1)) ORDER BY n)
          FROM unnest({options}) WITH ORDINALITY AS u(o, n)), '[]')
"""
_INDEXES = f"""
SELECT jsonb_build_object(
           'name', c.relname, 'method', m.amname, 'unique', i.indisunique,
           'nulls_not_distinct', coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false),
           'keys', ({_KEYS.format(parameters_of_key=_PARAMETERS.format(options="ia.attoptions"))}),
           'include', coalesce((SELECT jsonb_agg(a.attname ORDER BY k.place)
               FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place)
               JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
               WHERE k.place > i.indnkeyatts), '[]'),
           'predicate', pg_get_expr(i.indpred, i.indrelid),
           'parameters', {_PARAMETERS.format(options="c.reloptions")},
           'tablespace', s.spcname, 'clustered', i.indisclustered,
           'comment', obj_description(i.indexrelid, 'pg_class'),
           'definition', pg_get_indexdef(i.indexrelid), 'constraint', k.contype::text,
           'deferrable', coalesce(k.condeferrable, false), 'deferred', coalesce(k.condeferred, false),
           'constraint_comment', obj_description(k.oid, 'pg_constraint')),
       abs(coalesce((SELECT p.correlation FROM pg_stats p JOIN pg_attribute a ON a.attname = p.attname
                     WHERE p.schemaname = n.nspname AND p.tablename = %s AND NOT p.inherited
                           AND a.attrelid = i.indrelid AND a.attnum = i.indkey[0]), 0))::float8,
       NOT (i.indisvalid AND i.indisready) OR i.indisreplident OR c.relispartition
       OR i.indisexclusion AND k.contype IS DISTINCT FROM 'x'
       OR EXISTS (SELECT FROM pg_constraint f WHERE f.contype = 'f' AND f.conindid = i.indexrelid)
       OR EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                                                AND d.deptype IN ('e', 'x'))
       OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = i.indexrelid AND coalesce(a.attstattarget, -1) >= 0)
       OR (k.oid IS NOT NULL AND k.conname <> c.relname)
       OR EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                                                AND d.refclassid = 'pg_operator'::regclass)
          AND pg_get_indexdef(i.indexrelid) ~ '(DISTINCT FROM|NULLIF|CASE)'
       OR current_setting('server_version_num')::int < {PATH_IS_PINNED_FROM}
          AND EXISTS (SELECT FROM pg_depend d JOIN pg_proc f ON f.oid = d.refobjid JOIN pg_language l ON l.oid = f.prolang
                      WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                            AND d.refclassid = 'pg_proc'::regclass AND l.lanname NOT IN ('c', 'internal')
                            AND f.prosqlbody IS NULL AND coalesce(f.proconfig::text, '') NOT LIKE '%%search_path=%%')
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_am m ON m.oid = c.relam
LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace
LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x')
WHERE i.indrelid = %s ORDER BY c.relname
"""
"""What is last says that it must stay: others depend on it, or its definition does not say all of it. Of operators that are
not the server's own, DISTINCT FROM, NULLIF and CASE are written without their schema (ruleutils.c). A function whose body means
names by the session's ``search_path`` might not find them by the loader's own."""
_NAMES = """
coalesce((SELECT jsonb_agg(a.attname ORDER BY u.place) FROM unnest({numbers}) WITH ORDINALITY AS u(number, place)
          JOIN pg_attribute a ON a.attrelid = {relation} AND a.attnum = u.number), '[]')
"""
_SET_COLUMNS = (
    "ARRAY(SELECT jsonb_array_elements_text(coalesce(nullif(to_jsonb(k) -> 'confdelsetcols', 'null'), '[]'))::int2)"
)
_FOREIGN_KEYS = f"""
SELECT jsonb_build_object(
           'name', k.conname, 'columns', {_NAMES.format(numbers="k.conkey", relation="k.conrelid")},
           'referenced', jsonb_build_array(n.nspname, c.relname),
           'referenced_columns', {_NAMES.format(numbers="k.confkey", relation="k.confrelid")},
           'match', k.confmatchtype::text, 'on_update', k.confupdtype::text, 'on_delete', k.confdeltype::text,
           'delete_columns', {_NAMES.format(numbers=_SET_COLUMNS, relation="k.conrelid")},
           'deferrable', k.condeferrable, 'deferred', k.condeferred,
           'comment', obj_description(k.oid, 'pg_constraint'), 'definition', pg_get_constraintdef(k.oid))
FROM pg_constraint k JOIN pg_class c ON c.oid = k.confrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE k.conrelid = %s AND k.contype = 'f' AND k.convalidated AND k.conparentid = 0 AND k.coninhcount = 0
      AND k.confrelid <> k.conrelid AND NOT coalesce((to_jsonb(k) ->> 'conperiod')::boolean, false)
      AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgconstraint = k.oid AND t.tgenabled <> 'O')
ORDER BY k.conname
"""


@dataclass(frozen=True)
class Droppable:
    """An index, or a foreign key, that may be dropped and built again."""

    change: TargetChange
    cost: IndexCost | None
    """None for a foreign key."""
    refuses: bool
    """Whether it rejects rows: without it, rows may be loaded that prevent its restoration."""


def droppable(connection: Connection, table: TargetTable) -> list[Droppable]:
    """The indexes and constraints that may be dropped: only if this role owns the table, and it is not partitioned."""
    if not table.owned or table.kind != "r":
        return []
    rows = many(connection, _INDEXES, (table.name, table.oid))
    indexes = [_index(table, item, float(correlation)) for item, correlation, stays in rows if not stays]
    keys = [_foreign_key(table, item) for (item,) in many(connection, _FOREIGN_KEYS, (table.oid,))]
    return [
        key
        for key in (*keys, *indexes)
        if foreign_code.found(connection, key.change.fact.expressions(), table.oid) is None
    ]


def _index(table: TargetTable, result: Any, correlation: float) -> Droppable:
    """``found`` is a fact's document, of :data:`_INDEXES`."""
    fact: facts.Index = facts.parsed("index", result)
    change = TargetChange("index", fact, (fact.dropping(table.schema, table.name),))
    cost = IndexCost(fact.name, ascending=correlation >= ASCENDING_CORRELATION)
    return Droppable(change, cost, refuses=fact.unique or fact.constraint is not None)


def _foreign_key(table: TargetTable, result: Any) -> Droppable:
    fact: facts.ForeignKey = facts.parsed("foreign key", result)
    return Droppable(TargetChange("foreign key", fact, (fact.dropping(table.schema, table.name),)), None, refuses=True)
