"""The mean of a series whose values hang together, with an interval that knows it.

Neighbouring seconds of a run are alike, so that 300 of them say less than 300 independent ones. The variance of the mean
is the spectrum of the series at frequency zero; it is estimated from the eight lowest cosine frequencies, each weighing
the same, and the interval is Student's with eight degrees of freedom (Lazarus, Lewis, Stock and Watson, "HAR Inference:
Recommendations for Practice", 2018). Eight are few, so the interval is a little wide, and in return it holds for series
with a long memory. Of nine values or fewer it is the ordinary t interval, to the last digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.interval import LEVEL, t_quantile

if TYPE_CHECKING:
    import numpy as np

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
