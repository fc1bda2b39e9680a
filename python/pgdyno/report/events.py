"""What happened to volumes and server during the runs, and how long it took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.events import events_by_place
from pgdyno.report.section import Matrix, Note, Section
from pgdyno.report.words import Row
from pgdyno.text import UNKNOWN, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.analysis.compare import Comparison
    from pgdyno.analysis.events import Event

_NOTE = (
    "Seconds that each took, mean of the replicates with the shortest and the longest; of a server that was ended, until it took"
    " connections again. The limits that are named elsewhere are those that a volume had when its run began."
)


def section(comparison: Comparison) -> Section | None:
    """Nothing of runs without events."""
    found = rows(comparison)
    return Section("events", "Events", (Matrix(tuple(found)), Note(_NOTE)), brief=True) if found else None


def rows(comparison: Comparison) -> list[Row]:
    """A row for each event, with the seconds that it took in each arm."""
    of_arms = _of_arms(comparison)
    longest = max(of_arms, key=len)
    return [
        Row(
            f"{same[0].planned_s:g} s: {same[0].words}",
            tuple(_took(events[place]) if place < len(events) else UNKNOWN for events in of_arms),
        )
        for place, same in enumerate(longest)
    ]


def lines(comparison: Comparison) -> list[str]:
    """A line for each event of each arm, for the terminal."""
    return [
        f"{arm.label}: {same[0].planned_s:g} s: {same[0].words}, {_took(same)}"
        for arm, events in zip(comparison.arms, _of_arms(comparison), strict=True)
        for same in events
    ]


def _of_arms(comparison: Comparison) -> list[list[list[Event]]]:
    return [events_by_place([one.figures.run for one in arm.replicates]) for arm in comparison.arms]


def _took(same: Sequence[Event]) -> str:
    seconds = sorted(event.seconds for event in same)
    mean = f"{number(sum(seconds) / len(seconds))} s"
    return mean if len(seconds) < 2 else f"{mean} ({number(seconds[0])} to {number(seconds[-1])})"
