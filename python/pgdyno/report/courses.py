"""The course of each run: everything over time."""

from __future__ import annotations

from functools import partial

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.series import TimeSeries, series_of
from pgdyno.report import figures
from pgdyno.report.section import Drawing, Section, listed, many

LINES_MAX = 24
"""Above this number of runs only each arm's representative is drawn over time: thin lines would hide it."""


def course_section(comparison: Comparison) -> Section | None:
    """A figure for all arms, or a panel for each of many."""
    if not listed(comparison):
        return None
    lines = _lines(comparison)
    counted = [series.checkpoints for _, _, series in lines if series.checkpoints is not None]
    seconds = max(series.bin_seconds for _, _, series in lines)
    each = f"Each point covers {seconds:.0f} s." if seconds > 1 else ""
    short = comparison.metric.short
    if many(comparison):
        per_second = comparison.arms[0].unit.per_second.capitalize()
        bars = "Bars at the top: checkpoints. " if any(counted) else ""
        caption = f"{per_second} since measuring began, of the replicate with the median {short}. {bars}{each}"
        draw, alternative = figures.courses, "Course of each arm"
    else:
        caption = f"Thick: the replicate with the median {short}; thin: the others. {_checkpoints(counted)}{each}"
        draw, alternative = figures.timeline, "Course of each run"
    key = "levels" if many(comparison) else "arms"
    drawing = Drawing("timeline", alternative, caption.strip(), partial(draw, lines, comparison.arms), key=key)
    return Section("course", "Over time", (drawing,))


def _checkpoints(counted: list[tuple[tuple[float, float | None], ...]]) -> str:
    if any(counted):
        return "Bars and dotted lines: checkpoints of the thick line's run. "
    return "No checkpoint ran while measuring. " if counted else "Checkpoints were not recorded. "


def _lines(comparison: Comparison) -> list[tuple[int, bool, TimeSeries]]:
    several = sum(len(arm.replicates) for arm in comparison.arms) <= LINES_MAX
    return [
        (arm.index, replicate is arm.representative, series_of(replicate.figures.run))
        for arm in comparison.arms
        for replicate in arm.replicates
        if several or replicate is arm.representative
    ]
