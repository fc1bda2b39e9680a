"""What happened to volumes and server during runs: when, how long it took, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.store import Run

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

    @property
    def seconds(self) -> float:
        """How long it took: of a server that was ended, until it took connections again."""
        return self.end_s - self.begin_s


def events_of(run: Run) -> tuple[Event, ...]:
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
        )
        for row in run.table("world/event").to_pylist()
    )


def down_s(events: Sequence[Event], measure_s: float) -> float:
    """For how much of the measuring the server took no connections, because events had ended it."""
    total, until = 0.0, 0.0
    for event in sorted((one for one in events if one.kind in ENDING), key=lambda one: one.begin_s):
        begin, end = max(event.begin_s, until), min(event.end_s, measure_s)
        total += max(0.0, end - begin)
        until = max(until, end)
    return total


def events_by_place(runs: Sequence[Run]) -> list[list[Event]]:
    """The events of an arm's runs in their order, each in all of them."""
    return [list(same) for same in zip(*map(events_of, runs), strict=False)]
