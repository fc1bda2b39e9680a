"""Slowed time taken to one, in the JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.report.part import Part

if TYPE_CHECKING:
    from pgdyno.analysis.compare import Comparison
    from pgdyno.analysis.interval import Estimate


class EstimateOf(Part):
    """A figure with its 95 % interval."""

    mean: float
    low: float | None
    """Null for one replicate."""
    high: float | None


class UndilatedOf(Part):
    """One combination of the other factors, extrapolated to dilation 1 from two or more above it."""

    label: str
    """The levels of the other factors; `all` where there is no other."""
    dilations: list[int]
    at_one: EstimateOf | None
    """The headline at dilation 1; null where it is refused."""
    because: str
    """Why it is refused: a clause; empty where it is not."""
    noise: float | None
    """How many times the noise of a run the noise of that figure is."""
    measured: float | None
    """The mean headline of the arm at dilation 1; null without one."""
    ratio: EstimateOf | None
    """Against the first combination; null for the first itself, and where either is refused."""


def undilated_of(comparison: Comparison) -> list[UndilatedOf]:
    """Every combination that has two dilations above 1."""
    found = comparison.undilated
    return [
        UndilatedOf(
            label=one.label,
            dilations=[arm.dilation for arm in one.arms],
            at_one=_estimate(one.estimate),
            because=one.because,
            noise=one.noise,
            measured=None if one.measured is None else one.measured.headline.mean,
            ratio=None if one is found[0] else _estimate(one.ratio_to(found[0])),
        )
        for one in found
    ]


def _estimate(found: Estimate | None) -> EstimateOf | None:
    return None if found is None else EstimateOf.model_validate(found)
