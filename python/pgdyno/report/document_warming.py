"""How long volumes that were made from snapshots were slower than warm ones, in the JSON document."""

from __future__ import annotations

from pgdyno.analysis.compare import Comparison
from pgdyno.report.part import DocumentPart


class WarmingOf(DocumentPart):
    """An arm whose volumes were made from snapshots, beside its warm one."""

    cold: str
    """The label of the arm."""
    warm: str
    """The label of the warm one."""
    seconds: list[float | None]
    """For each block, from when measuring begins until TPS is within 10 % of warm for good; null where it did not come to it."""
    measured_s: float
    """How long was measured."""


def warmings_of(comparison: Comparison) -> list[WarmingOf]:
    """Every cold arm that has a warm one."""
    return [
        WarmingOf(
            cold=warming.cold.label,
            warm=warming.warm.label,
            seconds=list(warming.seconds),
            measured_s=warming.measured_s,
        )
        for warming in comparison.warmings
    ]
