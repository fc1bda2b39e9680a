"""Rows, and what the arms of a comparison have in common: what every section shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison

from ..analysis.statistics import Estimate
from ..base.text import UNKNOWN, money, number, percent
from ..base.text import interval as interval_words
from ..results.record import RunRecord

COLUMNS_MAX = 6
"""Arms that a table has as columns, and that have a colour each. More are rows, coloured by the first factor."""


LISTED_MAX = 48
"""Arms of a sweep that have a row, a line or a panel each. A larger one is drawn along its axes, and its lists are folded."""
LIMITS = {"iops": "IOPS"}
"""What a limit is called, where that is another word."""


@dataclass(frozen=True)
class FigureRow:
    """One figure of every arm: a row where arms are columns, a column where arms are rows."""

    title: str
    cells: tuple[str, ...]
    strong: bool = False
    levels: tuple[str, ...] = ()
    """For findings: the level of each cell."""


def interval(estimate: Estimate) -> str:
    """A mean that is not below 0, with its interval where it has one."""
    if estimate.low is None or estimate.high is None:
        return number(estimate.mean)
    return f"{number(estimate.mean)} ({interval_words(estimate.low, estimate.high)})"


def price(arm: ArmSummary) -> str:
    """What an arm's volumes cost a month; of one that was modified ``$10 to $207.50``, as it became another."""
    parts = arm.usd_per_month_of_parts
    return " to ".join(dict.fromkeys(map(money, parts))) if any(part is not None for part in parts) else UNKNOWN


def record_of(comparison: Comparison) -> RunRecord:
    """The record of the first run: what all runs of an experiment have in common."""
    return comparison.arms[0].replicates[0].figures.record


def most_waited(time_above_limit: Mapping[str, float]) -> str:
    """The limit that requests waited for most, and how much of the time: ``IOPS 97 %``; a dash where none is known."""
    if not time_above_limit:
        return UNKNOWN
    limit, share = max(time_above_limit.items(), key=lambda item: item[1])
    return f"{LIMITS.get(limit, limit)} {percent(share)}" if share else "never"


def clients_of(comparison: Comparison) -> str:
    """How many clients the arms had: `32`, or `16 to 96`; empty where it is not known."""
    workloads = [arm.replicates[0].figures.record.workload for arm in comparison.arms]
    counts = sorted({int(workload["clients"]) for workload in workloads if "clients" in workload})
    if not counts:
        return ""
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def colour_index(levels: tuple[int, ...], index: int, arms: int) -> int:
    """Which of the six colours an arm has: its own while they suffice, then that of its first factor's level."""
    place = levels[0] if arms > COLUMNS_MAX and len(levels) > 1 else index
    return place % COLUMNS_MAX
