"""Bringing a table back to what it was: indexes side by side, constraints after them, then keys and parameters."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeAlias

from pgdyno.loader import ledger, undo
from pgdyno.loader.facts import STAGES
from pgdyno.loader.server import cancel, connect_another, many, one, run, said
from pgdyno.loader.undo import UndoEntry, UndoJournal

from ..base.errors import PgdynoError
from ..base.session import Connection

Note: TypeAlias = Callable[[float, str], None]

BUILDS_MAX = 8
"""Indexes that are built at a time: each is a session that sorts."""
SHARED_BUFFERS_SHARE = 4
"""maintenance_work_mem of all builds together is this part of shared_buffers: as those are mostly a quarter of the memory,
a sixteenth of it, the share that pgtune gives to one."""
WORK_MEM_KIB_MAX = 1 << 20
"""1 GiB: more hardly shortens a sort that then has one pass anyway."""
_LOOK_S = 0.5


def put_back(dsn: str, connection: Connection, journal: UndoJournal, entries: Sequence[UndoEntry], note: Note) -> float:
    """Undo all, and return the seconds that it took. What fails is kept in the journal, and raised after the rest."""
    began = time.monotonic()
    failed = _build(dsn, connection, undo.of_stage(entries, 0), note)
    for number in range(1, STAGES):
        for entry in undo.of_stage(entries, number):
            if entry.token not in failed:
                failed |= _bring(connection, entry, number)
    for entry in entries:
        if entry.token not in failed:
            journal.forget(entry.token)
    if failed:
        raise PgdynoError(
            f"{len(failed)} of {len(entries)} changes could not be undone: {'; '.join(failed.values())}",
            remedy="remove the cause (of a duplicate key: the rows), then run `pgdyno load --restore DSN`",
        )
    return time.monotonic() - began


def forget_gone(dsn: str, connection: Connection, journal: UndoJournal) -> list[int]:
    """Forget what was changed in tables that are gone, with their interrupted loads. Returns those loads' jobs."""
    for entry in journal.entries():
        if not _is_there(connection, entry.table_oid) and entry.kind != "staging":
            journal.drop(entry.token)
    if undo.stored(connection) is None:
        return []
    open_jobs = many(connection, "SELECT job, table_oid FROM pgdyno_load.job WHERE ended IS NULL")
    gone = [int(job) for job, oid in open_jobs if not _is_there(connection, oid)]
    for job in gone:
        ledger.end_orphans(connection, job)
        staged = [entry for entry in journal.entries() if entry.job == job]
        put_back(dsn, connection, journal, staged, lambda _share, _text: None)
        ledger.forget(connection, job)
    return gone


def _is_there(connection: Connection, table_oid: int) -> bool:
    return bool(one(connection, "SELECT EXISTS (SELECT FROM pg_class WHERE oid = %s)", (table_oid,))[0])


def builds_at_a_time(indexes: int, cores: int) -> int:
    """Sessions that build indexes."""
    return max(1, min(indexes, cores, BUILDS_MAX))


def _bring(connection: Connection, entry: UndoEntry, number: int) -> dict[str, str]:
    """Undo a stage; what the server has against it, by the entry's token."""
    import psycopg

    try:
        undo.undo_stage(connection, entry, number)
    except psycopg.OperationalError:
        raise  # the server is gone, or full, or told to stop: the others would fare no better
    except (psycopg.Error, PgdynoError) as error:
        return {entry.token: f"{entry.what}: {said(error)}"}
    return {}


def _build(dsn: str, connection: Connection, entries: Sequence[UndoEntry], note: Note) -> dict[str, str]:
    """Build indexes, as many at a time as there are cores. Returns what failed."""
    if not entries:
        return {}
    workers = builds_at_a_time(len(entries), os.cpu_count() or 1)
    memory_kib = sort_memory_kib(connection, workers)
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(contextlib.closing(connect_another(dsn))) for _ in range(workers)]
        for session in sessions:
            run(session, f"SET maintenance_work_mem = {memory_kib}")
        idle = list(sessions)
        pool = stack.enter_context(ThreadPoolExecutor(workers, thread_name_prefix="pgdyno-index"))
        futures = [pool.submit(_one, idle, entry) for entry in entries]
        try:
            _wait(futures, note)
        except BaseException:
            cancel(sessions, futures)
            raise
        return {token: line for future in futures for token, line in future.result().items()}


def _one(idle: list[Connection], entry: UndoEntry) -> dict[str, str]:
    """Build one index in a free session; there are as many sessions as threads."""
    session = idle.pop()
    try:
        return _bring(session, entry, 0)
    finally:
        idle.append(session)


def _wait(futures: Sequence[Future[dict[str, str]]], note: Note) -> None:
    waiting = set(futures)
    while waiting:
        done = len(futures) - len(waiting)
        note(done / len(futures), f"indexes: {done} of {len(futures)} built")
        waiting -= wait(waiting, timeout=_LOOK_S, return_when=FIRST_COMPLETED).done


def sort_memory_kib(connection: Connection, workers: int, setting: str = "maintenance_work_mem") -> int:
    """The memory in which each of these sessions may sort: never less than the server's own setting."""
    shared_kib, own_kib = one(
        connection,
        "SELECT pg_size_bytes(current_setting('shared_buffers')) / 1024, pg_size_bytes(current_setting(%s)) / 1024",
        (setting,),
    )
    return max(int(own_kib), min(WORK_MEM_KIB_MAX, int(shared_kib) // SHARED_BUFFERS_SHARE // workers))
