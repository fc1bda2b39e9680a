"""Slowed time taken to one, in the JSON document."""

from __future__ import annotations

from pgdyno.analysis.compare import Comparison
from pgdyno.report.part import DocumentPart

from ..analysis.statistics import Estimate


class FigureEstimate(DocumentPart):
    """A figure with its 95 % interval."""

    mean: float
    low: float | None
    """Null for one replicate."""
    high: float | None


class UndilatedOf(DocumentPart):
    """One combination of the other factors, extrapolated to dilation 1 from two or more above it."""

    label: str
    """The levels of the other factors; `all` where there is no other."""
    dilations: list[int]
    at_one: FigureEstimate | None
    """The headline at dilation 1; null where it is refused."""
    because: str
    """Why it is refused: a clause; empty where it is not."""
    noise: float | None
    """How many times the noise of a run the noise of that figure is."""
    measured: float | None
    """The mean headline of the arm at dilation 1; null without one."""
    ratio: FigureEstimate | None
    """Against the first combination; null for the first itself, and where either is refused."""


def undilated_of(comparison: Comparison) -> list[UndilatedOf]:
    """Every combination that has two dilations above 1."""
    undilateds = comparison.undilated
    return [
        UndilatedOf(
            label=undilated.label,
            dilations=[arm.dilation for arm in undilated.arms],
            at_one=_estimate(undilated.estimate),
            because=undilated.because,
            noise=undilated.noise,
            measured=None if undilated.measured is None else undilated.measured.headline.mean,
            ratio=None if undilated is undilateds[0] else _estimate(undilated.ratio_to(undilateds[0])),
        )
        for undilated in undilateds
    ]


def _estimate(estimate: Estimate | None) -> FigureEstimate | None:
    return None if estimate is None else FigureEstimate.model_validate(estimate)
