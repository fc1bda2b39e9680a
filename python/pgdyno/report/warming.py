"""How long volumes that were made from snapshots were slower than warm ones, in words."""

from __future__ import annotations

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.warming import WarmingEffect
from pgdyno.report.section import Grid, Note, Section

from ..base.text import duration

_NOTE = (
    "The first instant from which transactions per second are at least 90 % of the warm volume's in the same block: over the next 5 seconds, and over"
    " all that follow. It is of the seconds of single runs, so no verdict rests on it."
)


def warming_section(comparison: Comparison) -> Section | None:
    """Nothing without a cold arm and its warm one."""
    effects = comparison.warmings
    if not effects:
        return None
    heads = ("", "beside", "within 10 % of warm after", "in each replicate")
    rows = tuple(
        (effect.cold.label, effect.warm.label, _middle(effect), ", ".join(map(_words, effect.seconds)))
        for effect in effects
    )
    return Section("warming", "Until it is warm", (Grid(heads, rows), Note(_NOTE)), brief=True)


def warming_lines(comparison: Comparison) -> list[str]:
    """A line for each cold arm, for the terminal."""
    return [
        f"{warming.cold.label}: within 10 % of {warming.warm.label} after {_middle(warming)}"
        for warming in comparison.warmings
    ]


def _middle(effect: WarmingEffect) -> str:
    """The median of the replicates with the extent; those that did not come to it are later than all others."""
    ordered = sorted(effect.seconds, key=lambda seconds: (seconds is None, seconds or 0.0))
    if ordered[0] is None:
        return f"more than {duration(effect.measured_s)}"
    middle = _words(ordered[(len(ordered) - 1) // 2])
    return middle if len(ordered) < 2 else f"{middle} ({_words(ordered[0])} to {_words(ordered[-1])})"


def _words(seconds: float | None) -> str:
    return "never" if seconds is None else duration(seconds)
