"""The summary: the figures of each arm, and the columns by which many arms differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.metric import MetricLine
from pgdyno.report.section import Matrix, Note, Section, listed, many
from pgdyno.report.volumes import instance_rows, limit_of

from ..base.text import UNKNOWN, interval, number, percent, ratio_interval, times
from .section import FigureRow, price, record_of

SPARE_FIRST = 9
"""A column that a terminal has only where all columns have two spaces between them."""
_METRICS = (
    ("qps", "QPS", "", 7),
    ("latency_ms_mean", "mean", "ms", SPARE_FIRST),
    ("latency_ms_p50", "p50", "ms", 5),
    ("latency_ms_p95", "p95", "ms", 6),
    ("latency_ms_p99", "p99", "ms", 1),
    ("iops", "IOPS", "", 3),
    ("mib_per_s", "MiB/s", "", 8),
    ("queue_length", "queue", "", 7),
)
"""Metric, head, unit, and which columns a narrow terminal drops first: those with the largest number."""


@dataclass(frozen=True)
class ArmColumn:
    """One figure of every arm."""

    title: str
    unit: str
    spare: int
    """A narrow terminal drops the column with the largest number first; 0 stays."""
    cells: tuple[str, ...]

    @property
    def head(self) -> str:
        """Title and unit on one line."""
        return f"{self.title}, {self.unit}" if self.unit == "ms" else f"{self.title} {self.unit}".strip()


def arm_columns(comparison: Comparison) -> list[ArmColumn]:
    """Columns beside the headline; columns that no arm has are omitted."""
    arms, figures = comparison.arms, comparison.figures
    columns = [
        *(
            ArmColumn(
                title,
                unit,
                spare,
                tuple(number(None if of_arm is None else of_arm.value) for of_arm in figures[name].of_arms),
            )
            for name, title, unit, spare in _METRICS
            if name in figures
        ),
        ArmColumn("above", "limit", 4, tuple(percent(arm.above_limit_share) for arm in arms)),
        ArmColumn("price", "a month", 2, tuple(price(arm) for arm in arms)),
    ]
    return [column for column in columns if any(cell != UNKNOWN for cell in column.cells)]


def valid_replicates(arm: ArmSummary) -> str:
    """Number of its valid replicates: ``2 of 3``."""
    return f"{sum(replicate.valid for replicate in arm.replicates)} of {len(arm.replicates)}"


_NOTE = (
    "± %: half the 95 % interval. Ratio: to the first arm; ≈: not distinguishable from it. Above limit: the share"
    " of time in which requests waited for the limit that bound most, of the volumes and of the instance. The"
    " limit that binds, below, counts whole seconds: those in which it held transactions up, even if requests"
    " waited only part of each."
)


def summary_section(comparison: Comparison) -> Section:
    """All figures of few arms; of many those by which they are told apart."""
    short = tuple(brief_rows(comparison))
    if many(comparison):
        fold = "" if listed(comparison) else f"The {len(comparison.arms)} arms"
        return Section("summary", "Summary", (Matrix(short, fold), Note(_NOTE)), brief=True)
    return Section("summary", "Summary", (Matrix(tuple(summary_rows(comparison)), short=short),), brief=True)


def summary_rows(comparison: Comparison) -> list[FigureRow]:
    """The figures of each arm, for arms as columns."""
    arms = comparison.arms
    rows = [
        FigureRow("price a month", tuple(price(arm) for arm in arms)),
        FigureRow(comparison.metric.title, tuple(number(arm.headline.mean) for arm in arms), strong=True),
        FigureRow("95 % interval", tuple(interval(arm.headline.low, arm.headline.high) for arm in arms)),
        *(
            [FigureRow("ratio to the first", tuple(_ratio(comparison, arm) for arm in arms), strong=True)]
            if len(arms) > 1
            else []
        ),
        FigureRow(f"{comparison.metric.short} per dollar a month", tuple(_per_dollar(arm) for arm in arms)),
        *(row for line in comparison.figures.values() for row in _metric_rows(comparison, line)),
        *instance_rows(arms),
        FigureRow("valid replicates", tuple(valid_replicates(arm) for arm in arms)),
    ]
    return [row for row in rows if any(cell != UNKNOWN for cell in row.cells)]


def _metric_rows(comparison: Comparison, line: MetricLine) -> Iterator[FigureRow]:
    """A metric of each arm; below it how far that of a single run may be off, where tables have that."""
    metric, figures = line.metric, line.of_arms
    closed = metric.name.startswith("latency") and record_of(comparison).workload.get("closed")
    title = metric.title.replace("response time", "response time (closed loop)") if closed else metric.title
    cells = (
        UNKNOWN
        if figure is None
        else number(figure.value)
        + (limit_of(arm.volumes[metric.role], metric.limit) if metric.role and metric.limit else "")
        for arm, figure in zip(comparison.arms, figures, strict=True)
    )
    yield FigureRow(title + (" (limit)" if metric.limit else ""), tuple(cells))
    if metric.interval:
        name = metric.title.split(", ")[1]
        ends = (UNKNOWN if figure is None else interval(figure.of_runs.low, figure.of_runs.high) for figure in figures)
        yield FigureRow(f"{name} of a run, 95 % interval, {metric.unit}", tuple(ends))


def brief_rows(comparison: Comparison) -> list[FigureRow]:
    """The figures by which many arms are told apart, for arms as rows."""
    arms = comparison.arms
    rows = [
        FigureRow(comparison.metric.short, tuple(number(arm.headline.mean) for arm in arms), strong=True),
        FigureRow("± %", tuple(_half_width(arm) for arm in arms)),
        FigureRow("ratio", tuple(_short_ratio(comparison, arm) for arm in arms), strong=True),
        *(FigureRow(column.head, column.cells) for column in arm_columns(comparison)),
    ]
    if not comparison.valid:
        rows.append(FigureRow("valid", tuple(valid_replicates(arm).replace(" of ", "/") for arm in arms)))
    return [row for row in rows if any(cell != UNKNOWN for cell in row.cells)]


def _ratio(comparison: Comparison, arm: ArmSummary) -> str:
    ratio = next((ratio for ratio in comparison.ratios if ratio.index == arm.index), None)
    if ratio is None:
        return "1"
    if ratio.estimate is None:
        return UNKNOWN
    text = times(ratio.estimate.mean)
    if ratio.estimate.low is not None:
        text += f" ({ratio_interval(ratio.estimate.low, ratio.estimate.high)})"
    if not ratio.has_interval:
        return f"{text}, a single run"
    return text if ratio.distinguishable else f"{text}, not distinguishable"


def _short_ratio(comparison: Comparison, arm: ArmSummary) -> str:
    ratio = next((ratio for ratio in comparison.ratios if ratio.index == arm.index), None)
    if ratio is None:
        return "1"
    if ratio.estimate is None:
        return UNKNOWN
    alike = ratio.has_interval and not ratio.distinguishable
    return f"≈ {times(ratio.estimate.mean)}" if alike else times(ratio.estimate.mean)


def _half_width(arm: ArmSummary) -> str:
    if arm.headline.high is None or not arm.headline.mean:
        return UNKNOWN
    return f"{(arm.headline.high / arm.headline.mean - 1) * 100:.1f}"


def _per_dollar(arm: ArmSummary) -> str:
    if not arm.usd_per_month or arm.metric.better == "less":
        return UNKNOWN
    return number(arm.headline.mean / arm.usd_per_month)
