"""Sections on the headline of each arm, its response times by percentile, script and statement, and its course over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.distribution import PERCENTILES, ScriptStatement, ValueCounts
from pgdyno.analysis.series import TimeSeries, series_of
from pgdyno.report import figures
from pgdyno.report.section import Drawing, Heading, Matrix, Note, Part, Section, listed, many, of_arms

from ..base.text import UNKNOWN, number
from .section import FigureRow, record_of

_CLOSED = " Closed loop: see how far to trust this."


def headline_section(comparison: Comparison) -> Section | None:
    """The figure by which arms are compared, with its intervals."""
    if not listed(comparison):
        return None
    metric, crosses = comparison.metric, "" if comparison.valid else "; crosses: invalid ones"
    drawing = Drawing(
        metric.name,
        f"{metric.title.capitalize()} of each arm",
        "Dot and bar: mean and 95 % interval over replicates. Open circles: the replicates themselves" + crosses + ".",
        partial(figures.headline, comparison.arms),
        key=of_arms(comparison),
    )
    return Section("throughput", metric.title.capitalize(), (drawing,))


def response_section(comparison: Comparison) -> Section | None:
    """Response times: curves of few arms, percentiles of many."""
    if not listed(comparison) or not any(figures.percentile_points(arm.latency_ms) for arm in comparison.arms):
        return None
    drawing = _of_many(comparison) if many(comparison) else _of_few(comparison)
    return Section("response", "Response time", (drawing,))


def _of_few(comparison: Comparison) -> Drawing:
    thin = [(arm.index, r.figures.latency_ms, "thin") for arm in comparison.arms for r in arm.replicates]
    curves: list[tuple[int, ValueCounts, str]] = [
        *thin,
        *((arm.index, arm.latency_ms, "main") for arm in comparison.arms),
    ]
    return Drawing(
        "response",
        "Response time by percentile",
        "Milliseconds by percentile, both axes logarithmic. Thick: all replicates together; thin: each alone. A line ends where"
        " fewer than ten transactions were slower." + _closed(comparison),
        partial(figures.percentiles, curves, comparison.arms),
        key="arms",
    )


def _of_many(comparison: Comparison) -> Drawing:
    rows = [(arm.index, arm.label, arm.latency_ms) for arm in comparison.arms]
    return Drawing(
        "response",
        "Response time of each arm",
        "Milliseconds: median (large), p95, p99 (small) of all replicates together, logarithmic." + _closed(comparison),
        partial(figures.percentile_dots, rows, comparison.arms),
        key="levels",
    )


def _closed(comparison: Comparison) -> str:
    return _CLOSED if record_of(comparison).workload.get("closed") else ""


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


_Name = TypeVar("_Name")

STATEMENT_WIDTH_MAX = 88
"""A longer statement is cut in a table; the run's own table has all of it."""
STATEMENTS_MAX = 40
"""Statements in the table, those of the most time; sysbench has some for each of its tables."""


def transactions_section(comparison: Comparison) -> Section:
    """Scripts, then statements; what the driver did not tell is omitted."""
    by_script, by_statement = tuple(script_rows(comparison)), tuple(statement_rows(comparison))
    both, parts = bool(by_script and by_statement), list[Part]()
    if by_script:
        parts += [Heading("By script")] if both else []
        parts += [Matrix(by_script), Note("Response time, p50 / p95 / p99, milliseconds.")]
    if by_statement:
        parts += [Heading("By statement")] if both else []
        parts.append(Matrix(by_statement, "Statements of each arm" if many(comparison) else ""))
        parts.append(Note("From sending a statement to its answer, p50 / p95 / p99, milliseconds."))
    return Section("statements", "Statements" if by_statement else "Scripts", tuple(parts))


def script_rows(comparison: Comparison) -> list[FigureRow]:
    """Response time of each script, where there are several: p50 / p95 / p99, ms."""
    return _rows(comparison, lambda arm: arm.scripts_ms, lambda name: name)


def statement_rows(comparison: Comparison) -> list[FigureRow]:
    """Time of each statement, where the driver told it: p50 / p95 / p99, ms; those that took most in all, in their order."""
    spent: dict[ScriptStatement, float] = {}
    for arm in comparison.arms:
        for statement, distribution in arm.statements_ms.items():
            spent[statement] = spent.get(statement, 0.0) + distribution.sum
    kept = set(sorted(spent, key=lambda statement: -spent[statement])[:STATEMENTS_MAX])
    chosen = {
        arm.index: {
            statement: distribution for statement, distribution in arm.statements_ms.items() if statement in kept
        }
        for arm in comparison.arms
    }
    return _rows(comparison, lambda arm: chosen[arm.index], lambda statement: one_line(statement.text))


def one_line(text: str, width: int = STATEMENT_WIDTH_MAX) -> str:
    """A statement on one line, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def percentiles(distribution: ValueCounts | None) -> str:
    """``0.41 / 1.2 / 3.05``: p50, p95 and p99; a dash where there is nothing."""
    if distribution is None or distribution.total == 0:
        return UNKNOWN
    return " / ".join(number(distribution.percentile(percent)) for percent in PERCENTILES)


def _rows(
    comparison: Comparison,
    output: Callable[[ArmSummary], Mapping[_Name, ValueCounts]],
    title: Callable[[_Name], str],
) -> list[FigureRow]:
    results = [output(arm) for arm in comparison.arms]
    names = dict.fromkeys(name for result in results for name in result)
    return [FigureRow(title(name), tuple(percentiles(result.get(name)) for result in results)) for name in names]
