"""The ratio of two drivers' TPS, without what the CPU's pace makes of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgdyno.analysis.interval import Estimate, ratio_interval, t_quantile

PAIRS_MIN = 6
"""Below this many pairs a slope would be drawn through chance, and the plain ratio is taken."""
ALIKE = 1e-6
"""Paces that differ by no more than this say nothing."""

Pair = tuple[tuple[float, float], tuple[float, float]]
"""TPS and pace of one run, and of the one that it is compared with."""


def at_equal_pace(pairs: Sequence[Pair]) -> Estimate:
    """The ratio at which a pair of equal pace would lie, with its interval.

    A control variate: the logarithm of the TPS ratio is regressed on that of the paces, and the line is read where the
    paces are equal. Neither driver has a share in the pace, so what is taken out is noise and not a difference of theirs;
    with no relation between the two, the slope is about zero and the interval that of the plain ratio.
    """
    tps = [(run[0], other[0]) for run, other in pairs]
    slower = [math.log(run[1] / other[1]) for run, other in pairs]
    if len(pairs) < PAIRS_MIN or max(slower) - min(slower) < ALIKE:
        return ratio_interval(tps)
    from scipy.stats import linregress

    line = linregress(slower, [math.log(run / other) for run, other in tps])
    degrees = len(pairs) - 2
    half = t_quantile(degrees) * line.intercept_stderr
    low, high = math.exp(line.intercept - half), math.exp(line.intercept + half)
    return Estimate(math.exp(line.intercept), low, high, len(pairs), degrees)
