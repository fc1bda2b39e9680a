"""The cost front: arms that no other arm beats in price without being slower.

Runs scatter, so a mean that is a little higher is no reason to pay more. An arm is off the front when another one costs
less and is not slower beyond doubt, or costs the same and is faster beyond doubt. Beyond doubt is what a ratio's interval
says; where there is one replicate and so no interval, the mean decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .statistics import ratio_interval

Block = tuple[str, int]


@dataclass(frozen=True)
class ParetoPoint:
    """An arm as a buyer sees it."""

    index: int
    usd_per_month: float
    speed: Mapping[Block, float]
    """Block -> what is wanted more of, positive: transactions per second, or one over a latency."""


def front(offered: Sequence[ParetoPoint]) -> frozenset[int]:
    """Indexes of the arms on the front."""
    return frozenset(point.index for point in offered if not any(_beats(other, point) for other in offered))


def _beats(other: ParetoPoint, point: ParetoPoint) -> bool:
    if other.usd_per_month < point.usd_per_month:
        return _faster(point, other) is False
    return other.usd_per_month == point.usd_per_month and other is not point and _faster(other, point) is True


def _faster(point: ParetoPoint, other: ParetoPoint) -> bool | None:
    """Whether one is faster than the other beyond doubt; None where no block has a run of both."""
    pairs = [(value, other.speed[block]) for block, value in point.speed.items() if block in other.speed]
    if not pairs:
        return None
    ratio = ratio_interval(pairs)
    return (ratio.mean if ratio.low is None else ratio.low) > 1
