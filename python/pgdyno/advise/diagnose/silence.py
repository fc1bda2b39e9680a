"""The times of a watch in which the server did not answer, and whether it was started again or crashed meanwhile.

Nothing else can be judged of a server that does not answer: its sessions are not seen, and its counters stand still.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from pgdyno.analysis.binding.verdict import BindingVerdict, RunBinding, total
from pgdyno.probe.sampler import LONG_NS, SLOW, is_full

from ...analysis.binding.rules import BindingLimit, Limit
from ...base.text import number
from ...results import StoredRun

if TYPE_CHECKING:
    import pyarrow as pa

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
