"""``--upsert KEYS``: rows of the files take the place of those that have the same keys, and the others are added.

::

    files -> staging table (chunks, ledger, rejects: as in any load) -> one INSERT ... ON CONFLICT -> target

The merge is one statement, in one transaction with its line in ``pgdyno_load.merge`` and the end of the staging table. So
it is complete or not there at all, and a second run either merges again or has nothing to do. In
batches it could use several sessions, and would lose both.

It is ON CONFLICT and not MERGE, because another session may insert a key meanwhile: ON CONFLICT then replaces that row,
MERGE ends with an error after all its work (documentation of PostgreSQL 18, "MERGE", Notes). It needs a unique index on
the keys, without which "the row of that key" would mean nothing anyway.

If several rows have the same keys, the last one counts: the last row of the last file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgdyno.loader import ledger, staging
from pgdyno.loader.columns import named
from pgdyno.loader.put_back import sort_memory_kib
from pgdyno.loader.server import maybe, one, run, said, usual_names
from pgdyno.loader.table import TableColumn, TargetTable

from ..base.errors import InputError, Interrupted, PgdynoError
from ..base.session import Connection

_UNIQUE = """
SELECT i.indexrelid
FROM pg_index i
CROSS JOIN LATERAL (
    SELECT array_agg(a.attname::text) AS names, bool_and(k.collated = a.attcollation AND o.opcdefault) AS usual
    FROM unnest(i.indkey::int2[], i.indcollation::oid[], i.indclass::oid[]) WITH ORDINALITY
         AS k(number, collated, class, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
    JOIN pg_opclass o ON o.oid = k.class
    WHERE k.place <= i.indnkeyatts
) AS of_keys
WHERE i.indrelid = %s AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
      AND of_keys.usual AND of_keys.names <@ %s::text[] AND of_keys.names @> %s::text[]
"""
"""Indexes of exactly these columns that refuse at once, for every row, and call those keys equal that DISTINCT does."""
_REPLACED = """
SELECT sum(n_tup_upd)::bigint FROM pg_stat_xact_user_tables
WHERE (relid = %s OR relid IN (SELECT relid FROM pg_partition_tree(%s))) AND current_setting('track_counts')::boolean
"""
"""Rows that this very transaction has updated; NULL where the server does not count."""


_REFUSING = """
SELECT 1 FROM pg_index WHERE indrelid = %s AND (indisunique OR indisexclusion) AND indimmediate AND indisvalid
"""
"""Indexes that refuse a row at once."""


@dataclass(frozen=True)
class MergeResult:
    """What a merge did."""

    rows: int
    """Rows of the target that were added or replaced."""
    replaced: int | None
    """Those that had been there before; None where the server does not count (``track_counts``)."""


def keys_of(
    connection: Connection, texts: Sequence[str], target: TargetTable, columns: Sequence[TableColumn]
) -> tuple[TableColumn, ...]:
    """The columns that are the key; none when none was asked for. :class:`InputError` for those that cannot be.

    ``columns`` are those that the files have.
    """
    if not texts:
        return ()
    keys = named(texts, columns)
    if keys is None:
        known = ", ".join(column.name for column in columns)
        raise InputError(
            f"--upsert: {', '.join(texts)} are not columns of the files",
            remedy=f"they have {known}; name each key once",
        )
    if target.kind == "f":
        raise InputError(
            f"--upsert: {target.quoted} is a foreign table, which replaces no rows", remedy="load it on its own server"
        )
    names = [key.name for key in keys]
    if maybe(connection, _UNIQUE, (target.oid, names, names)) is None:
        listed = ", ".join(key.quoted for key in keys)
        raise InputError(
            f"--upsert: no unique index of {target.quoted} is on ({listed}) alone, for all rows and checked at once, so"
            " that several rows could be meant",
            remedy=f"make one: `CREATE UNIQUE INDEX ON {target.quoted} ({listed})`",
        )
    _explain(connection, target, columns, keys)
    return tuple(keys)


def require_conflicts(connection: Connection, target: TargetTable, columns: Sequence[TableColumn]) -> None:
    """:class:`InputError` where no row can be in the way of another, so that ``--on-conflict skip`` would skip none.

    ``columns`` are those that the files have.
    """
    if target.kind == "f" or maybe(connection, _REFUSING, (target.oid,)) is None:
        raise InputError(
            f"--on-conflict: {target.quoted} has no unique or exclusion constraint that is checked at once, so no row conflicts",
            remedy=f"create the table with a primary key, or `CREATE UNIQUE INDEX ON {target.quoted} (…)`; or omit --on-conflict",
            code="load.conflict.no_constraint",
            data={"table": target.quoted},
        )
    _explain(connection, target, columns, ())


def _explain(
    connection: Connection, target: TargetTable, columns: Sequence[TableColumn], keys: Sequence[TableColumn]
) -> None:
    """Have the server look at the statement now: rules, rights and generated keys are known before the first row."""
    import psycopg

    listed = ", ".join(column.quoted for column in columns)
    rows = f"SELECT {listed} FROM {target.quoted}"
    try:
        run(connection, f"EXPLAIN {_statement(target, columns, keys, rows)}")
    except psycopg.Error as error:
        raise InputError(
            f"{'--upsert' if keys else '--on-conflict'}: {target.quoted} does not take it: {said(error)}",
            remedy="leave columns that may not be set out of the files, or name the others with --columns",
        ) from None


def _statement(target: TargetTable, columns: Sequence[TableColumn], keys: Sequence[TableColumn], rows: str) -> str:
    """Insert rows, or replace those that are there; without ``keys`` rows that conflict are left out.

    Identities are given, as COPY would give them.
    """
    listed = ", ".join(column.quoted for column in columns)
    if not keys:
        return f"INSERT INTO {target.quoted} ({listed}) OVERRIDING SYSTEM VALUE {rows} ON CONFLICT DO NOTHING"
    setting = ", ".join(f"{column.quoted} = excluded.{column.quoted}" for column in columns if column not in keys)
    doing = f"UPDATE SET {setting}" if setting else "NOTHING"
    conflict = ", ".join(key.quoted for key in keys)
    return f"INSERT INTO {target.quoted} ({listed}) OVERRIDING SYSTEM VALUE {rows} ON CONFLICT ({conflict}) DO {doing}"


def _last_rows(columns: Sequence[TableColumn], keys: Sequence[TableColumn], job: int) -> str:
    """The last one in the files of the rows with the same keys."""
    distinct = ", ".join(f"s.{key.quoted}" for key in keys)
    listed = ", ".join(f"s.{column.quoted}" for column in columns)
    _, row = staging.own_columns(columns)
    return (
        f"SELECT DISTINCT ON ({distinct}) {listed} FROM {_staged(columns, job)}"
        f" ORDER BY {distinct}, c.source DESC, c.chunk DESC, s.{row} DESC"
    )


def _all_rows(columns: Sequence[TableColumn], job: int) -> str:
    """All rows in the order of the files: of those with the same keys the first one stays."""
    listed = ", ".join(f"s.{column.quoted}" for column in columns)
    _, row = staging.own_columns(columns)
    return f"SELECT {listed} FROM {_staged(columns, job)} ORDER BY c.source, c.chunk, s.{row}"


def _staged(columns: Sequence[TableColumn], job: int, join: str = "JOIN") -> str:
    """Staged rows with the chunks that they came in."""
    xact, _ = staging.own_columns(columns)
    return (
        f"{staging.name(job)} AS s {join} {ledger.CHUNKS} AS c"
        f" ON c.xact OPERATOR(pg_catalog.=) s.{xact} AND c.job OPERATOR(pg_catalog.=) {job}"
    )


def merged(connection: Connection, job: int) -> MergeResult | None:
    """What the merge of a job did, if it has been."""
    row = maybe(connection, "SELECT rows_merged, rows_replaced FROM pgdyno_load.merge WHERE job = %s", (job,))
    return None if row is None else MergeResult(*row)


def merge(
    connection: Connection,
    target: TargetTable,
    columns: Sequence[TableColumn],
    keys: Sequence[TableColumn],
    job: int,
    rows_staged: int,
    *,
    skip: bool = False,
) -> MergeResult:
    """Merge what is staged, whole or not at all, durably. :class:`PgdynoError` with what the server has against it.

    ``skip``: rows that conflict are left out, and there are no ``keys``.
    """
    with _as_errors(connection, target, job), ledger.durably(connection):
        run(connection, f"SET LOCAL work_mem = {sort_memory_kib(connection, 1, 'work_mem')}")
        _require_all(connection, columns, job, rows_staged)
        expected = _expected(connection, target, columns, keys, job)
        rows_merged = _all_rows(columns, job) if skip else _last_rows(columns, keys, job)
        statement = _statement(target, columns, keys, rows_merged)
        with usual_names(connection):  # its triggers and defaults run as in a session of psql
            rows = connection.execute(statement.encode()).rowcount
        if expected is not None and rows != expected:
            raise PgdynoError(
                f"{expected:,} rows were to be merged into {target.quoted}, and a trigger kept {expected - rows:,} out:"
                " nothing is merged",
                remedy="disable the trigger, and run the same command again",
            )
        replaced = one(connection, _REPLACED, (target.oid, target.oid))[0]
        result = MergeResult(rows, None if replaced is None else min(rows, int(replaced)))
        run(
            connection,
            "INSERT INTO pgdyno_load.merge (job, rows_merged, rows_replaced) VALUES (%s, %s, %s)",
            (job, result.rows, result.replaced),
        )
        run(connection, f"DROP TABLE {staging.name(job)}")
        run(connection, "DELETE FROM pgdyno_load.undo WHERE job = %s AND kind = %s", (job, staging.KIND))
    return result


def _require_all(connection: Connection, columns: Sequence[TableColumn], job: int, rows: int) -> None:
    """That the rows which the ledger has are there, and no others."""
    all_rows, known = one(connection, f"SELECT count(*), count(c.job) FROM {_staged(columns, job, 'LEFT JOIN')}")
    if (all_rows, known) != (rows, rows):
        raise PgdynoError(
            f"{staging.name(job)} has {all_rows:,} rows, {known:,} of them in the ledger, which has {rows:,}: it was"
            " changed by another session, and nothing is merged",
            remedy="`pgdyno load --restore DSN` drops it; the same command then starts again",
        )


def _expected(
    connection: Connection, target: TargetTable, columns: Sequence[TableColumn], keys: Sequence[TableColumn], job: int
) -> int | None:
    """How many rows the merge is to write, where a trigger might keep some out; None where nothing could."""
    if not keys or len(keys) == len(columns) or not staging.fires_before(connection, target):
        return None
    listed = ", ".join(key.quoted for key in keys)
    return int(one(connection, f"SELECT count(*) FROM (SELECT DISTINCT {listed} FROM {staging.name(job)}) AS k")[0])


@contextlib.contextmanager
def _as_errors(connection: Connection, target: TargetTable, job: int) -> Iterator[None]:
    """The error that ends a merge, with how to resume."""
    import psycopg

    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted while the rows were merged: all of them are, or none is",
            remedy="run the same command again, which merges them if none is",
        ) from None
    except psycopg.Error as error:
        if connection.closed:
            raise  # the server is gone: it is said as everywhere
        raise PgdynoError(
            f"the rows cannot be merged into {target.quoted}, and none of them is: {said(error)}",
            remedy=f"all of them are in {staging.name(job)}: remove the cause and run the same command again, which then"
            " only merges; after correcting the files, start over with --abandon",
        ) from error
