"""Whether limits carry a load, which of them is the nearest, and for how long credits last."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ...base.specification import Charge, Rate
from .bucket import first_empty_s
from .demand import MIB, Demand, Series, quantile

Limit = Literal["IOPS", "throughput"]
_ROUNDING = 1e-9
"""A limit is met although a sum in floating point says that a billionth is lacking."""


@dataclass(frozen=True)
class Fit:
    """The result of comparing a load with a limit on operations and one on bytes."""

    carries: bool
    """Whether what there is without credits is enough."""
    nearest: Limit
    """The limit that fails; else the one with the least room."""
    headroom: float
    """Room above the percentile at that limit, without credits: 0.2 is a limit of 1.2 times the percentile. Below 0: it is exceeded."""
    on_credits: bool
    """Whether the load takes credits."""
    empty_after_s: float | None
    """When credits run out if the load is repeated endlessly, from a full bucket; ``None``: never, or none are used."""


@dataclass(frozen=True)
class _Side:
    limit: Limit
    carries: bool
    headroom: float
    on_credits: bool
    empty_after_s: float | None


@dataclass(frozen=True)
class Requirement:
    """A demand as a limit's owner counts it: its course, and its percentile."""

    seconds: Series
    ops_per_s: Series
    bytes_per_s: Series
    ops_per_s_at_percentile: float
    bytes_per_s_at_percentile: float
    factor: float
    """What a limit must be of the percentile, 1.2 for 20 % of headroom."""

    @property
    def needed(self) -> tuple[float, float]:
        """Operations and bytes per second that limits must allow."""
        return self.ops_per_s_at_percentile * self.factor, self.bytes_per_s_at_percentile * self.factor


def asked_of(demand: Demand, charge: Charge, members: int = 1, chunk_kib: int | None = None) -> Requirement:
    """The part of ``demand`` for one of ``members`` that count it like this; their chunk is their unit if none is named.

    Sorting a day of seconds takes its time, so what was computed is kept with the demand.
    """
    chunk_bytes = charge.unit_bytes if chunk_kib is None else chunk_kib << 10
    key = (charge, members, chunk_bytes)
    if key not in demand.kept:
        load = demand.load.of_member(members, chunk_bytes)
        ops, size = load.charged(charge)
        ops_at, size_at = (quantile(series, load.seconds, demand.percentile) for series in (ops, size))
        least_ops, least_size = (least / members for least in (demand.least_iops, demand.least_mib_per_s * MIB))
        demand.kept[key] = Requirement(
            load.seconds,
            ops,
            size,
            max(ops_at, least_ops * charge.read_tokens),
            max(size_at, least_size),
            demand.factor,
        )
    requirement: Requirement = demand.kept[key]
    return requirement


def fit(iops: Rate, throughput: Rate, requirement: Requirement) -> Fit:
    """Hold what is asked against two rates."""
    sides = [
        _side("IOPS", iops, requirement.ops_per_s, requirement.ops_per_s_at_percentile, requirement),
        _side("throughput", throughput, requirement.bytes_per_s, requirement.bytes_per_s_at_percentile, requirement),
    ]
    nearest = min(sides, key=lambda side: (side.carries, side.headroom))
    ends = [side.empty_after_s for side in sides if side.empty_after_s is not None]
    return Fit(
        all(side.carries for side in sides),
        nearest.limit,
        nearest.headroom,
        any(side.on_credits for side in sides),
        min(ends, default=None),
    )


def _side(limit: Limit, rate: Rate, load: Series, at_percentile: float, requirement: Requirement) -> _Side:
    carries = at_least(rate.sustained, at_percentile * requirement.factor)
    room = _room(rate.sustained, at_percentile)
    if carries or not rate.bursts:
        return _Side(limit, carries, room, False, None)
    return _Side(limit, False, room, True, first_empty_s(rate, load * requirement.factor, requirement.seconds))


def at_least(limit: float, needed: float) -> bool:
    """Whether a limit is what is needed, but for the rounding of a sum."""
    return limit >= needed * (1 - _ROUNDING)


def _room(limit: float, value: float) -> float:
    return limit / value - 1 if value else math.inf
