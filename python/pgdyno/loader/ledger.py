"""The ledger: which load of which files went how far, in tables of the database that is loaded into.

A load's plan is frozen when it begins. Each chunk's rows and its line here are one transaction (the engine's), so that a
second run knows what the first one did, whatever ended it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.errors import InputError, PgdynoError
from pgdyno.loader import undo
from pgdyno.loader.server import many, maybe, one, run, said, session_name
from pgdyno.world.waiting import wait_until

if TYPE_CHECKING:
    import datetime

    from pgdyno.loader.server import Connection
    from pgdyno.loader.source import Source
    from pgdyno.loader.table import Table

SCHEMA = "pgdyno_load"
CHUNKS = '"pgdyno_load"."chunk"'
PLAN_VERSION = 1
"""Of the plan's keys; one of another version is not gone on with."""
EMPTIED = "emptied"
"""Kept beside a plan's keys: whether its load began by emptying the table. It is no part of the plan, since the rows are the
same, and whoever goes on need not ask for it again."""
_SCHEMA = """
CREATE SCHEMA IF NOT EXISTS pgdyno_load;
COMMENT ON SCHEMA pgdyno_load IS 'What pgdyno load has loaded, and what it must put back; see pgdyno load --help';
CREATE TABLE IF NOT EXISTS pgdyno_load.job (
    job bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, target text NOT NULL, plan jsonb NOT NULL,
    begun timestamptz NOT NULL DEFAULT now(), ended timestamptz);
CREATE TABLE IF NOT EXISTS pgdyno_load.chunk (
    job bigint NOT NULL, source int NOT NULL, chunk bigint NOT NULL, first_byte bigint NOT NULL, end_byte bigint NOT NULL,
    rows_loaded bigint NOT NULL, rows_rejected bigint NOT NULL, xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (job, source, chunk));
CREATE TABLE IF NOT EXISTS pgdyno_load.undo (
    entry bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, token text NOT NULL UNIQUE, job bigint NOT NULL,
    target text NOT NULL, kind text NOT NULL, what text NOT NULL, stages jsonb NOT NULL, search_path text NOT NULL,
    made timestamptz NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS pgdyno_load.merge (
    job bigint PRIMARY KEY REFERENCES pgdyno_load.job ON DELETE CASCADE, rows_merged bigint NOT NULL, rows_replaced bigint,
    made timestamptz NOT NULL DEFAULT now());
"""
"""A chunk's ``xact`` is the transaction that brought its rows: see :mod:`~pgdyno.loader.staging`."""
ORPHANS_LEAVE_S = 10.0
"""A killed command's engine says something every second, and gives up when nobody hears it."""
LOCK_WAIT_S = 2.0
"""The server notices within a second that the command which held the lock was killed."""
_ORPHANS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND datname = current_database()"
_LOCK_KEY = 0x7067646C
"""First half of the advisory locks: "pgdl". The second half is the table."""
_OID_OFFSET = 1 << 31
_INTERRUPTED = (
    "SELECT job, plan, begun FROM pgdyno_load.job WHERE target = %s AND ended IS NULL ORDER BY job DESC LIMIT 1"
)
_HOLES = """
SELECT source FROM (
    SELECT source, chunk, first_byte, lag(end_byte) OVER w AS before, row_number() OVER w - 1 AS number
    FROM pgdyno_load.chunk WHERE job = %s WINDOW w AS (PARTITION BY source ORDER BY chunk)
) AS c WHERE number <> chunk OR first_byte <> before LIMIT 1
"""
_ROWS = "SELECT source, sum(rows_loaded + rows_rejected)::bigint FROM pgdyno_load.chunk WHERE job = %s GROUP BY 1"
_TOTALS = """
SELECT count(*), coalesce(sum(rows_loaded), 0)::bigint, coalesce(sum(rows_rejected), 0)::bigint,
       coalesce(sum(end_byte - first_byte), 0)::bigint
FROM pgdyno_load.chunk WHERE job = %s
"""


@dataclass(frozen=True)
class Job:
    """A load that is under way, or was."""

    number: int
    begun: datetime.datetime
    fresh: bool
    """Whether it begins now."""


@dataclass(frozen=True)
class Totals:
    """What the ledger has of a job."""

    chunks: int = 0
    rows_loaded: int = 0
    rows_rejected: int = 0
    bytes: int = 0
    """Of uncompressed input."""


class AlreadyLoaded(Exception):
    """The same files were loaded into the same table by the same plan."""

    def __init__(self, job: Job, ended: datetime.datetime) -> None:
        super().__init__()
        self.job, self.ended = job, ended


def plan_of(table: Table, sources: Sequence[Source], options: Mapping[str, Any]) -> dict[str, Any]:
    """What decides which rows a load brings, and nothing of how it connects or how fast it is."""
    files = [{"name": source.name, "fingerprint": source.fingerprint} for source in sources]
    plan = {"version": PLAN_VERSION, "table_oid": table.oid, **options, "sources": files}
    stored: dict[str, Any] = json.loads(json.dumps(plan))
    return stored


def ensure(connection: Connection) -> None:
    """Make the ledger's tables, once in a database. :class:`InputError` when this role may not."""
    import psycopg

    try:
        if not _there(connection):
            with connection.transaction():
                run(connection, "SELECT pg_advisory_xact_lock(%s, 0)", (_LOCK_KEY,))
                if not _there(connection):
                    run(connection, _SCHEMA)
        one(connection, "SELECT count(*) FROM pgdyno_load.undo")
    except psycopg.errors.InsufficientPrivilege as error:
        role, database = one(connection, "SELECT quote_ident(current_user), quote_ident(current_database())")
        raise InputError(
            f"the ledger cannot be kept: {said(error)}",
            remedy=f"run as the database's owner `GRANT CREATE ON DATABASE {database} TO {role}`, load as the role that"
            " made the schema pgdyno_load, or give up resuming with --no-ledger",
        ) from None


def _there(connection: Connection) -> bool:
    # Not to_regclass(): within a transaction that waited for another one's tables it answers from a cache of before.
    query = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'pgdyno_load' AND tablename = 'merge')"
    return bool(one(connection, query)[0])


def lock(connection: Connection, oid: int, target: str) -> None:
    """Keep other loads of the table away, as long as this session lasts. :class:`InputError` when there is one."""
    keys = (_LOCK_KEY, oid - _OID_OFFSET)
    if not wait_until(lambda: bool(one(connection, "SELECT pg_try_advisory_lock(%s, %s)", keys)[0]), LOCK_WAIT_S):
        raise InputError(
            f"another pgdyno load works on {target}", remedy="wait for its end, or end its session on the server"
        )


def unlock(connection: Connection, oid: int) -> None:
    """Let others load the table again."""
    one(connection, "SELECT pg_advisory_unlock(%s, %s)", (_LOCK_KEY, oid - _OID_OFFSET))


def end_orphans(connection: Connection, job: int) -> None:
    """Have the sessions of a killed loader gone: whoever holds the table's lock is the only one who may load.

    An engine whose command was killed ends by itself, with the next line that nobody reads; only then its sessions are
    ended from here.
    """
    name = session_name(job)
    if wait_until(lambda: one(connection, _ORPHANS, (name,))[0] == 0, ORPHANS_LEAVE_S):
        return
    run(connection, f"{_ORPHANS.replace('count(*)', 'pg_terminate_backend(pid)')}", (name,))
    if not wait_until(lambda: one(connection, _ORPHANS, (name,))[0] == 0, ORPHANS_LEAVE_S):
        raise PgdynoError(
            f"sessions of an earlier run (application_name {name}) do not end",
            remedy="look at pg_stat_activity for them",
        )


def interrupted(connection: Connection, table: Table) -> int | None:
    """The job of a load of the table that has not ended."""
    row = maybe(connection, _INTERRUPTED, (table.quoted,))
    return None if row is None else int(row[0])


def open_job(
    connection: Connection, table: Table, plan: Mapping[str, Any], *, truncate: bool, again: bool, abandon: bool
) -> Job:
    """The job of this plan: the interrupted one, else a new one, which empties the table if it is asked to.

    :class:`InputError` when an interrupted one had another plan, or has not emptied a table that is to be empty, or where a new
    one's rejected rows would take the place of a file; :class:`AlreadyLoaded`.
    """
    with connection.transaction():
        row = maybe(connection, _INTERRUPTED, (table.quoted,))
        if row is not None and abandon:
            run(connection, "DELETE FROM pgdyno_load.chunk WHERE job = %s", (row[0],))
            run(connection, "DELETE FROM pgdyno_load.job WHERE job = %s", (row[0],))
            row = None
        if row is not None:
            before = row[1]
            emptied = before.pop(EMPTIED, True)  # a plan from before this was kept does not say
            _require_trusted(before, table.quoted)
            if before["rejects"] is None and plan["rejects"] is not None:
                # Nothing was rejected yet, so that there is no other file with a part of the rows.
                _require_new(plan["rejects"])
                before["rejects"] = plan["rejects"]
                run(
                    connection,
                    "UPDATE pgdyno_load.job SET plan = %s::jsonb WHERE job = %s",
                    (json.dumps({**before, EMPTIED: emptied}), row[0]),
                )
            _require_same(before, plan, table.quoted)
            if truncate and not emptied:
                raise InputError(
                    f"an interrupted load of {table.quoted} did not empty it, and to go on with that leaves what was there",
                    remedy="leave --truncate away to go on all the same, or add --abandon to begin with an empty table",
                )
            return Job(row[0], row[2], fresh=False)
        if not (again or truncate):
            _refuse_done(connection, table, plan)
        _require_new(plan["rejects"])
        if truncate:
            _empty(connection, table)
        number, begun = one(
            connection,
            "INSERT INTO pgdyno_load.job (target, plan) VALUES (%s, %s::jsonb) RETURNING job, begun",
            (table.quoted, json.dumps({**plan, EMPTIED: truncate})),
        )
    return Job(number, begun, fresh=True)


def distrust(connection: Connection, job: int, why: str) -> None:
    """Have nobody go on with a load some of whose rows are not those of the file: :func:`open_job` refuses it from now on."""
    run(
        connection,
        "UPDATE pgdyno_load.job SET plan = plan || jsonb_build_object('distrusted', %s::text) WHERE job = %s",
        (why, job),
    )


def _require_trusted(plan: Mapping[str, Any], target: str) -> None:
    if "distrusted" in plan:
        raise InputError(
            f"an interrupted load of {target} brought wrong rows: {plan['distrusted']}",
            remedy="see that the object is whole, and load it again with --abandon and --truncate",
        )


def _require_new(rejects: str | None) -> None:
    """The file of rejected rows takes its place by a new name: whatever had that would be gone, another load's rows or a device."""
    for path in () if rejects is None else (Path(rejects), Path(f"{rejects}.jsonl")):
        if os.path.lexists(path):
            raise InputError(
                f"--reject: {path} is there already, and what is in it would be lost",
                remedy="name another file, or remove that one",
            )


def _empty(connection: Connection, table: Table) -> None:
    """Empty the table, and forget what was loaded into it: the ledger says what is there."""
    truncate(connection, table)
    ended = "SELECT job FROM pgdyno_load.job WHERE target = %s AND ended IS NOT NULL"
    run(connection, f"DELETE FROM pgdyno_load.chunk WHERE job IN ({ended})", (table.quoted,))
    run(connection, f"DELETE FROM pgdyno_load.job WHERE job IN ({ended})", (table.quoted,))


def truncate(connection: Connection, table: Table) -> None:
    """Empty a table; :class:`InputError` where others hold a lock on it for longer than a moment."""
    import psycopg

    try:
        with connection.transaction():
            run(connection, f"SET LOCAL lock_timeout = '{undo.LOCK_TIMEOUT_S}s'")
            run(connection, f"TRUNCATE {table.quoted}")
    except psycopg.errors.LockNotAvailable:
        raise InputError(
            f"others use {table.quoted}, so that it cannot be emptied",
            remedy="load when nobody does; pg_stat_activity and pg_locks say who does",
        ) from None


def _refuse_done(connection: Connection, table: Table, plan: Mapping[str, Any]) -> None:
    """A file's rows come once, also when options are others now: :class:`AlreadyLoaded`, :class:`InputError`."""
    found = many(
        connection,
        "SELECT job, begun, ended, plan FROM pgdyno_load.job WHERE target = %s AND ended IS NOT NULL ORDER BY job DESC",
        (table.quoted,),
    )
    now = {source["name"]: source["fingerprint"] for source in plan["sources"] if source["fingerprint"] is not None}
    for number, begun, ended, before in found:
        if before["table_oid"] != plan["table_oid"]:
            continue  # another table was of this name
        before.pop(EMPTIED, None)
        if len(now) == len(plan["sources"]) and before == plan:
            raise AlreadyLoaded(Job(number, begun, fresh=False), ended)
        known = [source["fingerprint"] for source in before["sources"]]
        doubled = [name for name, fingerprint in now.items() if fingerprint in known]
        if doubled:
            different = [text for text in differences(before, plan) if not text.startswith("sources")]
            raise InputError(
                f"{doubled[0]} was loaded into {table.quoted} already, at {ended:%Y-%m-%d %H:%M:%S%z}"
                + (f", by another plan: {'; '.join(different[:3])}" if different else ", with other files"),
                remedy="leave it out; or --again to have its rows twice, or --truncate to begin with an empty table",
            )


def _require_same(before: Mapping[str, Any], now: Mapping[str, Any], target: str) -> None:
    streams = [source["name"] for source in before["sources"] if source["fingerprint"] is None]
    different = list(differences(before, now))
    if different:
        shown = "; ".join(different[:3]) + (f"; and {len(different) - 3} more" if len(different) > 3 else "")
        raise InputError(
            f"an interrupted load of {target} had another plan: {shown}",
            remedy="run the same command on the same files to go on, or --abandon it (its rows stay, unless --truncate)",
        )
    if streams:
        raise InputError(
            f"an interrupted load of {target} read {streams[0]}, and nobody knows whether it has the same rows again",
            remedy="--abandon it (its rows stay, unless --truncate), and name a file to be able to go on",
        )


def differences(before: Any, now: Any, name: str = "") -> Iterator[str]:
    """What two plans differ in: ``sources.0.fingerprint.size: 10, now 20``."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in [*before, *(key for key in now if key not in before)]:
            yield from differences(before.get(key), now.get(key), f"{name}.{key}".lstrip("."))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (one_before, one_now) in enumerate(zip(before, now, strict=True)):
            yield from differences(one_before, one_now, f"{name}.{number}")
    elif isinstance(before, list) and isinstance(now, list) and name == "sources":
        yield f"sources: {len(before)} files, now {len(now)}"
    elif before != now:
        yield f"{name}: {json.dumps(before)}, now {json.dumps(now)}"


def totals(connection: Connection, job: int) -> Totals:
    """What is loaded of a job."""
    return Totals(*one(connection, _TOTALS, (job,)))


def check_whole(connection: Connection, job: int, sources: Sequence[Source], compressed: Sequence[bool]) -> None:
    """That the chunks are all of the files: none is missing, each begins where the one before ends, the last at the end."""
    hole = maybe(connection, _HOLES, (job,))
    ends = dict(
        many(connection, "SELECT source, max(end_byte) FROM pgdyno_load.chunk WHERE job = %s GROUP BY 1", (job,))
    )
    wrong = [] if hole is None else [sources[hole[0]].name]
    rows = dict(many(connection, _ROWS, (job,)))
    for number, source in enumerate(sources):
        if source.parquet is not None and rows.get(number, 0) != source.parquet.rows:
            wrong.append(source.name)
        whole = source.bytes_stored if not (compressed[number] or source.parquet) else None
        if whole is not None and ends.get(number, whole) != whole:
            wrong.append(source.name)
    if wrong:
        raise PgdynoError(
            f"the ledger does not have all of {wrong[0]}: this is a bug in pgdyno",
            remedy="load again with --abandon and --truncate, and report it",
        )


def reconcile(before: Totals, after: Totals, rows_loaded: int, rows_rejected: int) -> None:
    """That the rows which the engine counted, of this run or of all, are those in the ledger: none lost, none doubled."""
    counted = (rows_loaded, rows_rejected)
    of_this_run = (after.rows_loaded - before.rows_loaded, after.rows_rejected - before.rows_rejected)
    if counted not in (of_this_run, (after.rows_loaded, after.rows_rejected)):
        raise PgdynoError(
            f"the loader counted {rows_loaded:,} rows loaded and {rows_rejected:,} rejected, its ledger"
            f" {of_this_run[0]:,} and {of_this_run[1]:,}",
            remedy="this is a bug in pgdyno: load again with --abandon and --truncate, and report it",
        )


def end_job(connection: Connection, job: int) -> None:
    """Say that it is over, durably: a commit that waits for its WAL waits for that of all chunks before it."""
    with durably(connection):
        run(connection, "UPDATE pgdyno_load.job SET ended = now() WHERE job = %s", (job,))


@contextlib.contextmanager
def durably(connection: Connection) -> Iterator[None]:
    """A transaction that is on the disk when it is over, and with it all before it, whatever the server's default is."""
    with connection.transaction():
        run(
            connection,
            "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'",
        )
        yield
