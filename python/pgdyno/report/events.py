"""Sections on events during the runs and how long they took, and on power cuts after the runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.analysis.arm import ArmSummary, mean_known
from pgdyno.analysis.compare import Comparison
from pgdyno.report.section import Grid, Matrix, Note, Section, Sentences

from ..analysis.durability import ArmCuts, cuts_of, excluded
from ..analysis.series import EventEffect, around
from ..base.text import UNKNOWN, money, number
from .section import FigureRow

_NOTE = (
    "Seconds that each took: mean of the replicates, with the shortest and the longest; for a server that was"
    " stopped, until it accepted connections again. Limits elsewhere on this page are those that a volume had when"
    " its run began."
)


def events_section(comparison: Comparison) -> Section | None:
    """Nothing of runs without events."""
    results = event_rows(comparison)
    return Section("events", "Events", (Matrix(tuple(results)), Note(_NOTE)), brief=True) if results else None


def event_rows(comparison: Comparison) -> list[FigureRow]:
    """A row for each event, with the seconds that it took in each arm; below it the work before and after a modification."""
    of_arms = _of_arms(comparison)
    longest = max(of_arms, key=len)
    rows = []
    for place, same in enumerate(longest):
        event = same[0].event
        each = [events[place] if place < len(events) else [] for events in of_arms]
        rows.append(
            FigureRow(f"{event.planned_s:g} s: {event.words}", tuple(_took(item) if item else UNKNOWN for item in each))
        )
        if event.kind == "modify":
            unit = comparison.arms[0].unit.per_second
            rows.append(FigureRow(f"{unit} before and after it", tuple(_around(item) for item in each)))
    return rows


def event_lines(comparison: Comparison) -> list[str]:
    """A line for each event of each arm, for the terminal."""
    return [
        f"{arm.label}: {same[0].event.planned_s:g} s: {same[0].event.words}, {_took(same)}{_changed(arm, same)}"
        for arm, events in zip(comparison.arms, _of_arms(comparison), strict=True)
        for same in events
    ]


def _of_arms(comparison: Comparison) -> list[list[list[EventEffect]]]:
    """The events of each arm, each in all replicates."""
    return [
        [list(same) for same in zip(*(around(replicate.figures.run) for replicate in arm.replicates), strict=False)]
        for arm in comparison.arms
    ]


def _changed(arm: ArmSummary, same: Sequence[EventEffect]) -> str:
    """Effect of a modification: ``; 302 transactions per second before, 2,987 after``."""
    if same[0].event.kind != "modify":
        return ""
    before, after = _means(same)
    price = same[0].event.usd_per_month
    costs = "" if price is None else f"; the {same[0].event.target} volume then costs {money(price)} a month"
    return f"; {number(before)} {arm.unit.per_second} before, {number(after)} after{costs}"


def _around(same: Sequence[EventEffect]) -> str:
    if not same:
        return UNKNOWN
    before, after = _means(same)
    return f"{number(before)}, {number(after)}"


def _means(same: Sequence[EventEffect]) -> tuple[float | None, float | None]:
    """The work before and after an event, means of the replicates."""
    return mean_known([effect.before_per_s for effect in same]), mean_known([effect.after_per_s for effect in same])


def _took(same: Sequence[EventEffect]) -> str:
    seconds = sorted(effect.event.seconds for effect in same)
    mean = f"{number(sum(seconds) / len(seconds))} s"
    return mean if len(seconds) < 2 else f"{mean} ({number(seconds[0])} to {number(seconds[-1])})"


FAILED_SHOWN = 5
"""Failed cuts that are named; the JSON document and the runs have all that were recorded."""
_HEADS = ("power cuts", "read as", "cuts", "failed", "found by", "fewer than 1 in")
_POWER_CUTS_NOTE = (
    "After each run a server with the arm's volumes, file system, mount options and settings was recorded on"
    " volumes of its own while it committed numbered transactions, and the recording was cut. The last column is"
    " the failure rate that cuts without a failure exclude with 95 % confidence: it holds for the instants and"
    " contents that were drawn, not for everything that a device may leave."
)


def power_cuts_section(comparison: Comparison) -> Section | None:
    """Nothing of experiments without power cuts."""
    rows = tuple(_row(arm, cuts) for arm, cuts in _every(comparison))
    if not rows:
        return None
    failed = [Sentences(tuple(words))] if (words := _failed(comparison)) else []
    return Section("power-cuts", "Power cuts", (Grid(_HEADS, rows), *failed, Note(_POWER_CUTS_NOTE)), brief=True)


def power_cut_lines(comparison: Comparison) -> list[str]:
    """A line for each arm and reading, and the first that failed, for the terminal."""
    return [f"{arm.label}, {cuts.reading}: {cuts.verdict}" for arm, cuts in _every(comparison)] + _failed(comparison)


def _every(comparison: Comparison) -> Iterator[tuple[ArmSummary, ArmCuts]]:
    for arm in comparison.arms:
        for cuts in cuts_of(arm):
            yield arm, cuts


def _row(arm: ArmSummary, cuts: ArmCuts) -> tuple[str, ...]:
    by_check = ", ".join(f"{check} {count:,}" for check, count in cuts.by_check.items())
    bound = UNKNOWN if cuts.failed or not cuts.cuts else f"{excluded(cuts.cuts):,.0f}"
    return (arm.label, cuts.reading, f"{cuts.cuts:,}", f"{cuts.failed:,}", by_check or UNKNOWN, bound)


def _failed(comparison: Comparison) -> list[str]:
    every = [(arm, failed) for arm, cuts in _every(comparison) for failed in cuts.first_failed]
    return [
        f"{arm.label}: {'; '.join(f'{check}: {failure}' for check, failure in failed.failures.items())}"
        f" (`pgdyno crashtest --replay {failed.id} --shrink`)"
        for arm, failed in every[:FAILED_SHOWN]
    ]
