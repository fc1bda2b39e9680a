"""A load from beginning to end, on one screen: :meth:`_Load.run`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pgdyno.loader import (
    advice,
    autovacuum,
    by_server,
    column_types,
    index_cost,
    indexes,
    ledger,
    presence,
    sequences,
    server,
    staging,
    table,
    trust,
    undo,
    upsert,
)
from pgdyno.loader.asked import LoadOptions
from pgdyno.loader.compression import compression_of
from pgdyno.loader.ending import LoadProgress, server_errors
from pgdyno.loader.indexes import Droppable
from pgdyno.loader.ledger import LoadJob, Totals
from pgdyno.loader.presence import TablePresence
from pgdyno.loader.put_back import builds_at_a_time, forget_gone, put_back
from pgdyno.loader.ready import PreparedLoad, created, get_ready, typed
from pgdyno.loader.result import LoadResult
from pgdyno.loader.table import TargetTable
from pgdyno.loader.transfer import Tell, TransferRequest, TransferResult, connections, transfer
from pgdyno.loader.undo import TargetChange, UndoJournal
from pgdyno.loader.upsert import MergeResult
from pgdyno.loader.waiting import WaitSampler, one_at_a_time

from ..base.endpoint import pinned
from ..base.errors import InputError, ObjectDamaged, PgdynoError
from ..base.session import Connection

T = TypeVar("T")
STANDARD_INPUT_DESCRIPTOR = 0
KEPT_FOR_MERGE = "kept: rows are merged by unique indexes"
"""What is decided about indexes where rows are merged."""


def load(
    sources: str | Path | Sequence[str | Path], into: str, *, tell: Tell | None = None, **options: Any
) -> LoadResult:
    """Load files into a table, exactly once: what ``pgdyno load`` does, as a function.

    ``sources`` are files, patterns, addresses or ``-``; ``into`` is a connection string without a password; ``options`` are
    the fields of :class:`~pgdyno.loader.asked.LoadOptions`, as ``table="title"``, ``create=True``, ``reject=Path("bad.csv")``.
    ``tell`` gets the events of ``pgdyno load --json`` as they come, one at a time, some in another thread. Rows that were
    rejected are counted in the result and are not errors. Raises :class:`~pgdyno.base.errors.PgdynoError`, whose remedy says how
    to resume.
    """
    words = [sources] if isinstance(sources, (str, Path)) else sources
    return load_as_asked(LoadOptions(tuple(str(word) for word in words), into, **options), tell)


def load_as_asked(options: LoadOptions, tell: Tell | None = None) -> LoadResult:
    """Load."""
    began = time.monotonic()
    with contextlib.ExitStack() as sessions, server_errors():
        loaded = _Load(sessions, options, one_at_a_time(tell)).run()
    loaded.seconds = time.monotonic() - began
    return loaded


class _Load:
    """One load. ``connection`` is the loader's own session, for ledger, journal and decisions; others copy."""

    def __init__(self, sessions: contextlib.ExitStack, options: LoadOptions, tell: Tell) -> None:
        self.asked, self.tell = options, tell
        self.result = LoadResult("")
        self._sessions = sessions
        self._plan: dict[str, Any] = {}
        self._found = TablePresence()
        """The table when a load without a ledger began."""
        self.connection = self._connect()
        # Further sessions go where this one is, and are encrypted if it is.
        into, cpus = pinned(options.into, self.connection), server.processors(self.connection)
        self.asked = replace(options, into=into, server_processors=options.server_processors or cpus)
        self._ending = LoadProgress(self.asked)
        self._waiting = WaitSampler(self.asked.into, self._note)
        self._waiting.watch(self.connection)

    def run(self) -> LoadResult:
        """All steps. After Ctrl-C the error says how to resume, also between two steps."""
        try:
            with self._waiting:
                return self._run()
        except KeyboardInterrupt as error:
            raise self._ending.interrupted("interrupted") from error
        except InputError as error:
            if not self._ending.changed:
                raise
            raise self._ending.after_changes(error) from error

    def _run(self) -> LoadResult:
        ready = self._ready()
        self._waiting.watch(self.connection, ready.target.oid)
        job = self._job(ready)
        if self.result.already:
            return self.result
        if ready.is_staged and job is not None:
            self._merge(ready, job)
        else:
            self._bring(ready, job, lambda: (ready.target, self._change(ready, job)))
        if job is not None:
            self._step("put_back", lambda: self._put_back(ready))
        self._finish(ready, job)
        loaded = [column.name for column in ready.loaded]
        self.result.sequences_behind = sequences.behind(self.connection, ready.target, loaded)
        return self.result

    def _merge(self, ready: PreparedLoad, job: LoadJob) -> None:
        """Rows into their staging table, and from there into the target; what an earlier run did of it is done."""
        rows = (ready.target, ready.loaded, ready.keys, job.number)
        skip = self.asked.on_conflict is not None
        self.result.indexes = KEPT_FOR_MERGE
        merged = upsert.merged(self.connection, job.number)
        if merged is None:
            self._bring(ready, job, lambda: (staging.ensure(self.connection, *rows), 0))
            self._note("merge")
            merged = self._step(
                "merge", lambda: upsert.merge(self.connection, *rows, self.result.rows_loaded, skip=skip)
            )
        else:
            self._take(ledger.totals(self.connection, job.number))
        self._take_merged(merged)

    def _bring(self, ready: PreparedLoad, job: LoadJob | None, prepare: Callable[[], tuple[TargetTable, int]]) -> None:
        """Rows into the table that ``prepare`` makes ready; it also says how many indexes they are put into."""
        before = None if job is None else ledger.totals(self.connection, job.number)
        send = transfer if self.asked.via is None else by_server.transfer
        try:
            into, kept = prepare()
            done = self._step("transfer", lambda: send(self._sent(ready, job, into, kept), self._tell_progress))
            self._connect_again(ready, job)
            self._count(ready, job, before, done)
        except (KeyboardInterrupt, InputError) as error:
            if isinstance(error, InputError) and not ready.is_columnar and self.asked.via is None:
                error.remedy = advice.remedy_for(error, ready.samples, ready.format) or error.remedy
            self._give_up(ready, job, error)
            raise self._ending.of_transfer(error, ready, None if job is None else job.number) from error
        except BaseException as error:
            self._give_up(ready, job, error)
            raise

    def _connect(self) -> Connection:
        return self._sessions.enter_context(contextlib.closing(server.connect(self.asked.into)))

    def _connect_again(self, ready: PreparedLoad, job: LoadJob | None) -> None:
        """After a restart of the server, which the engine waits for, this session and its lock are gone: open them again."""
        import psycopg

        with contextlib.suppress(psycopg.OperationalError):
            server.one(self.connection, "SELECT 1")
            return
        self.connection = self._connect()
        self._waiting.watch(self.connection, ready.target.oid)
        if job is not None:
            ledger.lock(self.connection, ready.target.oid, ready.target.quoted)

    def _ready(self) -> PreparedLoad:
        look = get_ready if self.asked.via is None else by_server.get_ready
        ready = look(self.connection, self.asked)
        piped = [source.stream for source in ready.sources if source.stream is not None]
        self._ending.is_piped = bool(piped)
        for descriptor in piped:
            # A FIFO was opened here: who writes into it next is of another load.
            if descriptor != STANDARD_INPUT_DESCRIPTOR:
                self._sessions.callback(os.close, descriptor)
        for note in ready.notes:
            self._note(*note)
        self._require_possible(ready)
        if ready.definition is not None:
            ready = typed(ready, self.tell)
            self._tell_definition(ready)
            ready = created(self.connection, ready)
            self.result.created = True
            self._ending.changed.append(f"the table {ready.target.quoted} was created, and is empty")
        self.result.table = ready.target.quoted
        return ready

    def _job(self, ready: PreparedLoad) -> LoadJob | None:
        """The place in the ledger; None without one. What an earlier load left changed is put back first."""
        if not self.asked.ledger:
            if self.asked.truncate:
                ledger.truncate(self.connection, ready.target)
                self._ending.changed.append(f"the table {ready.target.quoted} was emptied")
            self._found = presence.look(self.connection, ready.target)
            self._tell_plan(ready, None)
            return None
        was_there = trust.require(self.connection)
        trust.ensure(self.connection)
        if not was_there:
            self._note(
                f"the schema {trust.SCHEMA} was created in this database: the ledger of loads, by which each row is loaded once;"
                f" `DROP SCHEMA {trust.SCHEMA} CASCADE` removes it when no load is under way or interrupted",
                "load.ledger.created",
            )
        ledger.lock(self.connection, ready.target.oid, ready.target.quoted)
        for moot in forget_gone(self.asked.into, self.connection, UndoJournal(self.connection)):
            self._note(f"the interrupted load {moot} is forgotten: its table was dropped")
        plan = self._plan = ledger.plan_of(ready.target, ready.sources, ready.options())
        before = ledger.interrupted(self.connection, ready.target)
        if before is not None:
            # Also of one that is to be abandoned: its rows must not come after the table was emptied.
            ledger.end_orphans(self.connection, before)
        try:
            job = ledger.open_job(
                self.connection,
                ready.target,
                plan,
                truncate=self.asked.truncate,
                again=self.asked.again,
                abandon=self.asked.abandon,
            )
        except ledger.PriorLoad as done:
            self._already(ready, done)
            return None
        self.result.job = job.number
        if job.fresh and self.asked.truncate:
            self._ending.changed.append(f"the table {ready.target.quoted} was emptied")
        journal = UndoJournal(self.connection)
        left = [entry for entry in journal.entries(ready.target.oid) if entry.job != job.number]
        if left:
            self._note("restoring what an earlier load left changed")
            put_back(self.asked.into, self.connection, journal, left, self._show)
        self._tell_plan(ready, job)
        return job

    def _require_possible(self, ready: PreparedLoad) -> None:
        """Refuse what can be refused before anything is made. A table and a ledger that exist say more: :func:`ledger.open_job`."""
        has_ledger = self.asked.ledger and trust.require(self.connection)
        if self.asked.ledger and not has_ledger:
            self._require_no_files_alone()
            trust.require_may_create(self.connection)
        if self.asked.reject is not None and not (has_ledger and ready.table is not None):
            ledger.require_new(str(self.asked.reject))

    def _require_no_files_alone(self) -> None:
        """Where there is no ledger, only files say what is changed; beside a new one they would count as restored."""
        changed = {
            entry.table_oid: entry.target
            for entry in UndoJournal(self.connection).entries()
            if entry.kind != staging.KIND
        }
        there = "SELECT EXISTS (SELECT FROM pg_class WHERE oid = %s)"
        left = [target for oid, target in sorted(changed.items()) if server.one(self.connection, there, (oid,))[0]]
        if left:
            raise InputError(
                f"the schema {trust.SCHEMA} was dropped before what a load had changed in {left[0]} was restored; only files"
                " of this machine say what that was",
                remedy="run `pgdyno load --restore DSN`, then the same command again",
            )

    def _already(self, ready: PreparedLoad, before: ledger.PriorLoad) -> None:
        self.result.already, self.result.job = True, before.job
        self._take(ledger.totals(self.connection, before.job))
        if ready.is_staged:
            self._take_merged(upsert.merged(self.connection, before.job))
        self._note(f"already loaded at {before.ended:%Y-%m-%d %H:%M:%S%z}; --again loads it once more")

    def _change(self, ready: PreparedLoad, job: LoadJob | None) -> int:
        """Make the target fast to load; returns how many indexes stay and are filled row by row."""
        now = table.of(self.connection, ready.target.oid)  # what an earlier load had changed was put back meanwhile
        droppables = indexes.droppable(self.connection, now)
        if job is None:
            self.result.indexes = "kept: without a ledger nothing is changed"
            return sum(droppable.cost is not None for droppable in droppables)
        journal = UndoJournal(self.connection)
        if not job.fresh and journal.entries(ready.target.oid):
            self.result.indexes = "as the interrupted run left them"
            return sum(droppable.cost is not None for droppable in droppables)
        quiet = autovacuum.off(now) if self.asked.autovacuum_off else None
        if quiet is not None:
            self._keep_quiet(journal, job, quiet, now)
        chosen, self.result.indexes = self._choose(ready, job, droppables)
        self._note(f"indexes: {self.result.indexes}")
        dropped = sum(self._drop(journal, job, ready, droppable) for droppable in chosen)
        return sum(droppable.cost is not None for droppable in droppables) - dropped

    def _choose(
        self, ready: PreparedLoad, job: LoadJob, droppables: Sequence[Droppable]
    ) -> tuple[list[Droppable], str]:
        """What to drop, and why."""
        empty = job.fresh and table.is_empty(self.connection, ready.target)
        # Without what refuses rows, a doubled key is found when all is loaded. An empty table can be emptied again.
        may_refuse = self.asked.reject is None and (empty or self.asked.indexes == "rebuild")
        able = [droppable for droppable in droppables if may_refuse or not droppable.refuses]
        costs = [droppable.cost for droppable in able if droppable.cost is not None]
        before = 0.0 if empty else ready.rows_before()
        new = ready.rows_total
        if new is None and self.asked.indexes == "auto":
            return [], "kept: the number of rows in a stream is not known"
        sessions, cores = connections(self.asked)[0], self.asked.server_processors or 1
        builds = builds_at_a_time(len(costs), cores)
        predicted = index_cost.predict(costs, before, new or 0.0, sessions=sessions, builds=builds, cores=cores)
        drop, why = index_cost.choose(self.asked.indexes, predicted, len(able))
        return (able, f"rebuilt: {why}") if drop else ([], f"kept: {why}")

    def _keep_quiet(self, journal: UndoJournal, job: LoadJob, quiet: TargetChange, now: TargetTable) -> None:
        """Turn autovacuum off, unless another session's lock prevents it: the load works with it, too."""
        import psycopg

        try:
            journal.make(quiet, job.number, now.quoted, now.oid)
        except psycopg.errors.LockNotAvailable:
            self._note(f"autovacuum stays on for {now.quoted}: another session (perhaps VACUUM) holds a lock on it")

    def _drop(self, journal: UndoJournal, job: LoadJob, ready: PreparedLoad, droppable: Droppable) -> int:
        """Drop one; 1 when it was an index and is gone."""
        import psycopg

        try:
            journal.make(droppable.change, job.number, ready.target.quoted, ready.target.oid)
        except psycopg.errors.DependentObjectsStillExist as error:
            self._note(f"kept: {server.said(error)}")
            return 0
        except psycopg.errors.LockNotAvailable:
            raise InputError(
                f"other sessions use {ready.target.quoted}, so its indexes cannot be dropped",
                remedy="load when no other session uses it, or with --indexes keep",
            ) from None
        return int(droppable.cost is not None)

    def _sent(self, ready: PreparedLoad, job: LoadJob | None, into: TargetTable, indexes_kept: int) -> TransferRequest:
        number = None if job is None else job.number
        files = (self.asked, ready.sources, ready.format, ready.encoding, ready.header)
        of_rows = ready.loaded if ready.is_staged else ready.columns
        return TransferRequest(*files, of_rows, into, number, indexes_kept, ready.endpoint, self._held_to(ready))

    def _count(self, ready: PreparedLoad, job: LoadJob | None, before: Totals | None, done: TransferResult) -> None:
        """Take over what was done, and see that it adds up."""
        result = self.result
        result.connections, result.client_cpu_s = done.connections, done.client_cpu_s
        result.limits, result.reject_files = done.limits, done.reject_files
        result.rows_loaded, result.rows_rejected = done.rows_loaded, done.rows_rejected
        result.bytes, result.chunks = done.bytes, done.chunks
        if job is None or before is None:
            return
        compressed = [compression_of(source.head) != "none" for source in ready.sources]
        ledger.check_whole(self.connection, job.number, ready.sources, compressed)
        totals = ledger.totals(self.connection, job.number)
        ledger.reconcile(before, totals, done.rows_loaded, done.rows_rejected)
        self._take(totals)
        result.bytes_before = before.bytes

    def _take(self, totals: Totals) -> None:
        result = self.result
        result.rows_loaded, result.rows_rejected = totals.rows_loaded, totals.rows_rejected
        result.bytes, result.chunks = totals.bytes, totals.chunks

    def _take_merged(self, merged: MergeResult | None) -> None:
        if merged is None:
            return
        self.result.rows_merged = merged.rows
        if self.asked.on_conflict is None:
            self.result.rows_replaced = merged.replaced
        else:
            self.result.rows_skipped = self.result.rows_loaded - merged.rows

    def _put_back(self, ready: PreparedLoad) -> None:
        """But for what is staged: the merge drops it, and until then a second run needs it."""
        journal = UndoJournal(self.connection)
        entries = [entry for entry in journal.entries(ready.target.oid) if entry.kind != staging.KIND]
        put_back(self.asked.into, self.connection, journal, entries, self._show)

    def _finish(self, ready: PreparedLoad, job: LoadJob | None) -> None:
        """Statistics and visibility, then durability, and only then success."""
        if self.asked.vacuum and ready.target.kind != "f":
            self._note("vacuum and analyze")
            self._step("vacuum", lambda: self._vacuum(ready.target))
        self._note("checkpoint")
        self._step("checkpoint", lambda: self._make_durable(ready, job))

    def _vacuum(self, target: TargetTable) -> None:
        """VACUUM and ANALYZE, but not behind a lock that others hold: an open transaction may hold it for hours."""
        import psycopg

        server.run(self.connection, f"SET lock_timeout = '{undo.LOCK_TIMEOUT_S}s'")
        try:
            server.run(self.connection, f"VACUUM (ANALYZE) {target.quoted}")
        except psycopg.errors.LockNotAvailable:
            self._note(
                f"{target.quoted} is not vacuumed and analyzed: other sessions hold a lock on it; run"
                f" `VACUUM (ANALYZE) {target.quoted}` later"
            )
        finally:
            server.run(self.connection, "SET lock_timeout = 0")

    def _make_durable(self, ready: PreparedLoad, job: LoadJob | None) -> None:
        if job is not None:
            counted = self.asked.vacuum and ready.target.kind != "f"
            ledger.end_job(self.connection, ready.target, job, self._plan, counted=counted)
        else:
            with ledger.durably(self.connection):
                ledger.require_there(self.connection, ready.target, self._found, self.result.rows_loaded)
                server.run(self.connection, "SELECT txid_current()")  # without a number nothing is written for it
        if ready.facts.may_checkpoint and self.asked.checkpoint:
            server.run(self.connection, "CHECKPOINT")

    def _give_up(self, ready: PreparedLoad, job: LoadJob | None, error: BaseException) -> None:
        """Put back what was changed, if the server is there to do it."""
        import psycopg

        if job is None:
            return
        code = getattr(error, "code", "")
        try:
            self._connect_again(ready, job)
            totals = ledger.totals(self.connection, job.number)
            self._ending.rows_seen, self._ending.rows_rejected = totals.rows_loaded, totals.rows_rejected
            # An object that changed has another ETag, by which a second run sees it.
            if isinstance(ready.failure, ObjectDamaged) or (ready.failure is None and code in ledger.NOT_TO_BE_RESUMED):
                ledger.distrust(self.connection, job.number, str(ready.failure or error))
            forget_gone(self.asked.into, self.connection, UndoJournal(self.connection))
            self._put_back(ready)
            if code not in ledger.NOT_TO_BE_RESUMED - {ledger.CHANGED}:
                self._end_without_rows(ready, job)
        except (psycopg.Error, PgdynoError) as failure:
            text = " ".join(str(failure).split())
            self._note(
                f"not restored yet: {text}; `pgdyno load --restore DSN` restores it, and so does the same command"
            )

    def _end_without_rows(self, ready: PreparedLoad, job: LoadJob) -> None:
        """Forget a load of which no chunk came in; a file of rejected rows is still its own."""
        rejects = self.asked.reject
        if ready.failure is not None or (rejects is not None and rejects.exists()):
            return
        if ledger.totals(self.connection, job.number).chunks == 0:
            journal = UndoJournal(self.connection)
            left = [entry for entry in journal.entries() if entry.job == job.number]
            put_back(self.asked.into, self.connection, journal, left, self._show)
            ledger.forget(self.connection, job.number)
            self._ending.has_rows = False

    def _step(self, name: str, work: Callable[[], T]) -> T:
        began = time.monotonic()
        result = work()
        self.result.steps_s[name] = time.monotonic() - began
        return result

    def _tell_progress(self, event: Mapping[str, Any]) -> None:
        self._ending.see(event)
        self.tell(event)

    def _note(self, text: str, code: str = "") -> None:
        self.tell({"event": "note", "text": text, "code": code})

    def _tell_definition(self, ready: PreparedLoad) -> None:
        presence = ready.types
        seen = (
            {}
            if presence is None
            else {"rows": presence.rows, "seconds": presence.seconds, "is_whole": presence.is_whole}
        )
        streams = any(source.stream is not None for source in ready.sources)
        self.tell({"event": "create", "definition": ready.definition, "types_by": {**seen, "streams": streams}})
        if presence is not None:
            for note in column_types.notes(self.connection, presence):
                self._note(*note)

    def _held_to(self, ready: PreparedLoad) -> list[dict[str, Any]] | None:
        """The types that the rest of a stream is held to; None where they were chosen by all rows, or by the user."""
        if ready.types is None or all(source.stream is None for source in ready.sources):
            return None
        return [column.document() for column in ready.types.columns]

    def _show(self, share: float, text: str) -> None:
        self.tell({"event": "step", "share": share, "text": text})

    def _tell_plan(self, ready: PreparedLoad, job: LoadJob | None) -> None:
        plan: dict[str, Any] = {
            "event": "plan",
            "table": ready.target.quoted,
            "job": None if job is None else job.number,
            "goes_on": job is not None and not job.fresh,
            "sources": [source.name for source in ready.sources],
            "bytes": ready.bytes_total,
            **ready.options(),
        }
        self.tell(plan)
