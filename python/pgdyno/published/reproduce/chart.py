"""A line of a document beside the runs that stand for its points, and the law that either follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pgdyno.published import PublishedDocument
from pgdyno.published.chart import Chart

from ...analysis.statistics import Estimate, t_interval
from ...analysis.sweep import Scaling, fit
from .kept import KeptArm


@dataclass(frozen=True)
class PointResult:
    """One row of the document."""

    x: float
    there: float
    here: Estimate | None
    """None where there are no valid runs of it."""
    why: str = ""
    """Why there are none: a clause."""


@dataclass(frozen=True)
class LineResult:
    """The points of one line."""

    name: str
    points: tuple[PointResult, ...]

    @cached_property
    def law_there(self) -> Scaling | None:
        """The universal scalability law through the document's points; None for fewer than four."""
        return fit([(point.x, point.there) for point in self.points])

    @cached_property
    def law_here(self) -> Scaling | None:
        """The same of the runs."""
        return fit([(point.x, point.here.mean) for point in self.points if point.here is not None])


@dataclass(frozen=True)
class ChartResult:
    """One chart, there and here."""

    chart: Chart
    unit: str
    lines: tuple[LineResult, ...]

    @property
    def why(self) -> str:
        """Why nothing is here: a clause; empty where something is."""
        points = [point for line in self.lines for point in line.points]
        return "" if any(point.here for point in points) else points[0].why


def chart_told(
    document: PublishedDocument, chart: Chart, arm_of: Callable[[Mapping[str, str]], KeptArm | str]
) -> ChartResult:
    """A chart beside its runs. ``arm_of`` has the arm of some levels, or why there is none."""
    lines = []
    for line in chart.line:
        points = []
        for point in document.points(chart, line):
            arm = arm_of(point.levels)
            here: tuple[Estimate | None, str] = (None, arm) if isinstance(arm, str) else _figure(arm, chart.metric)
            points.append(PointResult(point.x, point.y, *here))
        lines.append(LineResult(line.name, tuple(points)))
    return ChartResult(chart, document.unit_of(chart.column), tuple(lines))


def _figure(arm: KeptArm, metric: str) -> tuple[Estimate | None, str]:
    if arm.invalid:
        return None, f"runs are invalid: {arm.invalid[0]}"
    block = arm.by_block(metric)
    return (t_interval([*block.values()]), "") if block else (None, f"the runs have no `{metric}`")
