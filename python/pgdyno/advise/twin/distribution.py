"""Distributions as fio gives them (values with counts), and the quantile tables that the volume model draws from.

Between two probabilities of a table the model draws a straight line. A tail of rare large values between the last two
would then weigh far too much, so the last value is not the largest that was seen but the one that keeps the tail's mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

PROBABILITIES_PPM = (
    *(0, 10_000, 50_000, 100_000, 250_000, 500_000, 750_000, 900_000, 950_000, 980_000),
    *(990_000, 995_000, 999_000, 1_000_000),
)
"""Probabilities of a service time's table. The body is narrow and the tail long, so the points are denser above the median."""
TAIL_SAMPLES = 5
"""A probability above which fewer samples lie than this says nothing that the one below it does not."""


@dataclass(frozen=True)
class LatencyDistribution:
    """Nanoseconds in ascending order, each with how often it occurred."""

    values_ns: np.ndarray[Any, Any]
    counts: np.ndarray[Any, Any]

    @classmethod
    def of_bins(cls, bins: Mapping[str, int]) -> LatencyDistribution:
        """From fio's ``bins``: the middle of each bin, which is 1/64 of its power of two wide, and its count."""
        import numpy as np

        pairs = sorted((int(value), count) for value, count in bins.items() if count)
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return cls(table[:, 0], table[:, 1])

    @property
    def total(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    @property
    def mean_ns(self) -> float:
        """The mean, in nanoseconds."""
        return float((self.values_ns * self.counts).sum() / self.counts.sum())

    def quantile_ns(self, share: float) -> float:
        """The value that ``share`` (0 to 1) of the requests do not exceed, to the width of a bin."""
        import numpy as np

        reached = np.cumsum(self.counts)
        # Half of a request less: 0.99 of 100 requests must not be the hundredth for a rounding of the product.
        at = int(np.searchsorted(reached, share * reached[-1] - 0.5, side="left"))
        return float(self.values_ns[min(at, len(self.values_ns) - 1)])

    def plus(self, other: LatencyDistribution) -> LatencyDistribution:
        """The distribution of the sum of two independent times (a write and the flush after it)."""
        import numpy as np

        values = np.add.outer(self.values_ns, other.values_ns).ravel()
        weights = np.multiply.outer(self.counts, other.counts / other.counts.sum()).ravel()
        order = np.argsort(values, kind="stable")
        return LatencyDistribution(values[order], weights[order])

    def mean_above_ns(self, share: float) -> float:
        """Mean of the values above a quantile, the value at the quantile counted by its part above it."""
        import numpy as np

        reached = np.cumsum(self.counts) / self.counts.sum()
        weight = np.clip(reached - share, 0.0, self.counts / self.counts.sum())
        return float((self.values_ns * weight).sum() / weight.sum())


def table_ns(distribution: LatencyDistribution, less_ns: float, probabilities_ppm: Sequence[int]) -> list[int]:
    """Quantiles at ``probabilities_ppm``, all less ``less_ns`` and never below 0, ascending whole nanoseconds."""
    points = [distribution.quantile_ns(ppm / 1e6) for ppm in probabilities_ppm[:-1]]
    tail_ns = distribution.mean_above_ns(probabilities_ppm[-2] / 1e6)
    points.append(max(points[-1], 2 * tail_ns - points[-1]))
    table: list[int] = []
    for point in points:
        table.append(max(round(point - less_ns), table[-1] if table else 0, 0))
    return table


def probabilities_ppm(samples: int) -> tuple[int, ...]:
    """Those of :data:`PROBABILITIES_PPM` of which ``samples`` values can tell something; up to the median always."""
    kept = [ppm for ppm in PROBABILITIES_PPM[:-1] if ppm <= 500_000 or (1e6 - ppm) * samples >= TAIL_SAMPLES * 1e6]
    return (*kept, PROBABILITIES_PPM[-1])


def table_mean_ns(table: Sequence[int], ppm: Sequence[int]) -> float:
    """Mean of a quantile table with straight lines between its points, as the model draws from it."""
    parts = zip(ppm, ppm[1:], table, table[1:], strict=False)
    return sum((high - low) * (below + above) / 2 for low, high, below, above in parts) / 1e6
