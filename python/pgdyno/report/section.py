"""What a report consists of: sections of tables, drawings and sentences, built once and written by small writers.

A part of the page that is neither is a :class:`Block`, which has a template of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pgdyno.analysis.compare import Comparison
from pgdyno.report.theme import Theme
from pgdyno.report.words import COLUMNS_MAX, LISTED_MAX, FigureRow

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
    """What to know of the part above, in small print."""

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
    """Whether there are more arms than a table has columns, and than there are colours."""
    return len(comparison.arms) > COLUMNS_MAX


def listed(comparison: Comparison) -> bool:
    """Whether each arm has a row or a panel of its own; the arms of a larger sweep are drawn along its axes alone."""
    return comparison.sweep is None or len(comparison.arms) <= LISTED_MAX


def of_arms(comparison: Comparison) -> str:
    """The key of a figure with a row or a panel for each arm: where there are many, the first factor's levels."""
    return "levels" if many(comparison) else ""
