"""The figure by which arms are compared: a workload names it, and ratios, intervals, fronts, budgets and verdicts take it.

A headline is taken from a run's record alone, so that the next run can be chosen without reading any table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from ..results.record import RunRecord

Better = Literal["more", "less"]
NEW_ORDER = "new_order"
"""The type of transaction that workloads derived from TPC-C are judged by."""


@dataclass(frozen=True)
class Headline:
    """A figure of a run, which way is better, and its words."""

    name: str
    """As documents have it: ``tps``."""
    title: str
    """``transactions per second``."""
    short: str
    """For the head of a column."""
    unit: str
    better: Better
    of: Callable[[RunRecord], float]
    """The figure of a run; 0 where it did nothing that can be compared."""
    counts: str
    """What a ratio is a multiple of: ``transactions``."""
    does: str
    """Verb of one arm: it does 900 transactions per second, or takes 30 seconds."""
    do: str
    did: str
    fewer: str
    """Opposite of more."""
    fewest: str

    def gain(self, ratio: float) -> float:
        """A ratio of two figures as how many times better the first is."""
        return ratio if self.better == "more" else 1 / ratio

    def apart(self, ratio: float) -> str:
        """``more`` or the opposite, of a ratio."""
        return "more" if ratio > 1 else self.fewer


def work_per_s(record: RunRecord) -> float:
    """Transactions that succeeded (of a load: rows) for each second of the measure phase."""
    seconds = record.measure.seconds
    return record.account.succeeded / seconds if seconds > 0 else 0.0


def _nopm(record: RunRecord) -> float:
    seconds = record.measure.seconds
    return record.succeeded_by_type.get(NEW_ORDER, 0) * 60 / seconds if seconds > 0 else 0.0


def _seconds(record: RunRecord) -> float:
    return record.measure.seconds if record.account.succeeded else 0.0


def _geomean(record: RunRecord) -> float:
    return 0.0 if record.streams is None else record.streams.geometric_mean_s


def _response_ms(record: RunRecord) -> float:
    return 0.0 if record.replay is None else record.replay.response.mean_ms


TPS: Final = Headline(
    "tps", "transactions per second", "TPS", "1/s", "more", work_per_s, "transactions", "does", "do", "did", "fewer", "fewest"
)  # fmt: skip
NOPM: Final = Headline(
    "nopm", "New-Orders per minute", "NOPM", "1/min", "more", _nopm, "New-Orders", "does", "do", "did", "fewer", "fewest"
)  # fmt: skip
SECONDS: Final = Headline(
    "seconds", "seconds", "seconds", "s", "less", _seconds, "time", "takes", "take", "took", "less", "least"
)  # fmt: skip
GEOMEAN: Final = Headline(
    "geomean_s", "geometric mean of query seconds", "geo mean s", "s", "less", _geomean, "geometric mean of query seconds", "takes", "take", "took", "less", "least"
)  # fmt: skip
RESPONSE: Final = Headline(
    "response_ms", "mean response time of statements, ms", "response ms", "ms", "less", _response_ms, "mean response time", "takes", "take", "took", "less", "least"
)  # fmt: skip
HEADLINES: Final = {final.name: final for final in (TPS, NOPM, SECONDS, GEOMEAN, RESPONSE)}


def headline_of(record: RunRecord) -> Headline:
    """The headline that a run's record names; a record from before it was named has that of its kind."""
    return HEADLINES[record.metric or ("tps" if record.bulk_load is None else "seconds")]
