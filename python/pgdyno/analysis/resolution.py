"""What replicates could and could not have shown: equivalence, the smallest difference that would have been found, and how
many more would find a smaller one.

"Not distinguishable" alone says little: it is true of two equal volumes and of two runs without a replicate. Two
one-sided tests (Schuirmann, 1987) turn it round: a difference of more than so much is ruled out. The power of the t test
(the noncentral t distribution) says which difference would have been found four times in five.
"""

from __future__ import annotations

import math

from pgdyno.analysis.interval import LEVEL, Estimate, t_quantile

POWER = 0.80
"""A difference counts as one that would have been found when four experiments of five find it: the usual convention."""
DIFFERENCE_OF_INTEREST = 0.03
"""A difference of less than 3 % in transactions decides nothing that a price or a margin for growth does not decide."""
_DEGREES_MAX = 1e4
"""From here on t is normal to four digits, and the noncentral distribution has no trouble."""


def equivalent_within(ratio: Estimate, level: float = LEVEL) -> float | None:
    """The smallest margin within which two sides are equivalent (0.02: less than 2 % apart, either way), at ``level``.

    Two one-sided tests, each at 1 - ``level``, rule out that the ratio lies beyond 1 + margin or below 1 / (1 + margin).
    None for one replicate.
    """
    known = _standard_error(ratio)
    if known is None:
        return None
    error, degrees = known
    return math.expm1(abs(math.log(ratio.mean)) + t_quantile(degrees, 2 * level - 1) * error)


def detectable_difference(ratio: Estimate, power: float = POWER) -> float | None:
    """The smallest relative difference that replicates which scatter like these find with that probability.

    None for one replicate.
    """
    known = _standard_error(ratio)
    return None if known is None else math.expm1(_shift(known[1], power) * known[0])


def replicates_needed(ratio: Estimate, difference: float = DIFFERENCE_OF_INTEREST, power: float = POWER) -> int | None:
    """How many replicates, paired by block as these are, would find that difference; None where these tell no spread."""
    known = _standard_error(ratio)
    if known is None or ratio.degrees != ratio.n - 1:
        return None
    deviation, wanted = known[0] * math.sqrt(ratio.n), math.log1p(difference)
    # The normal approximation is always a little too small, so that the search is short.
    count = max(2, math.floor(((t_quantile(_DEGREES_MAX) + _normal(power)) * deviation / wanted) ** 2))
    while _shift(count - 1, power) * deviation / math.sqrt(count) > wanted:
        count += 1
    return count


def _standard_error(ratio: Estimate) -> tuple[float, float] | None:
    """The standard error of the logarithm, and its degrees of freedom."""
    if ratio.low is None or ratio.high is None or ratio.degrees is None:
        return None
    degrees = min(ratio.degrees, _DEGREES_MAX)
    return math.log(ratio.high / ratio.low) / 2 / t_quantile(degrees), degrees


def _shift(degrees: float, power: float) -> float:
    """By how many standard errors the truth must lie off 1 for the interval to exclude 1 with that probability.

    That it is excluded on the wrong side is left out: at any power worth having it does not happen.
    """
    from scipy.optimize import brentq
    from scipy.special import nctdtr

    critical = t_quantile(degrees)
    return float(brentq(lambda shift: 1 - nctdtr(degrees, shift, critical) - power, 0.0, 3 * critical + 10))


def _normal(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))
