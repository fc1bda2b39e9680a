"""A load from beginning to end, on one screen: :meth:`_Load.run`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pgdyno.errors import InputError, Interrupted, ObjectDamaged, PgdynoError
from pgdyno.loader import autovacuum, by_server, index_cost, indexes, ledger, server, staging, table, upsert
from pgdyno.loader.asked import Asked
from pgdyno.loader.compression import compression_of
from pgdyno.loader.put_back import builds_at_a_time, put_back
from pgdyno.loader.ready import Ready, created, get_ready
from pgdyno.loader.transfer import Sent, Transferred, connections, transfer
from pgdyno.loader.undo import Journal, stored

if TYPE_CHECKING:
    import psycopg

    from pgdyno.loader.indexes import Droppable
    from pgdyno.loader.ledger import Job, Totals
    from pgdyno.loader.server import Connection
    from pgdyno.loader.table import Table
    from pgdyno.loader.transfer import Tell
    from pgdyno.loader.undo import Change
    from pgdyno.loader.upsert import Merged

T = TypeVar("T")
STANDARD_INPUT_DESCRIPTOR = 0
_CONNECTION, _SHUTDOWN = "08", "57P"
"""What SQLSTATE begins with when a session is over ("Connection Exception", and "Operator Intervention" but for a cancel)."""
GO_ON = "run the same command again to go on"
AFTER_BAD_ROW = (
    "what was committed stays: the same command goes on, also with --reject; a mended file begins anew, with --abandon and"
    " --truncate"
)
AFTER_BAD_ROW_STAGED = (
    "nothing is merged yet: the same command goes on, also with --reject; a mended file begins anew, with --abandon"
)
AFTER_PIPE = "nobody can go on with what came through a pipe: begin anew, with --abandon and --truncate"
AFTER_PIPE_STAGED = "nobody can go on with what came through a pipe: begin anew, with --abandon"
AFTER_BAD_OBJECT = (
    "objects that were committed stay: the same command goes on with the others; a mended object is read by it anew"
)
AFTER_NO_LEDGER = "without a ledger nothing says which rows are in: begin anew, with --truncate"


@dataclass
class Loaded:
    """What a load came to."""

    table: str
    job: int | None = None
    """Its number in the ledger."""
    rows_loaded: int = 0
    """By all runs of this load."""
    rows_rejected: int = 0
    rows_merged: int | None = None
    """Of an upsert: rows of the table that were added or replaced. Fewer than came in where keys came twice."""
    rows_replaced: int | None = None
    """Those of them that had been there; None where the server does not count."""
    bytes: int = 0
    """Of uncompressed input."""
    bytes_before: int = 0
    """Those of them that earlier runs of this load have brought: they took this one no time."""
    chunks: int = 0
    seconds: float = 0.0
    """Of this run, all steps together."""
    steps_s: dict[str, float] = field(default_factory=dict)
    """Seconds by step: ``transfer``, ``merge``, ``put_back``, ``vacuum``, ``checkpoint``."""
    connections: int = 0
    """Sessions that copied, at the end."""
    client_cpu_s: float = 0.0
    limits: dict[str, float] = field(default_factory=dict)
    """What bound -> part of the seconds of ``transfer``."""
    indexes: str = ""
    """What was decided about indexes, and why."""
    reject_files: list[str] = field(default_factory=list)
    already: bool = False
    """Whether it had been loaded before, and nothing was done."""
    created: bool = False

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def load(sources: str | Path | Sequence[str | Path], into: str, *, tell: Tell | None = None, **options: Any) -> Loaded:
    """Load files into a table, exactly once: what ``pgdyno load`` does, as a function.

    ``sources`` are files, patterns, addresses or ``-``; ``into`` is a connection string without a password; ``options`` are
    the fields of :class:`~pgdyno.loader.asked.Asked`, as ``table="title"``, ``create=True``, ``reject=Path("bad.csv")``.
    ``tell`` gets the events of ``pgdyno load --json`` as they come. Rows that were rejected are counted in the result and
    are no error. Raises :class:`~pgdyno.errors.PgdynoError`, whose remedy says how to go on.
    """
    words = [sources] if isinstance(sources, (str, Path)) else sources
    return load_as_asked(Asked(tuple(str(word) for word in words), into, **options), tell)


def load_as_asked(asked: Asked, tell: Tell | None = None) -> Loaded:
    """Load."""
    began = time.monotonic()
    with contextlib.ExitStack() as sessions, server_errors():
        loaded = _Load(sessions, asked, tell or (lambda _event: None)).run()
    loaded.seconds = time.monotonic() - began
    return loaded


@contextlib.contextmanager
def server_errors() -> Iterator[None]:
    """What the server has against a statement, as an error of ours."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise PgdynoError(
            f"{'the server ended the session' if _is_lost(error) else 'the server refused'}: {server.said(error)}",
            remedy=f"look at the server's log; {GO_ON}",
        ) from error


def _is_lost(error: psycopg.Error) -> bool:
    """Whether the session is over. A full disk, or a lock that others hold, is an OperationalError too, and ends none."""
    import psycopg

    state = error.sqlstate or _CONNECTION
    return isinstance(error, psycopg.OperationalError) and state.startswith((_CONNECTION, _SHUTDOWN))


class _Load:
    """One load. ``connection`` is the loader's own session, for ledger, journal and decisions; others copy."""

    def __init__(self, sessions: contextlib.ExitStack, asked: Asked, tell: Tell) -> None:
        self.asked, self.tell = asked, tell
        self.result = Loaded("")
        self._sessions = sessions
        self._is_piped = False
        """Whether a source can be read only once."""
        self.connection = self._connect()

    def run(self) -> Loaded:
        """The whole of it. Ctrl-C says how to go on wherever it comes, also between two steps."""
        try:
            return self._run()
        except KeyboardInterrupt as error:
            raise self._interrupted("interrupted") from error

    def _run(self) -> Loaded:
        ready = self._ready()
        job = self._job(ready)
        if self.result.already:
            return self.result
        if ready.keys and job is not None:
            self._upsert(ready, job)
        else:
            self._bring(ready, job, lambda: (ready.target, self._change(ready, job)))
        if job is not None:
            self._step("put_back", self._put_back)
        self._finish(ready, job)
        return self.result

    def _upsert(self, ready: Ready, job: Job) -> None:
        """Rows into their staging table, and from there into the target; what an earlier run did of it is done."""
        rows = (ready.target, ready.loaded, ready.keys, job.number)
        self.result.indexes = "kept: rows are merged by the keys' own"
        merged = upsert.merged(self.connection, job.number)
        if merged is None:
            self._bring(ready, job, lambda: (staging.ensure(self.connection, *rows), 0))
            self._note("merge")
            merged = self._step("merge", lambda: upsert.merge(self.connection, *rows, self.result.rows_loaded))
        else:
            self._take(ledger.totals(self.connection, job.number))
        self._take_merged(merged)

    def _bring(self, ready: Ready, job: Job | None, prepare: Callable[[], tuple[Table, int]]) -> None:
        """Rows into the table that ``prepare`` makes ready; it also says how many indexes they are put into."""
        before = None if job is None else ledger.totals(self.connection, job.number)
        send = transfer if self.asked.via is None else by_server.transfer
        try:
            into, kept = prepare()
            done = self._step("transfer", lambda: send(self._sent(ready, job, into, kept), self.tell))
        except (KeyboardInterrupt, InputError) as error:
            self._give_up(ready, job)
            raise self._in_words(error, ready) from error
        except BaseException:
            self._give_up(ready, job)
            raise
        self._connect_again(ready, job)
        self._count(ready, job, before, done)

    def _connect(self) -> Connection:
        return self._sessions.enter_context(contextlib.closing(server.connect(self.asked.into)))

    def _connect_again(self, ready: Ready, job: Job | None) -> None:
        """The engine waits for a server that was started anew; this session has then ended meanwhile, and its lock too."""
        import psycopg

        with contextlib.suppress(psycopg.OperationalError):
            server.one(self.connection, "SELECT 1")
            return
        self.connection = self._connect()
        if job is not None:
            ledger.lock(self.connection, ready.target.oid, ready.target.quoted)

    def _ready(self) -> Ready:
        look = get_ready if self.asked.via is None else by_server.get_ready
        ready = look(self.connection, self.asked)
        piped = [one.stream for one in ready.sources if one.stream is not None]
        self._is_piped = bool(piped)
        for descriptor in piped:
            # A FIFO was opened here: who writes into it next is of another load.
            if descriptor != STANDARD_INPUT_DESCRIPTOR:
                self._sessions.callback(os.close, descriptor)
        for note in ready.notes:
            self._note(note)
        if ready.definition is not None:
            self.tell({"event": "create", "definition": ready.definition})
            ready = created(self.connection, ready)
            self.result.created = True
        self.result.table = ready.target.quoted
        return ready

    def _job(self, ready: Ready) -> Job | None:
        """The place in the ledger; None without one. What an earlier load left changed is put back first."""
        if not self.asked.ledger:
            if self.asked.truncate:
                ledger.truncate(self.connection, ready.target)
            self._tell_plan(ready, None)
            return None
        self._require_no_files_alone(ready)
        ledger.ensure(self.connection)
        ledger.lock(self.connection, ready.target.oid, ready.target.quoted)
        plan = ledger.plan_of(ready.target, ready.sources, ready.options())
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
        except ledger.AlreadyLoaded as done:
            self._already(ready, done)
            return None
        self.result.job = job.number
        journal = Journal(self.connection)
        left = [entry for entry in journal.entries(ready.target.quoted) if entry.job != job.number]
        if left:
            self._note("putting back what an earlier load left changed")
            put_back(self.asked.into, self.connection, journal, left, self._show)
        self._tell_plan(ready, job)
        return job

    def _require_no_files_alone(self, ready: Ready) -> None:
        """Where somebody dropped the schema, files alone say what is changed, and beside a new one they would count as done."""
        if stored(self.connection) is not None:
            return
        targets = {entry.target for entry in Journal(self.connection).entries() if entry.kind != staging.KIND}
        if self.result.created:
            targets.discard(ready.target.quoted)  # it was of a table that had this name
        there = "SELECT to_regclass(%s) IS NOT NULL"
        left = [target for target in sorted(targets) if server.one(self.connection, there, (target,))[0]]
        if left:
            raise InputError(
                f"the schema {ledger.SCHEMA} was dropped before what a load had changed in {left[0]} was put back; only files"
                " of this machine say what that was",
                remedy="run `pgdyno load --restore DSN`, then the same command again",
            )

    def _already(self, ready: Ready, before: ledger.AlreadyLoaded) -> None:
        self.result.already, self.result.job = True, before.job.number
        self._take(ledger.totals(self.connection, before.job.number))
        if ready.keys:
            self._take_merged(upsert.merged(self.connection, before.job.number))
        self._note(f"loaded already at {before.ended:%Y-%m-%d %H:%M:%S%z}; --again loads it once more")

    def _change(self, ready: Ready, job: Job | None) -> int:
        """Make the target fast to load; returns how many indexes stay and are filled row by row."""
        now = table.of(self.connection, ready.target.oid)  # what an earlier load had changed was put back meanwhile
        found = indexes.droppable(self.connection, now)
        if job is None:
            self.result.indexes = "kept: without a ledger nothing is changed"
            return sum(one.cost is not None for one in found)
        journal = Journal(self.connection)
        if not job.fresh and journal.entries(ready.target.quoted):
            self.result.indexes = "as the interrupted run left them"
            return sum(one.cost is not None for one in found)
        quiet = autovacuum.off(now) if self.asked.autovacuum_off else None
        if quiet is not None:
            self._keep_quiet(journal, job, quiet, now)
        chosen, self.result.indexes = self._choose(ready, job, found)
        self._note(f"indexes: {self.result.indexes}")
        dropped = sum(self._drop(journal, job, ready, one) for one in chosen)
        return sum(one.cost is not None for one in found) - dropped

    def _choose(self, ready: Ready, job: Job, found: Sequence[Droppable]) -> tuple[list[Droppable], str]:
        """What to drop, and why."""
        empty = job.fresh and table.is_empty(self.connection, ready.target)
        # Without what refuses rows, a doubled key is found when all is loaded. An empty table can be emptied again.
        may_refuse = self.asked.reject is None and (empty or self.asked.indexes == "rebuild")
        able = [one for one in found if may_refuse or not one.refuses]
        costs = [one.cost for one in able if one.cost is not None]
        before = 0.0 if empty else ready.rows_before()
        new = ready.rows_total
        if new is None and self.asked.indexes == "auto":
            return [], "kept: nobody knows how many rows a stream has"
        sessions, cores = connections(self.asked)[0], os.cpu_count() or 1
        builds = builds_at_a_time(len(costs), cores)
        predicted = index_cost.predict(costs, before, new or 0.0, sessions=sessions, builds=builds, cores=cores)
        drop, why = index_cost.choose(self.asked.indexes, predicted, len(able))
        return (able, f"rebuilt: {why}") if drop else ([], f"kept: {why}")

    def _keep_quiet(self, journal: Journal, job: Job, quiet: Change, now: Table) -> None:
        """Keep autovacuum away, unless somebody works on the table who does not let it be altered: rows come in all the same."""
        import psycopg

        try:
            journal.make(quiet, job.number, now.quoted)
        except psycopg.errors.LockNotAvailable:
            self._note(f"autovacuum is not kept from {now.quoted}: others hold a lock on it, as VACUUM does")

    def _drop(self, journal: Journal, job: Job, ready: Ready, one: Droppable) -> int:
        """Drop one; 1 when it was an index and is gone."""
        import psycopg

        try:
            journal.make(one.change, job.number, ready.target.quoted)
        except psycopg.errors.DependentObjectsStillExist as error:
            self._note(f"kept: {server.said(error)}")
            return 0
        except psycopg.errors.LockNotAvailable:
            raise InputError(
                f"others use {ready.target.quoted}, so that its indexes cannot be dropped",
                remedy="load when nobody does, or with --indexes keep",
            ) from None
        return int(one.cost is not None)

    def _sent(self, ready: Ready, job: Job | None, into: Table, indexes_kept: int) -> Sent:
        number = None if job is None else job.number
        files = (self.asked, ready.sources, ready.format, ready.encoding, ready.header)
        return Sent(*files, ready.loaded if ready.keys else ready.columns, into, number, indexes_kept)

    def _count(self, ready: Ready, job: Job | None, before: Totals | None, done: Transferred) -> None:
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

    def _take_merged(self, merged: Merged | None) -> None:
        if merged is not None:
            self.result.rows_merged, self.result.rows_replaced = merged.rows, merged.replaced

    def _put_back(self) -> None:
        """But for what is staged: the merge drops it, and until then a second run needs it."""
        journal = Journal(self.connection)
        entries = [entry for entry in journal.entries(self.result.table) if entry.kind != staging.KIND]
        put_back(self.asked.into, self.connection, journal, entries, self._show)

    def _finish(self, ready: Ready, job: Job | None) -> None:
        """Statistics and visibility, then durability, and only then success."""
        if self.asked.vacuum and ready.target.kind != "f":
            self._note("vacuum and analyze")
            self._step("vacuum", lambda: server.run(self.connection, f"VACUUM (ANALYZE) {ready.target.quoted}"))
        self._note("checkpoint")
        self._step("checkpoint", lambda: self._make_durable(ready, job))

    def _make_durable(self, ready: Ready, job: Job | None) -> None:
        if job is not None:
            ledger.end_job(self.connection, job.number)
        else:
            with ledger.durably(self.connection):
                server.run(self.connection, "SELECT txid_current()")  # without a number nothing is written for it
        if ready.facts.may_checkpoint and self.asked.checkpoint:
            server.run(self.connection, "CHECKPOINT")

    def _give_up(self, ready: Ready, job: Job | None) -> None:
        """Put back what was changed, if the server is there to do it."""
        import psycopg

        if job is None:
            return
        try:
            self._connect_again(ready, job)
            if isinstance(ready.failure, ObjectDamaged):
                ledger.distrust(self.connection, job.number, ready.failure.message)
            self._put_back()
        except (psycopg.Error, PgdynoError) as failure:
            said = " ".join(str(failure).split())
            self._note(
                f"not put back yet: {said}; `pgdyno load --restore DSN` does it, and so does the same command again"
            )

    def _in_words(self, error: KeyboardInterrupt | InputError, ready: Ready) -> PgdynoError:
        """The error that the user sees, with how to go on."""
        if isinstance(error, KeyboardInterrupt):
            return self._interrupted("interrupted; the chunks that were committed are loaded")
        if self.result.job is None:
            return error
        # The engine's: chunks may have been committed, so it is not as if nothing had happened.
        after = AFTER_BAD_ROW_STAGED if self.asked.upsert else AFTER_BAD_ROW
        after = self._to_go_on(after if self.asked.via is None else AFTER_BAD_OBJECT)
        after = f"; {after}" if ready.failure is None else ""
        return PgdynoError(error.message, remedy=f"{error.remedy}{after}".removeprefix("; "))

    def _interrupted(self, what: str) -> Interrupted:
        """What to do after Ctrl-C: without a ledger the same command would load again what is loaded."""
        return Interrupted(what, remedy=self._to_go_on(GO_ON) if self.asked.ledger else AFTER_NO_LEDGER)

    def _to_go_on(self, usual: str) -> str:
        """What to do after an error. With a pipe the same command would be refused, since nobody knows what comes again."""
        if not self._is_piped:
            return usual
        return AFTER_PIPE_STAGED if self.asked.upsert else AFTER_PIPE

    def _step(self, name: str, work: Callable[[], T]) -> T:
        began = time.monotonic()
        result = work()
        self.result.steps_s[name] = time.monotonic() - began
        return result

    def _note(self, text: str) -> None:
        self.tell({"event": "note", "text": text})

    def _show(self, share: float, text: str) -> None:
        self.tell({"event": "step", "share": share, "text": text})

    def _tell_plan(self, ready: Ready, job: Job | None) -> None:
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
