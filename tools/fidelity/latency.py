"""Latency as fio keeps it: counts in bins of 1/64 of their value, so that distributions can be compared bin by bin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

BITS = 6
"""fio's FIO_IO_U_PLAT_BITS: below 2^BITS ns a bin is one nanosecond wide, above it 1/64 of its power of two."""


@dataclass(frozen=True)
class Latency:
    """Counts of latencies in nanoseconds. ``low`` and ``high`` bound each bin, in ascending order."""

    low: np.ndarray[Any, Any]
    high: np.ndarray[Any, Any]
    counts: np.ndarray[Any, Any]

    @classmethod
    def of_values(cls, latency_ns: np.ndarray[Any, Any]) -> Latency:
        """Puts latencies into fio's bins."""
        import numpy as np

        low, counts = np.unique(_low(latency_ns.astype(np.int64)), return_counts=True)
        return cls(low, low + _width(low), counts)

    @classmethod
    def of_bins(cls, bins: Iterable[tuple[int, int]]) -> Latency:
        """From (any value within the bin, count), as fio prints and as :meth:`bins` gives."""
        import numpy as np

        pairs = np.array([(value, count) for value, count in bins if count], dtype=np.int64).reshape(-1, 2)
        low, where = np.unique(_low(pairs[:, 0]), return_inverse=True)
        return cls(low, low + _width(low), np.bincount(where, weights=pairs[:, 1], minlength=len(low)).astype(np.int64))

    def bins(self) -> list[tuple[int, int]]:
        """(middle of the bin, count), for a file."""
        middle = (self.low + self.high) // 2
        return [(int(value), int(count)) for value, count in zip(middle, self.counts, strict=True)]

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    @property
    def mean_ns(self) -> float:
        """The mean, from the middles of the bins."""
        return float(((self.low + self.high) / 2 * self.counts).sum() / self.counts.sum())

    def percentile_ns(self, percent: float) -> float:
        """The latency that ``percent`` of the requests do not exceed, as if each bin were filled evenly."""
        import numpy as np

        rank = self.counts.sum() * percent / 100
        below = np.cumsum(self.counts)
        index = min(int(np.searchsorted(below, rank)), len(below) - 1)
        share = (rank - (below[index] - self.counts[index])) / self.counts[index]
        return float(self.low[index] + share * (self.high[index] - self.low[index]))

    def merged(self, other: Latency) -> Latency:
        """Both together."""
        return Latency.of_bins([*self.bins(), *other.bins()])

    def distance(self, other: Latency) -> float:
        """The largest difference of the two cumulative distributions at the bounds of bins (Kolmogorov-Smirnov)."""
        import numpy as np

        bounds = np.union1d(self.high, other.high)

        def reached(latency: Latency) -> np.ndarray[Any, Any]:
            below = np.concatenate([[0], np.cumsum(latency.counts)]) / latency.counts.sum()
            return np.asarray(below[np.searchsorted(latency.high, bounds, side="right")])

        return float(np.abs(reached(self) - reached(other)).max())


def _width(low_ns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Width of the bin that begins at each value."""
    import numpy as np

    # frexp is exact below 2^53 ns, which is a hundred days.
    power = np.frexp(np.maximum(low_ns, 1).astype(np.float64))[1] - 1
    return np.asarray(np.left_shift(np.int64(1), np.maximum(power - BITS, 0).astype(np.int64)))


def _low(value_ns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Lower bound of each value's bin."""
    low: np.ndarray[Any, Any] = value_ns - value_ns % _width(value_ns)
    return low
