"""What was measured: pairs of runs, the driver alone, and its memory over time."""

from __future__ import annotations

import math
from statistics import fmean, median, stdev

from pydantic import BaseModel

from tools.driver.load import Load
from tools.measured import Dated

TOLERANCE_KIB = 1024
"""What memory may grow by and be called flat: pages of thread stacks and of the allocator that are first touched late."""
SETTLED_S = 20
"""Buffers have their final size after this."""


class Sample(BaseModel, frozen=True):
    """One run of one tool."""

    cpu_s: float
    transactions: int

    @property
    def cpu_us(self) -> float:
        """For each transaction."""
        return self.cpu_s * 1e6 / self.transactions


class Pair(BaseModel, frozen=True):
    """Two runs, one after the other."""

    load: str
    native: Sample
    original: Sample
    native_first: bool

    @property
    def ratio(self) -> float:
        """CPU of the driver for each transaction against the original's."""
        return self.native.cpu_us / self.original.cpu_us


class Idle(BaseModel, frozen=True):
    """The driver without a server, on one thread."""

    rate_per_s: int
    scheduled: int
    succeeded: int
    cpu_s: float
    duration_s: float
    lag_us_p99: float

    @property
    def per_core_s(self) -> float:
        """Transactions for each second of CPU."""
        return self.succeeded / self.cpu_s


class Memory(BaseModel, frozen=True):
    """What the driver held, second by second."""

    resident_kib: list[int]

    @property
    def growth_kib(self) -> int:
        """How much more it held at most in the last quarter than in the first after it had settled."""
        settled = self.resident_kib[min(SETTLED_S, len(self.resident_kib) // 2) :]
        quarter = max(1, len(settled) // 4)
        return max(settled[-quarter:]) - max(settled[:quarter])


class Record(Dated, frozen=True):
    """All of it."""

    seconds: int
    """Length of each run of a pair."""
    pairs: list[Pair]
    left_out: list[str]
    """Loads that this machine could not measure, and why."""
    idle: list[Idle]
    memory: Memory

    def of(self, load: Load) -> list[Pair]:
        """The pairs of one load."""
        return [pair for pair in self.pairs if pair.load == load.name]


class Compared(BaseModel, frozen=True):
    """A ratio from pairs, with what it is uncertain by."""

    native_us: float
    original_us: float
    ratio: float
    low: float
    high: float
    pairs: int


def compare(pairs: list[Pair]) -> Compared:
    """Medians of both, and the geometric mean of the ratios with its 95 % interval (Student's t on their logarithms)."""
    from scipy import stats

    logs = [math.log(pair.ratio) for pair in pairs]
    middle = fmean(logs)
    half = float(stats.t.ppf(0.975, len(logs) - 1)) * stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    return Compared(
        native_us=median(pair.native.cpu_us for pair in pairs),
        original_us=median(pair.original.cpu_us for pair in pairs),
        ratio=math.exp(middle),
        low=math.exp(middle - half),
        high=math.exp(middle + half),
        pairs=len(pairs),
    )
