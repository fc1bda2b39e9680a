"""The table that the rows of an upsert go into first, until they are merged: a table in the ledger's schema.

It is neither temporary, because several sessions fill it and a second run resumes with it; nor unlogged, because a server
that crashes empties such a table, while the ledger's lines say that its rows are there. It is in the undo journal:
restoring drops it, and with it the lines of the chunks that were in it, in one transaction.

Which of two rows stands later in the files is written down by the server, so that the bytes of the files pass as they are.
``pgdyno_xact`` is the transaction that brought a row; the ledger's line of its chunk is of the same one, and says file and
place. ``pgdyno_row`` counts up within a session, and a chunk comes by one session in its order. Both are defaults of columns
that COPY does not name. Neither is volatile for COPY, which would insert row by row (copyfrom.c excepts ``nextval``).

What the target has against a single row (NOT NULL, CHECK) this table has too, where all that is needed for it is in the
files: so a bad row is found where its place in its file is known, and can be rejected like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.loader import ledger, table
from pgdyno.loader.facts import StagingTable
from pgdyno.loader.server import many, one
from pgdyno.loader.table import TableColumn, TargetTable
from pgdyno.loader.trust import SCHEMA
from pgdyno.loader.undo import Kind, TargetChange, UndoJournal

from ..base.session import Connection

KIND: Kind = "staging"
_XACT, _ROW = "pgdyno_xact", "pgdyno_row"
NUMBERS_AT_ONCE = 4096
"""That a session takes from the sequence: some hundred kilobytes of rows, so that several sessions hardly meet there."""
_BEFORE_TRIGGERS = """
SELECT EXISTS (
    SELECT FROM pg_trigger
    WHERE (tgrelid = %s OR tgrelid IN (SELECT relid FROM pg_partition_tree(%s)))
          AND NOT tgisinternal AND tgtype & 7 = 7 AND tgenabled IN ('O', 'A'))
"""
"""7 is ROW, BEFORE and INSERT (pg_trigger.h); O and A fire in an ordinary session."""
_ABOUT_ONE_ROW = """
SELECT format('ALTER %%I SET NOT NULL', attname) FROM pg_attribute
WHERE attrelid = %s AND attnotnull AND attname = ANY(%s) AND NOT attname = ANY(%s)
UNION ALL
SELECT format('ADD CONSTRAINT %%I %%s', conname, pg_get_constraintdef(oid)) FROM pg_constraint
WHERE conrelid = %s AND contype = 'c'
      AND coalesce(conkey, '{}') <@ (SELECT array_agg(attnum) FROM pg_attribute
                                    WHERE attrelid = %s AND attname = ANY(%s))
"""


def name(job: int) -> str:
    """The staging table of a job, as SQL writes it."""
    return f"{SCHEMA}.staging_{job}"


def own_columns(columns: Sequence[TableColumn]) -> tuple[str, str]:
    """The names of the two added columns, transaction and row, which differ from those of the files."""
    taken = {column.name for column in columns}
    xact, row = _XACT, _ROW
    while {xact, row} & taken:
        xact, row = f"{xact}_", f"{row}_"
    return xact, row


def ensure(
    connection: Connection, target: TargetTable, columns: Sequence[TableColumn], keys: Sequence[TableColumn], job: int
) -> TargetTable:
    """The staging table of a job. Where there is none, it is made, and nothing of the job counts as loaded any more."""
    result = table.find(connection, name(job))
    if result is None:
        change = _change(connection, target, columns, keys, job)
        UndoJournal(connection).make(change, job, target.quoted, target.oid)
        result = table.find(connection, name(job))
    assert result is not None, "it was made just now"
    return result


def fires_before(connection: Connection, target: TargetTable) -> bool:
    """Whether a trigger may change a row before the target takes it, or keep it out: of the table, or of a partition."""
    return bool(one(connection, _BEFORE_TRIGGERS, (target.oid, target.oid))[0])


def _change(
    connection: Connection, target: TargetTable, columns: Sequence[TableColumn], keys: Sequence[TableColumn], job: int
) -> TargetChange:
    staging, numbers = name(job), f"{name(job)}_row"
    xact, row = own_columns(columns)
    listed = ", ".join(column.quoted for column in columns)
    altering = [
        f"ALTER {xact} SET DEFAULT pg_current_xact_id()",
        f"ALTER {row} SET DEFAULT nextval('{numbers}')",
        *(f"ALTER {key.quoted} SET NOT NULL" for key in keys),
        *_about_one_row(connection, target, columns, keys),
    ]
    forget = f"DELETE FROM {ledger.CHUNKS} WHERE job = {job}"
    rows = f"SELECT {listed}, pg_current_xact_id() AS {xact}, 0::bigint AS {row} FROM {target.quoted}"
    doing = (
        forget,
        f"CREATE TABLE {staging} WITH (autovacuum_enabled = false) AS {rows} WITH NO DATA",
        f"CREATE SEQUENCE {numbers} CACHE {NUMBERS_AT_ONCE} OWNED BY {staging}.{row}",
        f"ALTER TABLE {staging} {', '.join(altering)}",
    )
    return TargetChange(KIND, StagingTable(job), doing)


def _about_one_row(
    connection: Connection, target: TargetTable, columns: Sequence[TableColumn], keys: Sequence[TableColumn]
) -> list[str]:
    """The target's constraints on single rows. If a trigger may correct a row first, only the target can check them."""
    if fires_before(connection, target):
        return []
    names = [column.name for column in columns]
    values = (target.oid, names, [key.name for key in keys], target.oid, target.oid, names)
    return [row[0] for row in many(connection, _ABOUT_ONE_ROW, values)]
