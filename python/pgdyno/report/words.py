"""Numbers and rows in the words of the page: what every section shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.analysis.verdict import figures, times

if TYPE_CHECKING:
    from pgdyno.analysis.compare import Comparison
    from pgdyno.store.record import RunRecord

UNKNOWN = "–"
COLUMNS_MAX = 6
"""Arms that a table has as columns, and that have a colour each. More are rows, coloured by the first factor."""


LISTED_MAX = 48
"""Arms of a sweep that have a row, a line or a panel each. A larger one is drawn along its axes, and its lists are folded."""


@dataclass(frozen=True)
class Row:
    """One figure of every arm: a row where arms are columns, a column where arms are rows."""

    title: str
    cells: tuple[str, ...]
    strong: bool = False
    levels: tuple[str, ...] = ()
    """For findings: the level of each cell."""


def record_of(comparison: Comparison) -> RunRecord:
    """The record of the first run: what all runs of an experiment have in common."""
    return comparison.arms[0].replicates[0].figures.record


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


def number(value: float | None) -> str:
    """Three digits, or a dash; what is next to nothing is not given with five zeros."""
    if value is None:
        return UNKNOWN
    return "< 0.001" if 0 < value < 0.001 else figures(value)


def interval(low: float | None, high: float | None) -> str:
    """``970 to 985``; a dash for one replicate. Of what cannot be negative: two replicates may have a wide interval."""
    return UNKNOWN if low is None or high is None else f"{figures(max(0.0, low))} to {figures(high)}"


def ratio_interval(low: float | None, high: float | None) -> str:
    """``0.995 to 1.003``; a dash for one replicate."""
    return UNKNOWN if low is None or high is None else f"{times(low)} to {times(high)}"


def percent(share: float | None) -> str:
    """``97 %``; below one percent with a decimal."""
    if share is None:
        return UNKNOWN
    return f"{share * 100:.0f} %" if share == 0 or share >= 0.01 else f"{share * 100:.1f} %"


def size(count: int) -> str:
    """Bytes in the largest binary unit that keeps the number at 1 or above."""
    value, units = float(count), ("bytes", "KiB", "MiB", "GiB", "TiB")
    place = 0
    while value >= 1024 and place < len(units) - 1:
        value, place = value / 1024, place + 1
    return f"{value:,.1f}".removesuffix(".0") + f" {units[place]}"


def plain(value: object) -> str:
    """A recorded value as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(plain(one) for one in value) or UNKNOWN
    return UNKNOWN if value is None or value == "" else str(value)
