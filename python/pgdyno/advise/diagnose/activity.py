"""Activity of a watched server: blocking sessions, costly statements, open transactions, and times without an answer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from pgdyno.analysis.binding.verdict import BindingVerdict, RunBinding, total
from pgdyno.analysis.figures import BLOCK_BYTES
from pgdyno.probe.sampler import LONG_NS, SLOW, is_full

from ...analysis.binding.rules import BindingLimit, Limit
from ...base.text import duration, number, percent
from ...results import StoredRun

if TYPE_CHECKING:
    import pyarrow as pa


TABLE = "probe/blockers"
STANDS_S = 2.0
"""Age of a transaction from which others wait for that one: locks that are held for less are those of a busy server."""
SHOWN_MAX = 3


@dataclass(frozen=True)
class Blocker:
    """A session that holds what others wait for, as it was seen last."""

    pid: int
    """0: a transaction that was prepared and has no session."""
    application: str | None
    user: str | None
    database: str | None
    client: str | None
    """Address; None of a local one, or where it may not be seen."""
    state: str | None
    """``idle in transaction``, ``active``, ...; None where it may not be seen."""
    transaction_s: float | None
    """Age of its transaction."""
    state_s: float | None
    """How long it has been in that state."""
    lock: str
    """``a row of public.orders (ExclusiveLock of its transaction)``."""
    waiting: int
    """Sessions that waited for locks then, most of them for this one."""
    longest_wait_s: float

    @property
    def is_idle(self) -> bool:
        """Whether its client does nothing while others wait."""
        return (self.state or "").startswith("idle in transaction")

    @property
    def statement(self) -> str:
        """What ends it."""
        if self.pid == 0:
            return "SELECT gid, prepared, owner FROM pg_prepared_xacts; ROLLBACK PREPARED 'gid'"
        return f"SELECT pg_terminate_backend({self.pid})"

    @property
    def name(self) -> str:
        """``session 4711 (application "app", user monitor, database shop)``."""
        if self.pid == 0:
            return "a prepared transaction, which has no session,"
        parts = [
            f"application {self.application}" if self.application else "",
            f"user {self.user}" if self.user else "",
            f"database {self.database}" if self.database else "",
            f"from {self.client}" if self.client else "",
        ]
        known = ", ".join(part for part in parts if part)
        return f"session {self.pid}" + (f" ({known})" if known else "")


def blockers_of(run: StoredRun) -> tuple[Blocker, ...]:
    """Those that held a lock for long, the one that was seen most often first."""
    table = run.table(TABLE)
    of_pid: dict[int, list[dict[str, Any]]] = {}
    for row in table.to_pylist() if table.num_rows else []:
        of_pid.setdefault(row["pid"], []).append(row)
    numbers = [(len(rows), _blocker(rows[-1])) for rows in of_pid.values()]
    standing = [
        (seen, item)
        for seen, item in numbers
        if max(item.transaction_s or 0.0, item.longest_wait_s if item.pid == 0 else 0.0) >= STANDS_S
    ]
    ordered = sorted(standing, key=lambda item: (-item[0], -(item[1].transaction_s or 0.0)))
    return tuple(item for _, item in ordered[:SHOWN_MAX])


def blocker_words(blocker: Blocker) -> str:
    """Who holds what, since when, and how many wait."""
    idle = f" and is {blocker.state}" if blocker.is_idle else f" and is {blocker.state}" if blocker.state else ""
    since = "" if blocker.state_s is None or not blocker.state else f", for {duration(blocker.state_s)}"
    age = "" if blocker.transaction_s is None else f"; its transaction is {duration(blocker.transaction_s)} old"
    return (
        f"{blocker.name} holds {blocker.lock}{idle}{since}{age}; {blocker.waiting:,} {'session waits' if blocker.waiting == 1 else 'sessions wait'}"
        f" for locks, for up to {duration(blocker.longest_wait_s)}"
    )


def ending_words(blockers: Sequence[Blocker]) -> str | None:
    """The statement that ends the first of them, as a choice; None without one."""
    if not blockers:
        return None
    blocker = blockers[0]
    if blocker.pid == 0:
        return f"end the prepared transaction, if its work may be lost: {blocker.statement}"
    then = ""
    if blocker.is_idle:
        then = "; idle_in_transaction_session_timeout would end such a session by itself"
    return f"end the session that holds the lock, if its work may be rolled back: {blocker.statement}{then}"


def _blocker(row: dict[str, Any]) -> Blocker:
    return Blocker(
        pid=row["pid"],
        application=row["application_name"] or None,
        user=row["usename"],
        database=row["datname"],
        client=row["client_addr"],
        state=row["state"],
        transaction_s=_seconds(row["transaction_ms"]),
        state_s=_seconds(row["state_ms"]),
        lock=_lock(row),
        waiting=row["waiting"] or 0,
        longest_wait_s=_seconds(row["longest_wait_ms"]) or 0.0,
    )


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else max(0.0, ms / 1e3)


def _lock(row: dict[str, Any]) -> str:
    """What is held, in words."""
    kind, relation = row["lock_type"], row["relation"]
    mode = f" ({row['lock_mode']})" if row["lock_mode"] else ""
    if kind in ("transactionid", "tuple"):
        return f"a row of {relation}" if relation else "a row that it changed"
    if kind == "relation":
        return f"{relation or 'a table of another database'}{mode}"
    if kind == "advisory":
        return f"an advisory lock{mode}"
    return f"a lock of type {kind}{mode}" if kind else "a lock"


Event = Literal["restart", "crash"]
SECOND_NS = 1_000_000_000
JOINED_NS = SECOND_NS
"""Two times without an answer that are nearer to each other, with no answer between, are one: a question comes once a second."""
SHORTEST_NS = 3 * SECOND_NS // 2
"""A shorter time between two answers is that of one lost session, and not the server's."""
SHARE_MIN = 0.10
"""Share of the watch from which a server that answers again is judged by that alone; where it does not, any time counts."""
_SAMPLED = ("probe/wait_events", "probe/database", "probe/wal", "probe/checkpointer", "probe/io")
_SILENCE = ("wait_events.answer", "sql.answer")
_NEVER_FALL: Mapping[str, tuple[str, ...]] = {
    "probe/wal": ("wal_bytes",),
    # Reset apart: what is written is the checkpointer's, what is allocated the background writer's.
    "probe/checkpointer": ("buffers_written", "buffers_alloc"),
    "probe/io": ("reads", "writes", "extends", "hits"),
}
"""Counters that only a reset makes smaller: the sum over the rows of a sample."""


@dataclass(frozen=True)
class Silence:
    """When a server did not answer, and why."""

    spans: tuple[tuple[int, int], ...]
    """Begin and end, CLOCK_MONOTONIC in ns, within the measure phase."""
    begin_ns: int
    end_ns: int
    """Begin and end of the measure phase."""
    why: str
    """What was said for most of that time."""
    event: Event | None

    @property
    def seconds(self) -> float:
        """All of them together."""
        return sum(end - begin for begin, end in self.spans) / SECOND_NS

    @property
    def of_s(self) -> float:
        """How long the watch was."""
        return (self.end_ns - self.begin_ns) / SECOND_NS

    @property
    def is_over(self) -> bool:
        """Whether the server answered again."""
        return not self.spans or self.spans[-1][1] < self.end_ns - JOINED_NS

    @property
    def is_full(self) -> bool:
        """Whether the server answered that it has no session left."""
        return self.event is None and is_full(self.why)

    @property
    def binds(self) -> bool:
        """Whether this is the verdict."""
        enough = SHARE_MIN * self.of_s if self.is_over else 0.0
        return self.event is not None or (bool(self.spans) and self.seconds >= enough)

    @property
    def title(self) -> str:
        """``the server did not answer for 6.5 of 10 s``."""
        text = f"did not answer for {self.seconds:,.1f} of {self.of_s:,.0f} s"
        if self.event == "restart":
            return f"the server was restarted: it {text}"
        if self.is_full:
            return (
                f"every connection was taken: the server gave no session for {self.seconds:,.1f} of {self.of_s:,.0f} s"
            )
        return f"the server crashed and recovered: it {text}" if self.event == "crash" else f"the server {text}"

    @property
    def action(self) -> str:
        """What to do."""
        if self.event is not None:
            return "the server's log says why; then watch again: counters that begin again at 0 cannot be judged"
        if self.is_full:
            return "end sessions that are not needed, or put a connection pooler in transaction mode before the server"
        if self.why == SLOW:
            return "look at its host: processes that are stopped, a disk that does not answer, memory that swaps; or the network"
        if self.is_over:
            return "the server's log says why its sessions ended; then watch again"
        return "start the server; its log says why it ended"

    def words(self) -> Iterator[str]:
        """Evidence, the strongest first."""
        for begin, end in self.spans:
            after_s = (begin - self.begin_ns) / SECOND_NS
            last = end >= self.end_ns - JOINED_NS // 2
            until = "until the end" if last else f"for {number((end - begin) / SECOND_NS)} s"
            yield f"from second {after_s:,.1f} of the watch on, {until}, no question was answered"
        if self.spans or self.event is not None:
            yield self.why or "its counters began again at 0"


def silence_of(run: StoredRun) -> Silence:
    """The times without an answer of a watch."""
    measure = run.record.measure
    tables = {name: run.table(name) for name in ("probe/gap", *_SAMPLED)}
    gaps = sorted(
        (row for row in tables["probe/gap"].to_pylist() if row["what"] in _SILENCE),
        key=lambda row: int(row["t_begin_ns"]),
    )
    event = event_of(tables)
    spans = _spans([(row["t_begin_ns"], row["t_end_ns"]) for row in gaps], _answers(tables))
    clipped = [(max(begin, measure.begin_ns), min(end, measure.end_ns)) for begin, end in spans]
    least_ns = 0 if event is not None else SHORTEST_NS
    kept = tuple((begin, end) for begin, end in clipped if end - begin > least_ns)
    return Silence(kept, measure.begin_ns, measure.end_ns, _reason(gaps, kept), event)


def event_of(tables: Mapping[str, pa.Table]) -> Event | None:
    """Whether the server was started again, or crashed and recovered, by what it counts since then."""
    database = tables.get("probe/database")
    if _differs(database, "started_unix_ms"):
        return "restart"
    gaps = tables.get("probe/gap")
    lost = gaps is not None and any(
        what in _SILENCE and why != SLOW
        for what, why in zip(gaps["what"].to_pylist(), gaps["why"].to_pylist(), strict=True)
    )
    # A crash ends all sessions and loses the statistics; the time of the start stays.
    return "crash" if lost and were_reset(tables) else None


def were_reset(tables: Mapping[str, pa.Table]) -> bool:
    """Whether counters began again at 0."""
    database = tables.get("probe/database")
    # None is a database that was never reset; once it has a time, it was.
    return _differs(database, "reset_unix_ms") or any(
        later < earlier
        for name, columns in _NEVER_FALL.items()
        if name in tables
        for column in columns
        if column in tables[name].column_names
        for earlier, later in pairwise(_sums(tables[name], column))
    )


def _differs(table: pa.Table | None, column: str) -> bool:
    """Whether a column has several values; False where there is none."""
    return table is not None and column in table.column_names and len(set(table[column].to_pylist())) > 1


def bound(judged: RunBinding, silence: Silence) -> RunBinding:
    """The verdict of a watch in which the server did not answer: the other seconds have what they were judged to have."""
    limit: Limit = "connections" if silence.is_full else "no_answer"
    each_ns = (silence.end_ns - silence.begin_ns) / max(1, len(judged.seconds))
    seconds: list[BindingLimit | None] = []
    for place, binding_limit in enumerate(judged.seconds):
        begin_ns = silence.begin_ns + place * each_ns
        silent_ns = sum(max(0.0, min(end, begin_ns + each_ns) - max(begin, begin_ns)) for begin, end in silence.spans)
        is_silent = silent_ns > each_ns / 2
        seconds.append(
            BindingLimit(limit, sure=True) if is_silent else None if silence.event is not None else binding_limit
        )
    shares: dict[Limit, float] = {limit: min(1.0, silence.seconds / silence.of_s)}
    shares |= {other: share for other, share in total([seconds]).shares.items() if other != limit}
    return RunBinding(judged.evidence, tuple(seconds), BindingVerdict(limit, None, "high", shares))


def _reason(gaps: Sequence[Mapping[str, Any]], spans: Sequence[tuple[int, int]]) -> str:
    """What was said for most of the time of some spans; that no answer came only where nothing else was said for a part as long."""
    lasted: dict[str, int] = {}
    for row in gaps:
        inside_ns = sum(max(0, min(row["t_end_ns"], end) - max(row["t_begin_ns"], begin)) for begin, end in spans)
        lasted[row["why"]] = lasted.get(row["why"], 0) + inside_ns
    return max(lasted, key=lambda why: lasted[why], default="")


def _sums(table: pa.Table, column: str) -> list[int]:
    """The sum over the rows of each sample, in order of time."""
    of_samples = table.group_by("t_begin_ns").aggregate([(column, "sum")]).sort_by("t_begin_ns")
    return [value for value in of_samples[f"{column}_sum"].to_pylist() if value is not None]


def _answers(tables: Mapping[str, pa.Table]) -> list[int]:
    """When questions were answered in time."""
    numbers: set[int] = set()
    for name in _SAMPLED:
        table = tables[name]
        if table.num_rows:
            begin, end = table["t_begin_ns"].to_numpy(), table["t_end_ns"].to_numpy()
            numbers.update(end[end - begin <= LONG_NS].tolist())
    return sorted(numbers)


def _spans(gaps: Sequence[tuple[int, int]], answers: Sequence[int]) -> list[tuple[int, int]]:
    """Gaps that follow each other as one, cut where an answer came; ``gaps`` and ``answers`` in order of time."""
    pieces: list[tuple[int, int]] = []
    for begin, end in gaps:
        inside = answers[bisect_right(answers, begin) : bisect_right(answers, end)]
        cuts = [begin, *inside, end]
        pieces += [(left, right) for left, right in pairwise(cuts) if right > left]
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(pieces):
        last = joined[-1] if joined else None
        if last is not None and begin <= last[1] + JOINED_NS and not _any_between(answers, last[1], begin):
            joined[-1] = (last[0], max(last[1], end))
        else:
            joined.append((begin, end))
    return joined


def _any_between(answers: Sequence[int], after: int, before: int) -> bool:
    return bisect_right(answers, after - 1) < bisect_right(answers, before) if before >= after else False


IDLE_SHARE = 0.10
"""Share of the sessions from which those that are idle in a transaction are worth a line."""
IDLE_MIN = 5
"""Their number below which a share says nothing."""
IDLE_OLD_S = 300.0
"""Age of a single transaction from which it is worth a line: vacuum has not removed a row since then."""


@dataclass(frozen=True)
class RunningStatements:
    """Statements that had not ended when the sessions were counted; pg_stat_statements knows those that ended."""

    statements: int
    """The most at once that ran for as long as log_min_duration_statement says, or a second where it is off."""
    longest_ms: float


def running_of(run: StoredRun) -> RunningStatements | None:
    """None where the sessions were not counted."""
    counted = _column(run, "long_statements")
    if not counted:
        return None
    return RunningStatements(int(max(counted)), max(_column(run, "longest_statement_ms"), default=0.0))


def notes_of(run: StoredRun, silence: Silence | None) -> Iterator[str]:
    """Each a sentence's end."""
    if silence is not None and silence.spans and not silence.binds:
        yield silence.title
    yield from _open_transactions(run)
    yield from _conflicts(run)


def _open_transactions(run: StoredRun) -> Iterator[str]:
    idle, all_ = _column(run, "idle_in_transaction"), _column(run, "client_sessions")
    if not idle or not all_:
        return
    most, of = int(max(idle)), int(max(all_))
    oldest_s = max(_column(run, "longest_idle_in_transaction_ms"), default=0.0) / 1e3
    if (most >= IDLE_MIN and most >= IDLE_SHARE * of) or oldest_s >= IDLE_OLD_S:
        yield (
            f"{most:,} of {of:,} sessions {'was' if most == 1 else 'were'} idle in a transaction, the longest for {duration(oldest_s)}:"
            " they keep their locks, and vacuum removes no row that they might see"
        )


def _conflicts(run: StoredRun) -> Iterator[str]:
    """What a standby has beside: statements that were cancelled, and replay that waited for some."""
    if not run.record.workload.get("standby"):
        return
    counted = _column(run, "conflicts")
    cancelled = int(counted[-1] - counted[0]) if len(counted) > 1 else 0
    if cancelled > 0:
        yield (
            f"{cancelled:,} statement{'' if cancelled == 1 else 's'} of this standby {'was' if cancelled == 1 else 'were'} cancelled, because"
            " replay could not wait for them any longer: max_standby_streaming_delay, hot_standby_feedback"
        )
    table = run.table("probe/wait_events")
    if not table.num_rows:
        return
    names = ("t_begin_ns", "wait_event", "backend_type", "count")
    rows = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    waited = {at for at, event, backend, count in rows if backend == "startup" and count and _is_conflict(event)}
    looks = {row[0] for row in rows}
    if waited:
        yield f"replay waited for statements of this standby in {percent(len(waited) / len(looks))} of the looks, so its data were older"


def _is_conflict(event: str | None) -> bool:
    """Names of 14 to 19: RecoveryConflictSnapshot, RecoveryConflictTablespace; of a lock and a pin the usual ones."""
    return (event or "").startswith("RecoveryConflict") or event in ("BufferPin", "BufferCleanup", "relation")


def _column(run: StoredRun, name: str) -> list[Any]:
    """What is known of a figure of the sessions, in order of time."""
    table = run.table("probe/database")
    if name not in table.column_names:
        return []
    return [value for value in table[name].to_pylist() if value is not None]


STATEMENTS_TABLE = "probe/statements"
STATEMENTS_SHOWN_MAX = 5
"""Statements by each figure."""
SLOW_MS = 1000.0
"""Where log_min_duration_statement is off: what is slow for most who turn it on."""


@dataclass(frozen=True)
class StatementLoad:
    """One statement, in all databases and of all roles together, during the watch."""

    queryid: int
    calls: int
    ms_mean: float
    """Time of a call."""
    read_bytes: int
    """Blocks that were not in shared_buffers; the page cache may have had them."""
    wal_bytes: int
    temp_bytes: int
    query: str | None = None
    """The first 200 characters; None unless texts were asked for."""


@dataclass(frozen=True)
class Slow:
    """What log_min_duration_statement would see, as far as means tell, and what had not ended."""

    threshold_ms: float
    setting_ms: float
    """The setting; -1 is off and 0 logs all, and then the threshold is an example."""
    statements: int | None
    """Whose mean time is at the threshold or above; None where statements are not counted."""
    calls: int
    """Their calls during the watch."""
    running: RunningStatements | None = None
    """Statements that had not ended; None where the sessions were not counted."""

    @property
    def any(self) -> bool:
        """Whether there was a slow statement."""
        return bool(self.statements) or (self.running is not None and self.running.statements > 0)


def statements_of(run: StoredRun) -> tuple[StatementLoad, ...]:
    """All that were called, the one that moved most bytes first; empty where the server does not count them.

    A statement whose counters fell was evicted or reset meanwhile, and is left out.
    """
    table = run.table(STATEMENTS_TABLE)
    rows = table.to_pylist() if table.num_rows else []
    times = sorted({row["t_end_ns"] for row in rows})
    if len(times) < 2 or was_reset(run):
        return ()
    before = {row["queryid"]: row for row in rows if row["t_end_ns"] == times[0]}
    grown = [_grown(row, before.get(row["queryid"])) for row in rows if row["t_end_ns"] == times[-1]]
    called = [load for load in grown if load is not None]
    return tuple(sorted(called, key=lambda item: -(item.read_bytes + item.wal_bytes + item.temp_bytes)))


def was_reset(run: StoredRun) -> bool:
    """Whether pg_stat_statements was reset during the watch: then nothing of it is of one piece."""
    return len(set(run.table(STATEMENTS_TABLE)["reset_unix_ms"].to_pylist())) > 1


def unseen_words(run: StoredRun, *, absent: bool = True) -> list[str]:
    """Why statements were not seen; empty where they were. ``absent``: say it too where the server does not count them."""
    if was_reset(run):
        return ["which statements: pg_stat_statements was reset during the watch"]
    gaps = run.table("probe/gap").to_pylist()
    unseen_words = [f"which statements: {gap['why']}" for gap in gaps if gap["what"] == "sql.statements"][:1]
    if not unseen_words and not sees_all(run):
        unseen_words = ["statements of other roles: `GRANT pg_monitor TO` the role"]
    if not unseen_words and absent and not run.table(STATEMENTS_TABLE).num_rows:
        unseen_words = ["which statements: the database that is connected has no pg_stat_statements"]
    return unseen_words


def top_of(statements: tuple[StatementLoad, ...]) -> tuple[StatementLoad, ...]:
    """The first by each of blocks read, WAL and temporary bytes, each statement once."""
    loads: dict[int, StatementLoad] = {}
    for name in ("read_bytes", "wal_bytes", "temp_bytes"):
        first = sorted(statements, key=lambda statement: -int(getattr(statement, name)))[:STATEMENTS_SHOWN_MAX]
        loads.update({load.queryid: load for load in first if getattr(load, name)})
    return tuple(statement for statement in statements if statement.queryid in loads)


def slow_of(run: StoredRun, statements: tuple[StatementLoad, ...]) -> Slow | None:
    """None where neither statements nor sessions are counted, or the role may not see those of others."""
    running = running_of(run)
    if (not statements and running is None) or not sees_all(run):
        return None
    settings = run.table("postgres/settings")
    values = dict(zip(settings["name"].to_pylist(), settings["setting"].to_pylist(), strict=True))
    set_ms = float(values.get("log_min_duration_statement") or -1)
    threshold_ms = set_ms if set_ms > 0 else SLOW_MS
    slow = [statement for statement in statements if statement.ms_mean >= threshold_ms]
    return Slow(threshold_ms, set_ms, len(slow) if statements else None, sum(load.calls for load in slow), running)


def sees_all(run: StoredRun) -> bool:
    """Whether the role of a watch may see other roles' sessions and statements; before it was recorded, what the sessions show."""
    recorded = run.record.workload.get("sees_all")
    if recorded is not None:
        return bool(recorded)
    return not any(
        visibility.what.startswith("wait events of other roles") and not visibility.seen
        for visibility in run.record.visibility
    )


def _grown(after: dict[str, Any], before: dict[str, Any] | None) -> StatementLoad | None:
    names = ("calls", "exec_time_ms", "shared_blks_read", "wal_bytes", "temp_blks_written")
    calls, time_ms, reads, wal, temporary = (after[name] - (0 if before is None else before[name]) for name in names)
    if calls <= 0 or min(time_ms, reads, wal, temporary) < 0:
        return None
    return StatementLoad(
        after["queryid"], calls, time_ms / calls, reads * BLOCK_BYTES, wal, temporary * BLOCK_BYTES, after["query"]
    )
