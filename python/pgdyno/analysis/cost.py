"""The cost of each arm per month, per million transactions and for the same capacity; and the arms that no cheaper arm beats.

Prices are the list prices of the volumes, recorded with the run, so a later report shows the same ones. They exclude the instance,
snapshots and transfer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary, Replicate
from pgdyno.analysis.durability import Loss
from pgdyno.analysis.factors import Factor

from ..results.record import PriceRecord
from . import durability
from .figures import DATA
from .run import TPS, headline_of
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


HOURS_PER_MONTH = 730.0
"""As providers' own price examples count: 8,760 hours of a year by twelve."""
SECONDS_PER_MONTH = HOURS_PER_MONTH * 3600
GIB = 1 << 30
_LOAD = "workload."
"""Factors of this table change what is asked. Arms that are asked for different things are not alternatives."""


@dataclass(frozen=True)
class ArmCost:
    """The price of one arm, what it buys, and how long it lasts. A figure is None where something it needs is not known."""

    usd_per_month: float | None
    size_bytes: int | None
    """Capacity of all its volumes together."""
    equal_size_bytes: int | None
    """Capacity of the largest arm."""
    usd_per_month_at_equal_size: float | None
    """If it had the capacity of the largest arm and the same IOPS and throughput."""
    limits_follow_size: bool
    """Whether its limits grow with its size, so that at the equal size it would be a faster volume than was measured."""
    usd_per_million_transactions: float | None
    """At the TPS that was measured, all month; None of loads."""
    usd_per_million_transactions_at_equal_size: float | None
    loss_per_year: Loss | None
    """Probability that its data are lost within a year."""
    ends_with_its_instance: bool
    """Whether what it keeps ends when the instance stops."""
    front: Mapping[str, bool]
    """The headline's name and ``latency_ms_p99`` -> whether it is on the cost front of that; empty without a price."""


def costs(arms: Sequence[ArmSummary], factors: Sequence[Factor]) -> dict[int, ArmCost]:
    """Index of an arm -> its cost, beside all others."""
    sizes = {arm.index: _size_bytes(arm) for arm in arms}
    known = [size for size in sizes.values() if size is not None]
    largest = max(known) if known and len(known) == len(arms) else None
    fronts = {
        arms[0].metric.name: _front(arms, factors, _speed),
        "latency_ms_p99": _front(arms, factors, _one_over_p99),
    }
    return {arm.index: _cost(arm, sizes[arm.index], largest, fronts) for arm in arms}


def _cost(arm: ArmSummary, size: int | None, largest: int | None, fronts: Mapping[str, frozenset[int]]) -> ArmCost:
    usd, price = arm.usd_per_month, _price(arm)
    equal = _at_size(usd, price, size, largest)
    by_role = {role: volume.resolved for role, volume in arm.volumes.items()}
    return ArmCost(
        usd_per_month=usd,
        size_bytes=size,
        equal_size_bytes=largest,
        usd_per_month_at_equal_size=equal,
        limits_follow_size=largest not in (None, size) and price is not None and price.limits_follow_size,
        usd_per_million_transactions=_per_million(usd, arm),
        usd_per_million_transactions_at_equal_size=_per_million(equal, arm),
        loss_per_year=None if arm.modified else durability.loss_of_volumes(by_role),
        ends_with_its_instance=durability.ends_with_its_instance(by_role),
        front={} if usd is None else {name: arm.index in members for name, members in fronts.items()},
    )


def _per_million(usd_per_month: float | None, arm: ArmSummary) -> float | None:
    """None for a load: it does not run all month."""
    if usd_per_month is None or arm.metric is not TPS or arm.headline.mean <= 0:
        return None
    return usd_per_month / (arm.headline.mean * SECONDS_PER_MONTH) * 1e6


def _at_size(usd: float | None, price: PriceRecord | None, size: int | None, largest: int | None) -> float | None:
    """The price with so much more capacity on the data's volume; rounded to cents, as prices are."""
    if usd is None or size is None or largest is None or size == largest:
        return usd if size is not None and size == largest else None
    return None if price is None else round(usd + (largest - size) / GIB * price.usd_per_gib_month, 2)


def _size_bytes(arm: ArmSummary) -> int | None:
    sizes = [volume.resolved.get("size_bytes") for volume in arm.volumes.values()]
    return None if not sizes or None in sizes else sum(int(size) for size in sizes if size is not None)


def _price(arm: ArmSummary) -> PriceRecord | None:
    volumes = arm.replicates[0].figures.record.world.volumes
    return volumes[DATA].price if DATA in volumes else None


def _front(
    arms: Sequence[ArmSummary], factors: Sequence[Factor], speed: Callable[[Replicate], float]
) -> frozenset[int]:
    """The front of each load: of arms that differ in what is asked, none is an alternative to another."""
    by_load: dict[tuple[int, ...], list[ParetoPoint]] = {}
    for arm in arms:
        usd, values = arm.usd_per_month, _by_block(arm, speed)
        if usd is not None and values:
            load = tuple(
                level for factor, level in zip(factors, arm.levels, strict=True) if factor.name.startswith(_LOAD)
            )
            by_load.setdefault(load, []).append(ParetoPoint(arm.index, usd, values))
    return frozenset(index for offered in by_load.values() for index in front(offered))


def _by_block(arm: ArmSummary, speed: Callable[[Replicate], float]) -> dict[Block, float]:
    values = {replicate.block: speed(replicate) for replicate in arm.replicates}
    return {block: value for block, value in values.items() if value > 0 and math.isfinite(value)}


def _speed(replicate: Replicate) -> float:
    """What a buyer wants more of: the headline, or one over it."""
    value = replicate.headline
    return headline_of(replicate.figures.record).gain(value) if value > 0 else 0.0


def _one_over_p99(replicate: Replicate) -> float:
    p99 = replicate.figures.latency_ms.percentile(99)
    return 1 / p99 if p99 else 0.0
