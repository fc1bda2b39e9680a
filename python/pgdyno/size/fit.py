"""Whether limits carry a load, which of them is the nearest, and for how long credits last."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pgdyno.size.bucket import Rate, first_empty_s
from pgdyno.size.demand import quantile

if TYPE_CHECKING:
    from pgdyno.size.demand import Series

Limit = Literal["IOPS", "throughput"]
_ROUNDING = 1e-9
"""A limit is met although a sum in floating point says that a billionth is lacking."""


@dataclass(frozen=True)
class Fit:
    """What became of a load that was held against a limit on operations and one on bytes."""

    carries: bool
    nearest: Limit
    """The limit that fails; else one that holds on credits alone; else the one with the least room."""
    headroom: float
    """Room above the percentile at that limit: 0.2 is a limit of 1.2 times the percentile. Below 0: it is exceeded."""
    on_credits: bool
    """Whether it carries the load only because credits are earned back in between."""
    empty_after_s: float | None
    """When credits are used up, the load being repeated for ever, from a full bucket; ``None``: never, or none are."""


@dataclass(frozen=True)
class _Side:
    limit: Limit
    carries: bool
    headroom: float
    on_credits: bool
    empty_after_s: float | None


def fit(
    iops: Rate, throughput: Rate, charged: tuple[Series, Series], seconds: Series, percentile: float, factor: float
) -> Fit:
    """Hold a charged load against two rates. ``factor`` is what a limit must be of the percentile, 1.2 for 20 %."""
    sides = [
        _side("IOPS", iops, charged[0], seconds, percentile, factor),
        _side("throughput", throughput, charged[1], seconds, percentile, factor),
    ]
    nearest = min(sides, key=lambda side: (side.carries, not side.on_credits, side.headroom))
    ends = [side.empty_after_s for side in sides if side.empty_after_s is not None]
    return Fit(
        all(side.carries for side in sides),
        nearest.limit,
        nearest.headroom,
        any(side.on_credits for side in sides),
        min(ends, default=None),
    )


def _side(limit: Limit, rate: Rate, load: Series, seconds: Series, percentile: float, factor: float) -> _Side:
    asked = quantile(load, seconds, percentile)
    needed = asked * factor * (1 - _ROUNDING)
    if rate.sustained >= needed or not rate.bursts:
        return _Side(limit, rate.sustained >= needed, _room(rate.sustained, asked), False, None)
    end_s = first_empty_s(rate, load * factor, seconds)
    return _Side(limit, rate.maximum >= needed and end_s is None, _room(rate.maximum, asked), True, end_s)


def _room(limit: float, asked: float) -> float:
    return limit / asked - 1 if asked else math.inf
