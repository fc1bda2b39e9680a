"""Whether the rows that a load has brought are still in its table, when the load is resumed and before it ends well.

A user's reflex after a failed load is TRUNCATE, and the same command again. The ledger would then skip the chunks that it
has, and the load would end well without their rows. What shows that rows are gone:

- the table's file is another one (``pg_relation_filenode``): TRUNCATE gives it a new one, and so do VACUUM FULL, CLUSTER
  and ALTER TABLE, which keep the rows. So the rows are counted by the transactions that brought them (``xmin``), which
  VACUUM FULL and CLUSTER keep (and REPACK, which is both in 19; its CONCURRENTLY is not tried yet); ALTER TABLE makes them rows of its own transaction, which is that of a column's entry;
- the table is empty;
- rows were deleted (the server's statistics): then each chunk must have left some of its rows. A chunk all of whose rows are
  gone was not thinned out by an application, but removed;
- a partition is not a part of the table any more, or another table has its name.

Rows are counted only where something of this points to it, because that reads the whole table.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pgdyno.loader import table as tables
from pgdyno.loader.server import many, maybe, one, run
from pgdyno.loader.table import TargetTable

from ..base.errors import PgdynoError
from ..base.session import Connection

LOCK_TIMEOUT_S = 10
REPLACED = "another table has its name now"
ESTIMATE_TOLERANCE = 1e-5
"""VACUUM stores the number of rows as a float of 24 bits, which is exact up to this number."""
_FILES = """
SELECT c.oid::bigint, pg_relation_filenode(c.oid)::bigint, c.reltuples::float8,
       CASE WHEN current_setting('track_counts')::boolean THEN pg_stat_get_tuples_deleted(c.oid) END
FROM pg_class c
WHERE c.relkind = 'r' AND (c.oid = %s OR c.oid IN (SELECT relid FROM pg_partition_tree(%s) WHERE isleaf))
"""
_BROUGHT = """
SELECT xact::xid AS xact, rows_loaded AS rows FROM pgdyno_load.chunk
WHERE job = {job} AND rows_loaded > 0 AND rows_rejected = 0
"""
"""Rows of a chunk that had bad ones were brought by subtransactions, which the ledger does not know."""
_MERGED = "SELECT xact::xid AS xact, rows_merged AS rows FROM pgdyno_load.merge WHERE job = {job} AND rows_merged > 0"
_COUNTED = """
WITH brought AS ({brought}), there AS (SELECT xmin AS xact, count(*) AS rows FROM {table} GROUP BY 1)
SELECT coalesce(sum(greatest(0, b.rows - coalesce(t.rows, 0))), 0)::bigint, count(*) FILTER (WHERE t.rows IS NULL),
       (SELECT coalesce(sum(rows), 0) FROM there
        WHERE xact IN (SELECT a.xmin FROM pg_attribute a WHERE a.attrelid = %s))::bigint
FROM brought b LEFT JOIN there t ON t.xact = b.xact
"""
"""Rows that are missing, chunks of which none is there, and rows that ALTER TABLE has written."""


@dataclass(frozen=True)
class TablePresence:
    """A table when its load began, as the ledger keeps it."""

    emptied: bool = False
    """Whether the load emptied it."""
    empty: bool = False
    files: dict[str, int] = field(default_factory=dict)
    """Object identifier of the table, or of each partition -> its file."""
    deleted: int | None = None
    """Rows that had been deleted by then; None where the server does not count."""

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def look(connection: Connection, table: TargetTable, *, emptied: bool = False) -> TablePresence:
    """The table as it is now."""
    rows = many(connection, _FILES, (table.oid, table.oid))
    counts = [row[3] for row in rows]
    deleted = None if None in counts else sum(counts)
    files = {str(oid): int(number) for oid, number, *_ in rows if number is not None}
    return TablePresence(emptied, tables.is_empty(connection, table), files, deleted)


def lock(connection: Connection, table: TargetTable) -> str | None:
    """Within a transaction: lock the table against TRUNCATE and DROP by other sessions. What is wrong, if it is gone."""
    import psycopg

    if table.kind != "f":
        try:
            with connection.transaction():
                run(connection, f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'")
                run(connection, f"LOCK TABLE {table.quoted} IN ROW EXCLUSIVE MODE")
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName, psycopg.errors.WrongObjectType):
            return "the table was dropped or renamed"
        except psycopg.errors.LockNotAvailable:
            raise PgdynoError(
                f"another session holds a lock on {table.quoted}, so pgdyno cannot check that the loaded rows are there",
                remedy="run the same command again when that session has ended: it then only repeats the check",
            ) from None
    return REPLACED if is_replaced(connection, table) else None


def is_replaced(connection: Connection, table: TargetTable) -> bool:
    """Whether another table, or none, has the table's name."""
    now: int | None = one(connection, "SELECT to_regclass(%s)::oid::bigint", (table.quoted,))[0]
    return now != table.oid


def lost(
    connection: Connection,
    table: TargetTable,
    before: TablePresence,
    *,
    job: int | None,
    rows: int,
    merged: bool,
    counted: bool = False,
) -> str | None:
    """Why rows are not in the table that were brought; None where nothing points to it.

    ``rows`` were brought since ``before``, by the chunks of ``job`` or, ``merged``, by its merge. ``counted`` says that
    VACUUM has just counted the table's rows.
    """
    if rows == 0 or table.kind == "f":
        return None
    now = look(connection, table)
    if set(before.files) - set(now.files):
        return "a partition of it was dropped or detached"
    if now.empty:
        return "it is empty"
    changed = any(now.files[oid] != number for oid, number in before.files.items())
    deleted = before.deleted is not None and now.deleted != before.deleted
    fewer = counted and before.empty and _estimate(connection, table) < rows * (1 - ESTIMATE_TOLERANCE)
    if not (changed or deleted or fewer):
        return None
    may_look = one(connection, "SELECT has_table_privilege(%s::oid, 'SELECT')", (table.oid,))[0]
    if job is None or not may_look:
        return "it was emptied or rewritten" if changed else None
    brought = (_MERGED if merged else _BROUGHT).format(job=int(job))
    query = _COUNTED.format(brought=brought, table=table.quoted)
    missing, gone, rewritten = maybe(connection, query, (table.oid,)) or (0, 0, 0)
    if changed and missing > rewritten:
        return f"it was emptied or rewritten, and {missing:,} of them are not there"
    if not changed and gone:
        return f"{missing:,} of them were deleted"
    return None


def _estimate(connection: Connection, table: TargetTable) -> float:
    """Rows by the last VACUUM; endless where it has not been everywhere."""
    counts = [float(row[2]) for row in many(connection, _FILES, (table.oid, table.oid))]
    return sum(counts) if counts and min(counts) >= 0 else float("inf")
