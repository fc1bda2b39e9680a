"""Intervals over replicates: the unit of inference is the run, never the one-second sample.

Samples inside one run are correlated (checkpoints, caches, a bucket of credit), so an interval over them would be far
too narrow. A replicate is a fresh cluster on a fresh clone of the data, and replicates are independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.95
"""Confidence of every interval: a series of experiments covers the true value in 95 % of them."""


@dataclass(frozen=True)
class Estimate:
    """A mean over ``n`` replicates and its interval, all in the unit of the values.

    ``low`` and ``high`` are None for a single replicate: one run says nothing about its own spread.
    """

    mean: float
    low: float | None
    high: float | None
    n: int


def t_quantile(degrees: int, level: float = LEVEL) -> float:
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
    return Estimate(mean, mean - half, mean + half, n)


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
    )


def distinguishable(ratio: Estimate) -> bool:
    """Whether the interval of a ratio excludes 1. One replicate never distinguishes anything."""
    if ratio.low is None or ratio.high is None:
        return False
    return ratio.low > 1 or ratio.high < 1


def least_difference(ratio: Estimate) -> float | None:
    """The smallest relative difference that an interval of this width would have told from none (0.05 is 5 %).

    It says what "not distinguishable" can mean: a difference above this would have shown. None for one replicate.
    """
    if ratio.low is None or ratio.high is None:
        return None
    return math.sqrt(ratio.high / ratio.low) - 1
