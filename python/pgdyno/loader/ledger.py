"""The ledger: which load of which files went how far, in tables of the database that is loaded into.

A load's plan is frozen when it begins. Each chunk's rows and its line here are one transaction (the engine's), so that a
second run knows what the first one did, whatever ended it.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.loader import presence, undo
from pgdyno.loader import table as tables
from pgdyno.loader.presence import TablePresence
from pgdyno.loader.server import many, maybe, one, run, session_name
from pgdyno.loader.source import RowSource
from pgdyno.loader.table import TargetTable

from ..base.errors import InputError, PgdynoError
from ..base.session import Connection
from ..machine.waiting import wait_until

CHUNKS = '"pgdyno_load"."chunk"'
CHANGED, LINES_LOST, DAMAGED, INCOMPLETE = (
    "load.source.changed",
    "load.ledger.lines_lost",
    "load.ledger.damaged",
    "load.ledger.incomplete",
)
NOT_TO_BE_RESUMED = frozenset({CHANGED, LINES_LOST, DAMAGED, INCOMPLETE})
"""Errors after which the same command would load rows of another file, or rows that are in the table already."""
PLAN_VERSION = 2
"""Version of the plan's keys; a plan of another version is not resumed."""
ORPHANS_LEAVE_S = 10.0
"""A killed command's engine writes a line every second, and ends when its reader is gone."""
LOCK_WAIT_S = 2.0
"""The server notices within a second that the command which held the lock was killed."""
_ORPHANS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND datname = current_database()"
_LOCK_KEY = 0x7067646C
"""First half of the advisory locks: "pgdl". The second half is the table."""
_OID_OFFSET = 1 << 31
_INTERRUPTED = (
    "SELECT job, plan, found FROM pgdyno_load.job WHERE table_oid = %s AND ended IS NULL ORDER BY job DESC LIMIT 1"
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
class LoadJob:
    """A load that is under way, or was."""

    number: int
    fresh: bool
    """Whether it begins now."""
    found: TablePresence
    """Its table when it began."""


@dataclass(frozen=True)
class Totals:
    """What the ledger has of a job."""

    chunks: int = 0
    rows_loaded: int = 0
    rows_rejected: int = 0
    bytes: int = 0
    """Of uncompressed input."""


class PriorLoad(Exception):
    """The same files were loaded into the same table by the same plan."""

    def __init__(self, job: int, ended: datetime.datetime) -> None:
        super().__init__()
        self.job, self.ended = job, ended


def plan_of(table: TargetTable, sources: Sequence[RowSource], options: Mapping[str, Any]) -> dict[str, Any]:
    """What decides which rows a load brings, and nothing of how it connects or how fast it is."""
    files = [{"name": source.name, "fingerprint": source.fingerprint} for source in sources]
    plan = {"version": PLAN_VERSION, "table_oid": table.oid, **options, "sources": files}
    stored: dict[str, Any] = json.loads(json.dumps(plan))
    return stored


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
    """Wait until the sessions of a killed loader are gone: only the holder of the table's lock may load.

    An engine whose command was killed ends by itself, when it cannot write its next line; only then its sessions are
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


def interrupted(connection: Connection, table: TargetTable) -> int | None:
    """The job of a load of the table that has not ended."""
    row = maybe(connection, _INTERRUPTED, (table.oid,))
    return None if row is None else int(row[0])


def open_job(
    connection: Connection, table: TargetTable, plan: Mapping[str, Any], *, truncate: bool, again: bool, abandon: bool
) -> LoadJob:
    """The job of this plan: the interrupted one, else a new one, which empties the table if it is asked to.

    :class:`InputError` when an interrupted one had another plan, or has not emptied a table that is to be empty, or where a new
    one's rejected rows would take the place of a file; :class:`PriorLoad`.
    """
    with connection.transaction():
        row = maybe(connection, _INTERRUPTED, (table.oid,))
        if row is not None and (abandon or _is_moot(connection, row[0], row[1], plan)):
            forget(connection, row[0])
            row = None
        if row is not None:
            return _resumed(connection, table, plan, row, truncate=truncate)
        if not (again or truncate):
            _refuse_done(connection, table, plan)
        require_new(plan["rejects"])
        if truncate:
            _empty(connection, table)
        result = presence.look(connection, table, emptied=truncate)
        number = one(
            connection,
            "INSERT INTO pgdyno_load.job (target, table_oid, plan, found) VALUES (%s, %s, %s::jsonb, %s::jsonb) RETURNING job",
            (table.quoted, table.oid, json.dumps(plan), json.dumps(result.document())),
        )[0]
    return LoadJob(number, True, result)


def _resumed(
    connection: Connection, table: TargetTable, plan: Mapping[str, Any], row: tuple[Any, ...], *, truncate: bool
) -> LoadJob:
    """The interrupted job, if this plan may resume it. ``row`` is of :data:`_INTERRUPTED`. :class:`InputError` if not."""
    number, before, table_presence = row[0], row[1], TablePresence(**row[2])
    _require_trusted(before, table.quoted)
    if before["rejects"] is None and plan["rejects"] is not None:
        # Nothing was rejected yet, so that there is no other file with a part of the rows.
        require_new(plan["rejects"])
        before["rejects"] = plan["rejects"]
        statement = "UPDATE pgdyno_load.job SET plan = %s::jsonb WHERE job = %s"
        run(connection, statement, (json.dumps(before), number))
    _require_same(before, plan, table.quoted)
    if truncate and not table_presence.emptied:
        raise InputError(
            f"an interrupted load of {table.quoted} did not empty it, and resuming it keeps the rows from before",
            remedy="omit --truncate to resume it anyway, or add --abandon to begin with an empty table",
        )
    rows, merged = rows_brought(connection, number, plan)
    why = presence.lost(connection, table, table_presence, job=number, rows=rows, merged=merged)
    if why is not None:
        raise InputError(
            f"an interrupted load of {table.quoted} has loaded {rows:,} rows, and {why}",
            remedy="add --abandon to load all of the files again (and --truncate to begin with an empty table)",
        )
    return LoadJob(number, False, table_presence)


def rows_brought(connection: Connection, job: int, plan: Mapping[str, Any]) -> tuple[int, bool]:
    """Rows that a job has brought into its target, and whether a merge did: rows of an upsert are staged until then."""
    if not {"upsert", "on_conflict"} & plan.keys():
        return totals(connection, job).rows_loaded, False
    row = maybe(connection, "SELECT rows_merged FROM pgdyno_load.merge WHERE job = %s", (job,))
    return (0 if row is None else int(row[0])), True


def forget(connection: Connection, job: int) -> None:
    """Remove a job with the lines of its chunks."""
    run(connection, "DELETE FROM pgdyno_load.chunk WHERE job = %s", (job,))
    run(connection, "DELETE FROM pgdyno_load.job WHERE job = %s", (job,))


def _is_moot(connection: Connection, job: int, before: Mapping[str, Any], plan: Mapping[str, Any]) -> bool:
    """Whether a job brought no row and has another plan than is asked for now: nothing is left of it to resume."""
    if totals(connection, job).chunks:
        return False
    return any(differences(before, plan)) or any(source["fingerprint"] is None for source in before["sources"])


def distrust(connection: Connection, job: int, why: str) -> None:
    """Mark a load that another run must not resume: :func:`open_job` then refuses it.

    Some of its rows are not those of the file, its file is not what it was, or its ledger does not have all of its chunks.
    """
    run(
        connection,
        "UPDATE pgdyno_load.job SET plan = plan || jsonb_build_object('distrusted', %s::text) WHERE job = %s",
        (why, job),
    )


def _require_trusted(plan: Mapping[str, Any], target: str) -> None:
    if "distrusted" in plan:
        raise InputError(
            f"an interrupted load of {target} cannot be resumed: {plan['distrusted']}",
            remedy="check that the file is complete, and load it again with --abandon and --truncate",
            code="load.job.unfit",
            data={"table": target, "why": plan["distrusted"]},
        )


def require_new(rejects: str | None) -> None:
    """The file of rejected rows takes its place by a new name: whatever had that would be gone, another load's rows or a device."""
    for path in () if rejects is None else (Path(rejects), Path(f"{rejects}.jsonl")):
        if os.path.lexists(path):
            raise InputError(
                f"--reject: {path} already exists, and its content would be lost",
                remedy="name another file, or remove that one",
                code="load.reject.exists",
                data={"path": str(path)},
            )


def _empty(connection: Connection, table: TargetTable) -> None:
    """Empty the table, and forget what was loaded into it: the ledger says what is there."""
    truncate(connection, table)
    ended = "SELECT job FROM pgdyno_load.job WHERE table_oid = %s AND ended IS NOT NULL"
    run(connection, f"DELETE FROM pgdyno_load.chunk WHERE job IN ({ended})", (table.oid,))
    run(connection, f"DELETE FROM pgdyno_load.job WHERE job IN ({ended})", (table.oid,))


def truncate(connection: Connection, table: TargetTable) -> None:
    """Empty a table; :class:`InputError` where others hold a lock on it for longer than a moment."""
    import psycopg

    try:
        with connection.transaction():
            run(connection, f"SET LOCAL lock_timeout = '{undo.LOCK_TIMEOUT_S}s'")
            run(connection, f"TRUNCATE {table.quoted}")
    except psycopg.errors.LockNotAvailable:
        raise InputError(
            f"other sessions use {table.quoted}, so it cannot be emptied",
            remedy="load when no other session uses it; pg_stat_activity and pg_locks show the sessions",
        ) from None


def _refuse_done(connection: Connection, table: TargetTable, plan: Mapping[str, Any]) -> None:
    """A file's rows come once, also when options are others now: :class:`PriorLoad`, :class:`InputError`."""
    result = many(
        connection,
        # As seconds: how a timestamp is written is the session's DateStyle, which may be any.
        "SELECT job, extract(epoch FROM ended)::float8, plan FROM pgdyno_load.job"
        " WHERE table_oid = %s AND ended IS NOT NULL ORDER BY job DESC",
        (table.oid,),
    )
    now = {source["name"]: source["fingerprint"] for source in plan["sources"] if source["fingerprint"] is not None}
    is_empty = bool(result) and tables.is_empty(connection, table)
    for number, ended_s, before in result:
        ended = datetime.datetime.fromtimestamp(ended_s, tz=datetime.UTC).astimezone()
        known = [source["fingerprint"] for source in before["sources"]]
        doubled = [name for name, fingerprint in now.items() if fingerprint in known]
        if doubled and is_empty and totals(connection, number).rows_loaded:
            raise InputError(
                f"{doubled[0]} was already loaded into {table.quoted} at {ended:%Y-%m-%d %H:%M:%S%z}, and the table is empty now",
                remedy="add --again to load it again",
            )
        if len(now) == len(plan["sources"]) and before == plan:
            raise PriorLoad(number, ended)
        if doubled:
            different = [text for text in differences(before, plan) if not text.startswith("sources")]
            raise InputError(
                f"{doubled[0]} was already loaded into {table.quoted} at {ended:%Y-%m-%d %H:%M:%S%z}"
                + (f", with a different plan: {'; '.join(different[:3])}" if different else ", with other files"),
                remedy="omit it; or use --again to load its rows twice, or --truncate to begin with an empty table",
            )


def _require_same(before: Mapping[str, Any], now: Mapping[str, Any], target: str) -> None:
    streams = [source["name"] for source in before["sources"] if source["fingerprint"] is None]
    different = list(differences(before, now))
    if different:
        shown = "; ".join(different[:3]) + (f"; and {len(different) - 3} more" if len(different) > 3 else "")
        raise InputError(
            f"an interrupted load of {target} had a different plan: {shown}",
            remedy="run the same command on the same files to resume it, or --abandon it (its rows stay, unless --truncate)",
        )
    if streams:
        raise InputError(
            f"an interrupted load of {target} read {streams[0]}, which may not have the same rows again",
            remedy="--abandon it (its rows stay, unless --truncate); loads of files can be resumed",
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


def check_whole(connection: Connection, job: int, sources: Sequence[RowSource], compressed: Sequence[bool]) -> None:
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
            f"the ledger does not have all of {wrong[0]}: another session removed or changed its lines",
            remedy="load again with --abandon and --truncate while no other session writes to the ledger",
            code=INCOMPLETE,
            data={"job": job, "source": wrong[0]},
        )


def reconcile(before: Totals, after: Totals, rows_loaded: int, rows_rejected: int) -> None:
    """That the rows which the engine counted, of this run or of all, are those in the ledger: none lost, none doubled."""
    counted = (rows_loaded, rows_rejected)
    of_this_run = (after.rows_loaded - before.rows_loaded, after.rows_rejected - before.rows_rejected)
    if counted not in (of_this_run, (after.rows_loaded, after.rows_rejected)):
        raise PgdynoError(
            f"the loader counted {rows_loaded:,} rows loaded and {rows_rejected:,} rejected, its ledger"
            f" {of_this_run[0]:,} and {of_this_run[1]:,}",
            remedy="load again with --abandon and --truncate while no other session writes to the ledger",
            code=INCOMPLETE,
            data={"counted": list(counted), "ledger": list(of_this_run)},
        )


def end_job(
    connection: Connection, table: TargetTable, job: LoadJob, plan: Mapping[str, Any], *, counted: bool
) -> None:
    """Say that it is over, durably: a commit that waits for its WAL waits for that of all chunks before it.

    ``counted``: VACUUM has just counted the table's rows. :class:`PgdynoError` where rows are not there any more.
    """
    with durably(connection):
        rows, merged = rows_brought(connection, job.number, plan)
        why = presence.lock(connection, table)
        why = why or presence.lost(
            connection, table, job.found, job=job.number, rows=rows, merged=merged, counted=counted
        )
        if why is not None:
            raise _lost(table, rows, why)
        run(connection, "UPDATE pgdyno_load.job SET ended = clock_timestamp() WHERE job = %s", (job.number,))


def require_there(connection: Connection, table: TargetTable, table_presence: TablePresence, rows: int) -> None:
    """The same check for a load without a ledger. :class:`PgdynoError`."""
    why = presence.lock(connection, table) or presence.lost(
        connection, table, table_presence, job=None, rows=rows, merged=False
    )
    if why is not None:
        raise _lost(table, rows, why)


def _lost(table: TargetTable, rows: int, why: str) -> PgdynoError:
    return PgdynoError(
        f"{rows:,} rows were loaded into {table.quoted}, but another session changed it in the meantime: {why}",
        remedy="load again with --abandon and --truncate while no other session changes the table",
    )


@contextlib.contextmanager
def durably(connection: Connection) -> Iterator[None]:
    """A transaction that is on the disk when it is over, and with it all before it, whatever the server's default is."""
    with connection.transaction():
        run(
            connection,
            "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'",
        )
        yield
