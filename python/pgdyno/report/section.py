"""The vocabulary of reports: sections of tables, drawings and sentences, built once and written by small writers.

A part of the page that is neither is a :class:`Block`, which has a template of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.report.theme import Theme

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
    """Price of an arm's volumes a month; of one that was modified ``$10 to $207.50``, as it became another."""
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
    """Number of clients of the arms: `32`, or `16 to 96`; empty where it is not known."""
    workloads = [arm.replicates[0].figures.record.workload for arm in comparison.arms]
    counts = sorted({int(workload["clients"]) for workload in workloads if "clients" in workload})
    if not counts:
        return ""
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def colour_index(levels: tuple[int, ...], index: int, arms: int) -> int:
    """One of the six colours for an arm: its own while they suffice, then that of its first factor's level."""
    place = levels[0] if arms > COLUMNS_MAX and len(levels) > 1 else index
    return place % COLUMNS_MAX


Make = Callable[[int, "Theme"], dict[str, Any]]
"""Draws a figure at a width in pixels."""


@dataclass(frozen=True)
class Matrix:
    """Figures by arm: arms are columns while they are few, else rows."""

    rows: tuple[FigureRow, ...]
    fold: str = ""
    """What a reader opens to see it; empty: it is open."""
    short: tuple[FigureRow, ...] | None = None
    """What a text has of it, where that is less."""
    kind: str = "matrix"


@dataclass(frozen=True)
class Grid:
    """A table with heads of its own; the first cell of a row is its name."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    look: str = "figures"
    strong: frozenset[int] = frozenset()
    """Places of the rows that stand out."""
    drawn: bool = False
    """Whether the page has a drawing instead."""
    kind: str = "grid"


@dataclass(frozen=True)
class Drawing:
    """A figure, and what is said of it."""

    name: str
    alternative: str
    """What a screen reader says: what is drawn, and its extent."""
    caption: str
    """What is drawn, with its units."""
    make: Make
    title: str = ""
    """Above it, where a section has several."""
    key: str | tuple[tuple[str, str], ...] = ()
    """(class of the page, name) of its colours; ``arms`` and ``levels`` are those of the comparison."""
    kind: str = "drawing"


@dataclass(frozen=True)
class Legend:
    """The colours of the drawings that follow: (class of the page, name)."""

    colours: tuple[tuple[str, str], ...]
    kind: str = "key"


@dataclass(frozen=True)
class Heading:
    """Title of the parts that follow."""

    text: str
    level: int = 3
    kind: str = "heading"


@dataclass(frozen=True)
class Note:
    """A remark on the part above, in small print."""

    text: str
    kind: str = "note"


@dataclass(frozen=True)
class Sentences:
    """Findings in words, one below the other."""

    texts: tuple[str, ...]
    kind: str = "sentences"


@dataclass(frozen=True)
class Block:
    """A part of the page with a template of its own."""

    template: str
    values: dict[str, Any] = field(default_factory=dict)
    kind: str = "block"


Part = Matrix | Grid | Drawing | Legend | Heading | Note | Sentences | Block


@dataclass(frozen=True)
class Section:
    """A section of a report."""

    name: str
    """In the address of the page: ``#cost``."""
    title: str
    parts: tuple[Part, ...]
    brief: bool = False
    """Whether a text has it too."""


def many(comparison: Comparison) -> bool:
    """True if there are more arms than a table has columns, and than there are colours."""
    return len(comparison.arms) > COLUMNS_MAX


def listed(comparison: Comparison) -> bool:
    """True if each arm has a row or a panel of its own; the arms of a larger sweep are drawn along its axes alone."""
    return comparison.sweep is None or len(comparison.arms) <= LISTED_MAX


def of_arms(comparison: Comparison) -> str:
    """The key of a figure with a row or a panel for each arm: where there are many, the first factor's levels."""
    return "levels" if many(comparison) else ""
