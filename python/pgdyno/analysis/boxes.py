"""A spread in five numbers and what lies outside of them, as Tukey draws it (1977)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

REACH = 1.5
"""A whisker ends at the last value within this number of interquartile ranges of the box: Tukey's convention, and R's."""


@dataclass(frozen=True)
class Box:
    """The spread of some values."""

    low: float
    """End of the lower whisker."""
    first_quartile: float
    median: float
    third_quartile: float
    high: float
    outside: tuple[float, ...]
    """Values beyond the whiskers."""
    n: int


def box_of(values: Sequence[float]) -> Box:
    """The box of some values; ValueError for none."""
    import numpy as np

    if not values:
        raise ValueError("a box needs at least one value")
    first, median, third = (float(value) for value in np.percentile(values, [25, 50, 75]))
    reach = REACH * (third - first)
    inside = [value for value in values if first - reach <= value <= third + reach]
    outside = tuple(sorted(value for value in values if not first - reach <= value <= third + reach))
    return Box(min(inside), first, median, third, max(inside), outside, len(values))
