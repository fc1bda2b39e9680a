"""Intervals over replicates: the unit of inference is the run, never the one-second sample.

Samples inside one run are correlated (checkpoints, caches, a bucket of credit), so an interval over them would be far
too narrow. A replicate is a fresh cluster on a fresh clone of the data, and replicates are independent.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95
"""Confidence of every interval: a series of experiments covers the true value in 95 % of them."""

ROUNDING = 1e-9
"""Half of the narrowest interval of a logarithm of ratios: runs that are exactly alike differ by rounding alone."""

LOG_MAX = math.log(sys.float_info.max)
"""Beyond it ``math.exp`` raises instead of giving a number."""


@dataclass(frozen=True)
class Estimate:
    """A mean over ``n`` replicates and its interval, all in the unit of the values.

    ``low`` and ``high`` are None for a single replicate: one run says nothing about its own spread.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    degrees: float | None = None
    """Degrees of freedom of the interval; None where there is none."""


def t_quantile(degrees: float, level: float = LEVEL) -> float:
    """The factor of a two-sided Student t interval: 4.30 for 2 degrees of freedom at 95 %."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + level / 2))


def t_interval(values: Sequence[float], level: float = LEVEL) -> Estimate:
    """Mean of the replicates with a Student t interval.

    The interval assumes replicates that scatter symmetrically; a test simulates how often it covers the true mean of
    skewed ones. Raises ValueError for no values.
    """
    n = len(values)
    if n == 0:
        raise ValueError("an interval needs at least one value")
    mean = math.fsum(values) / n
    if n == 1:
        return Estimate(mean, None, None, 1)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = t_quantile(n - 1, level) * deviation / math.sqrt(n)
    return Estimate(mean, mean - half, mean + half, n, n - 1)


def ratio_interval(pairs: Sequence[tuple[float, float]], level: float = LEVEL) -> Estimate:
    """Ratio of the first to the second of each pair, as a geometric mean with a t interval on its logarithm.

    A pair is two runs of one block: made one after the other, they share whatever the host did at that time, and the
    pairing takes it out. On the logarithm a ratio and its inverse are treated alike, and multiplicative noise is
    symmetric. Raises ValueError for no pairs, or for a value that is not positive.
    """
    if any(over <= 0 or under <= 0 for over, under in pairs):
        raise ValueError("a ratio needs positive values")
    log = t_interval([math.log(over / under) for over, under in pairs], level)
    return Estimate(
        math.exp(log.mean),
        None if log.low is None else math.exp(log.low),
        None if log.high is None else math.exp(log.high),
        log.n,
        log.degrees,
    )


def stratified_ratio(strata: Sequence[Sequence[float]], level: float = LEVEL) -> Estimate:
    """Mean ratio over strata, from the logarithms of ratios in each, every stratum weighing the same.

    A stratum is one combination of the other factors: its own mean is part of what is asked, not noise, and its
    spread is its own (a saturated volume scatters less than a busy CPU). The standard error adds the strata's, and the
    degrees of freedom are Welch and Satterthwaite's; for one stratum this is :func:`ratio_interval`. A stratum of a
    single value is taken to spread like the mean of the others; ``n`` is the number of values. Raises ValueError for
    none.
    """
    filled = [values for values in strata if values]
    if not filled:
        raise ValueError("an interval needs at least one value")
    n = sum(len(values) for values in filled)
    mean = math.fsum(math.fsum(values) / len(values) for values in filled) / len(filled)
    several = [values for values in filled if len(values) > 1]
    if not several:
        return Estimate(math.exp(mean), None, None, n)
    # A single value borrows the mean spread of the others, so each of these counts for more and none is added to them:
    # with one stratum of two values there is one degree of freedom, however many single ones lean on it.
    borrowed = (len(filled) - len(several)) / len(several)
    parts = [variance(values) * (1 / len(values) + borrowed) for values in several]
    squares = math.fsum(parts)
    below = math.fsum(part**2 / (len(values) - 1) for part, values in zip(parts, several, strict=True))
    # Strata without any spread at all leave nothing to weigh them by; the smallest number of degrees is the safe one.
    degrees = squares**2 / below if below > 0 else 1.0
    half = max(ROUNDING, t_quantile(degrees, level) * math.sqrt(squares) / len(filled))
    return Estimate(math.exp(mean), math.exp(mean - half), _from_log(mean + half), n, degrees)


def unpaired_ratio(over: Sequence[float], under: Sequence[float], level: float = LEVEL) -> Estimate:
    """Ratio of two geometric means with Welch's interval (degrees of freedom after Satterthwaite).

    A side of a single value has no interval. Raises ValueError for no values, or for one that is not positive.
    """
    if not over or not under or min(*over, *under) <= 0:
        raise ValueError("a ratio needs positive values on both sides")
    logs = [[math.log(value) for value in side] for side in (over, under)]
    means = [math.fsum(side) / len(side) for side in logs]
    mean = means[0] - means[1]
    n = len(over) + len(under)
    if min(len(over), len(under)) < 2:
        return Estimate(math.exp(mean), None, None, n)
    squares = [
        math.fsum((value - centre) ** 2 for value in side) / (len(side) - 1) / len(side)
        for side, centre in zip(logs, means, strict=True)
    ]
    below = math.fsum(square**2 / (len(side) - 1) for square, side in zip(squares, logs, strict=True))
    degrees = math.fsum(squares) ** 2 / below if below > 0 else 1.0
    half = max(ROUNDING, t_quantile(degrees, level) * math.sqrt(math.fsum(squares)))
    return Estimate(math.exp(mean), math.exp(mean - half), math.exp(mean + half), n, degrees)


def _from_log(log: float) -> float:
    """A ratio from its logarithm: infinite where a float cannot hold it.

    Two replicates, one of which hardly did anything, and a level for many questions make an interval that wide.
    """
    return math.exp(log) if log < LOG_MAX else math.inf


def variance(values: Sequence[float]) -> float:
    """Of at least two values, from their mean."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def distinguishable(ratio: Estimate) -> bool:
    """Whether the interval of a ratio excludes 1. One replicate never distinguishes anything."""
    if ratio.low is None or ratio.high is None:
        return False
    return ratio.low > 1 or ratio.high < 1
