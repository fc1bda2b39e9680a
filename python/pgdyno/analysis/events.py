"""What happened to volumes and server during runs: when, how long it took, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..results import StoredRun

ENDING = ("kill", "cut")
"""Kinds that end the server; until they are over it takes no connections."""


@dataclass(frozen=True)
class Event:
    """An event of one run."""

    planned_s: float
    """When it was to begin, seconds since measuring began."""
    kind: str
    """``modify``, ``fail``, ``heal``, ``snapshot``, ``kill``, ``cut``."""
    target: str
    words: str
    begin_s: float
    end_s: float
    result: str
    usd_per_month: float | None = None
    """Price of the volume after its modification; None of other events, and in older records."""

    @property
    def seconds(self) -> float:
        """How long it took: of a server that was ended, until it took connections again."""
        return self.end_s - self.begin_s


def events_of(run: StoredRun) -> tuple[Event, ...]:
    """The events of a run in their order."""
    begin_ns = run.record.measure.begin_ns
    return tuple(
        Event(
            planned_s=row["planned_s"],
            kind=row["kind"],
            target=row["target"],
            words=row["words"],
            begin_s=(row["t_begin_ns"] - begin_ns) / 1e9,
            end_s=(row["t_end_ns"] - begin_ns) / 1e9,
            result=row["result"],
            usd_per_month=row.get("usd_per_month"),
        )
        for row in run.table("world/event").to_pylist()
    )


def down_s(events: Sequence[Event], measure_s: float) -> float:
    """For how much of the measuring the server took no connections, because events had ended it."""
    total, until = 0.0, 0.0
    for event in sorted((event for event in events if event.kind in ENDING), key=lambda event: event.begin_s):
        begin, end = max(event.begin_s, until), min(event.end_s, measure_s)
        total += max(0.0, end - begin)
        until = max(until, end)
    return total


@dataclass(frozen=True)
class EventEffect:
    """An event and the work of its run before and after it, each as far as the next event or the run's end."""

    event: Event
    before_per_s: float | None
    """None where less than a second lies between."""
    after_per_s: float | None


def around(run: StoredRun) -> tuple[EventEffect, ...]:
    """Every event of a run with what was done around it: a mean over both describes neither."""
    events, measure = events_of(run), run.record.measure
    ends = [0.0, *(event.end_s for event in events)]
    begins = [*(event.begin_s for event in events), measure.seconds]
    rates = [_per_s(run, begin, end) for begin, end in zip(ends, begins, strict=True)]
    return tuple(EventEffect(event, rates[place], rates[place + 1]) for place, event in enumerate(events))


def _per_s(run: StoredRun, begin_s: float, end_s: float) -> float | None:
    """Transactions per second in the whole seconds between two instants."""
    table, begin_ns = run.table("workload/throughput"), run.record.measure.begin_ns
    rows = zip(*(table[name].to_pylist() for name in ("t_begin_ns", "t_end_ns", "transactions")), strict=True)
    least, most = begin_ns + begin_s * 1e9, begin_ns + end_s * 1e9
    inside = [(begin, end, count) for begin, end, count in rows if begin >= least and end <= most]
    # Each script has a row of its own for a second.
    seconds = sum(end - begin for begin, end in {(begin, end) for begin, end, _ in inside}) / 1e9
    return sum(count for _, _, count in inside) / seconds if seconds else None
