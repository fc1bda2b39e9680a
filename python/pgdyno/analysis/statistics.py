"""Intervals over replicates: the unit of inference is the run, never the one-second sample.

Beside them stand the resolution of an experiment (equivalence and the smallest difference it can find), the mean of an autocorrelated
series, the allocation of further runs, and Tukey's five numbers (1977).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


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


FREQUENCIES = 8
"""More would take in what is not near zero, fewer make the interval wider: with 8 its factor is 2.31 instead of 1.96."""


@dataclass(frozen=True)
class SeriesMean:
    """A mean, its interval, and what the series was worth; in the unit of the values."""

    mean: float
    low: float
    high: float
    long_run_variance: float
    """Of one value, with all that it shares with its neighbours: the variance of the mean times the number of values."""
    n_effective: float
    """Independent values that would tell the mean as well."""
    degrees: int
    """Degrees of freedom of the interval: the frequencies that it rests on."""


def series_mean(values: np.ndarray[Any, Any], frequencies: int = FREQUENCIES, level: float = LEVEL) -> SeriesMean:
    """Of at least two values at equal distances. Raises ValueError for fewer."""
    n = len(values)
    if n < 2:
        raise ValueError("an interval needs at least two values")
    mean = float(values.mean())
    terms = min(frequencies, n - 1)
    weights = _cosines(n, terms) @ (values - mean)
    long_run = float((weights**2).mean())
    half = t_quantile(terms, level) * math.sqrt(long_run / n)
    variance = float(values.var(ddof=1))
    effective = n * variance / long_run if long_run > 0 else float(n)
    return SeriesMean(mean, mean - half, mean + half, long_run, min(float(n), effective), terms)


@lru_cache(maxsize=64)
def _cosines(n: int, terms: int) -> np.ndarray[Any, Any]:
    """Orthonormal cosines of 1 to ``terms`` half waves over ``n`` values; each is orthogonal to a constant."""
    import numpy as np

    frequency, place = np.arange(1, terms + 1), np.arange(n) + 0.5
    return math.sqrt(2 / n) * np.cos(np.pi * frequency[:, None] * place / n)


PRIOR_DEGREES = 2.0
"""Two or three runs hardly determine a variance, so the mean variance of all arms is added with these degrees of freedom: two
runs of an arm then weigh a third, ten runs four fifths (moderated variances, Smyth, 2004)."""
SHARE = 0.5
"""Share of the groups that get another run in a block. A smaller one would follow the noise of the variances; a larger one would hardly choose."""

Group = frozenset[int]
"""Indexes of arms that are run together, because their ratios are what is asked."""


@dataclass(frozen=True)
class Scatter:
    """What the runs of one arm have shown so far."""

    logs: tuple[float, ...]
    """Logarithm of the headline of each run."""
    seconds: float
    """What a run of it takes, all in all."""
    runs: int
    """How many there were; those that did nothing have no logarithm."""


def groups_of(levels: Sequence[Sequence[object]], paired_with_first: bool) -> list[Group]:
    """Which arms belong together; ``levels`` are the levels of each arm by index.

    With several factors in full combination, arms that differ in the first factor alone. Otherwise ratios are taken to the
    first arm, so each arm is grouped with that.
    """
    if paired_with_first:
        return [frozenset({0, index}) for index in range(1, len(levels))] or [frozenset({0})]
    by_rest: dict[tuple[object, ...], set[int]] = {}
    for index, each in enumerate(levels):
        by_rest.setdefault(tuple(each[1:]), set()).add(index)
    return [frozenset(group) for group in by_rest.values()]


def chosen(scatter: Mapping[int, Scatter], groups: Sequence[Group]) -> list[Group]:
    """The groups that are worth another run, the best first: :data:`SHARE` of them, and any with an arm of a single run.

    An arm that ``scatter`` does not have was never run. One whose runs had no transactions has no ratio to anything: its
    groups get no further run.
    """
    variances = moderated_variances(scatter)
    single = [group for group in groups if any(_count(scatter, arm) < 2 for arm in group)]
    rest = [group for group in groups if group not in single and all(arm in variances for arm in group)]
    gains = {group: _gain(group, scatter, variances) for group in rest}
    best = sorted(gains, key=lambda group: (-gains[group], sorted(group)))
    wanted = math.ceil(SHARE * len(groups))
    return [*single, *best[: max(0, wanted - len(single))]]


def moderated_variances(scatter: Mapping[int, Scatter]) -> dict[int, float]:
    """Index of each arm with two runs or more -> variance of its logarithms, drawn towards the mean of all."""
    own = {arm: variance(other.logs) for arm, other in scatter.items() if len(other.logs) > 1}
    degrees = {arm: len(scatter[arm].logs) - 1 for arm in own}
    total = sum(degrees.values())
    pooled = math.fsum(own[arm] * degrees[arm] for arm in own) / total if total else 0.0
    return {arm: (PRIOR_DEGREES * pooled + degrees[arm] * own[arm]) / (PRIOR_DEGREES + degrees[arm]) for arm in own}


def _gain(group: Collection[int], scatter: Mapping[int, Scatter], variances: Mapping[int, float]) -> float:
    """What one more run of each arm takes off the variance of their means, for each second that it takes."""
    taken = math.fsum(variances[arm] / (_count(scatter, arm) * (_count(scatter, arm) + 1)) for arm in group)
    return taken / max(1e-9, math.fsum(scatter[arm].seconds for arm in group))


def _count(scatter: Mapping[int, Scatter], arm: int) -> int:
    return scatter[arm].runs if arm in scatter else 0
