"""The figures by which many arms are told apart: columns of the terminal's table, of the page's and of Markdown's."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.report.words import price

from ..base.text import UNKNOWN, number, percent

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
    """What stands beside the headline; what no arm has is omitted."""
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
    """How many of its replicates are."""
    return f"{sum(replicate.valid for replicate in arm.replicates)} of {len(arm.replicates)}"
