"""Several experiments beside each other, as a table of text."""

from __future__ import annotations

from pgdyno.analysis.interval import Estimate
from pgdyno.analysis.several import Several

from ..base.text import UNKNOWN, aligned, ratio_interval, times

MEANING = (
    "Times better than the first arm: more of what is counted, or less time; intervals are of 95 %. The mean over experiments is geometric"
    " and has no interval, since it is of these loads and of no others."
)


def several_lines(several: Several) -> list[str]:
    """The table, and what it means."""
    heads = ("arm", "figure", *several.names, "mean")
    rows = [
        (row.arm, row.figure, *map(_gain, row.gains), UNKNOWN if row.mean is None else times(row.mean))
        for row in several.rows
    ]
    texts = [f"compared with {several.first}:", *aligned([heads, *rows], left=(0, 1)), MEANING]
    return [*texts, *(f"{text} has runs that must not be used, and is left out" for text in several.invalid)]


def _gain(gain: Estimate | None) -> str:
    if gain is None:
        return UNKNOWN
    return times(gain.mean) + ("" if gain.low is None else f" ({ratio_interval(gain.low, gain.high)})")
