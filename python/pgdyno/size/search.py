"""The cheapest volume of a type that carries a load, alone or as a RAID-0 of several.

More IOPS, more throughput and more GiB never carry less, and never cost less; so the least of each that suffices is looked
for by halving, where it does not follow from the catalogue's figures at once. What carries and what is legal is asked of
the engine each time: no rule of a provider stands here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pgdyno.analysis.durability import loss_of_stripes
from pgdyno.size.bucket import first_empty_s
from pgdyno.size.demand import MIB, Demand
from pgdyno.size.fit import Asked, Fit, asked_of, fit
from pgdyno.size.volume_type import GIB, VolumeType
from pgdyno.specification import Charge, VolumeSpec

if TYPE_CHECKING:
    from pgdyno.catalog import Catalog

RDS_PREFIX = "rds-"
"""Types whose stripes the provider makes itself; they cannot be put together by hand."""


@dataclass(frozen=True)
class Choice:
    """What one would buy: ``members`` times the same volume."""

    member: VolumeSpec
    members: int
    chunk_bytes: int
    fit: Fit

    @property
    def spec(self) -> str:
        """As it is written: ``gp3:size=100GiB,...``, or ``4xgp3:...,chunk=256KiB`` for a RAID-0."""
        if self.members == 1:
            return self.member.spec
        return f"{self.members}x{self.member.spec},chunk={self.chunk_bytes // 1024}KiB"

    @property
    def usd_per_month(self) -> float | None:
        """Price of all members."""
        price = self.member.usd_per_month
        return None if price is None else round(price * self.members, 2)

    @property
    def size_bytes(self) -> int:
        """Size of all members together."""
        return self.member.size_bytes * self.members

    @property
    def failures_per_year_max(self) -> float | None:
        """Share of such arrays that lose a member, and so everything, in a year; by the upper published rate."""
        rate = self.member.failures_per_year_max
        return None if rate is None else loss_of_stripes(rate, self.members)


@dataclass(frozen=True)
class Collapse:
    """What happens to a volume that lives on credits, at the size that is needed anyway."""

    member: VolumeSpec
    fit: Fit
    needed: tuple[float, float]
    """Operations and bytes per second that it should have, as it counts them."""
    steady_s: float | None
    """How long its credits last under this load without a pause; ``None``: without limit."""

    @property
    def reaches(self) -> bool:
        """Whether it has what is needed while credits last."""
        return (
            self.needed[0] <= self.member.charged_iops.maximum and self.needed[1] <= self.member.charged_bytes.maximum
        )


class Search:
    """The cheapest volume of one type, with this number of members, for a demand and a size."""

    def __init__(
        self, catalog: Catalog, kind: VolumeType, demand: Demand, size_bytes: int | None, members: int = 1
    ) -> None:
        self.catalog = catalog
        self.kind = kind
        self.demand = demand
        self.members = members
        self._kept: dict[Charge, Asked] = {}
        share = math.ceil((size_bytes or 0) / GIB / members)
        self.smallest_gib = max(kind.size_min_gib, share)

    @cached_property
    def _charge(self) -> Charge:
        """How the type counts; the same at every size."""
        return self.catalog.resolve(self.kind.name).charge

    def cheapest(self) -> Choice | None:
        """What carries the demand at the least price; ``None`` when nothing of this type does, or no size is large enough."""
        if self.smallest_gib > self.kind.size_max_gib:
            return None
        found = [choice for choice in (self._plain(), self._provisioned()) if choice is not None]
        return min(found, key=_by_price, default=None)

    def needed(self) -> tuple[float, float]:
        """Operations and bytes per second that one member must allow, as the type counts them."""
        return self._asked(self._charge).needed

    def collapse(self) -> Collapse | None:
        """How the smallest volume without anything provisioned fares, where it lives on credits; otherwise ``None``."""
        choice = self._choice(self._spec(self.smallest_gib))
        if choice is None or not (choice.member.charged_iops.bursts or choice.member.charged_bytes.bursts):
            return None
        if not choice.fit.on_credits:
            return None
        return Collapse(choice.member, choice.fit, self.needed(), self._steady_s(choice.member))

    def _steady_s(self, member: VolumeSpec) -> float | None:
        import numpy as np

        ops, size = self.needed()
        second = np.ones(1)
        ends = [
            first_empty_s(rate, np.array([needed]), second)
            for rate, needed in ((member.charged_iops, ops), (member.charged_bytes, size))
            if rate.bursts and needed > rate.sustained
        ]
        return min((end for end in ends if end is not None), default=None)

    def _plain(self) -> Choice | None:
        """With what comes with the size: gp2 and all types whose limits follow from it, and gp3 below its baseline."""
        return self._smallest_size(self._spec)

    def _provisioned(self) -> Choice | None:
        """With the IOPS and the throughput that are needed, where they can be chosen.

        First with the throughput that comes with the IOPS or the size: where it suffices it is the least there is.
        """
        kind = self.kind
        if "iops" not in kind.keys:
            return None
        ops, size = self.needed()
        throughput = max(kind.throughput_min_mib_per_s, _whole(size / MIB))
        ratio = kind.throughput_mib_per_s_per_iops
        iops = max(kind.iops_min, _whole(ops), _whole(throughput / ratio) if ratio else 0)
        for chosen in (None, throughput) if "throughput" in kind.keys else (None,):
            found = self._smallest_size(partial(self._spec, iops=iops, throughput=chosen))
            if found is None:
                more = self._enough_iops(iops, chosen)
                found = None if more is None else self._smallest_size(partial(self._spec, iops=more, throughput=chosen))
            if found is not None:
                return found
        return None

    def _enough_iops(self, least: int, throughput: int | None) -> int | None:
        """The fewest IOPS that carry the demand at the largest size: where throughput follows a rule of its own."""
        most = self.kind.iops_max
        if most is None or least > most:
            return None
        return smallest(least, most, lambda iops: self._carries(self._spec(self.kind.size_max_gib, iops, throughput)))

    def _smallest_size(self, spec: Callable[[int], str]) -> Choice | None:
        gib = smallest(self.smallest_gib, self.kind.size_max_gib, lambda gib: self._carries(spec(gib)))
        return None if gib is None else self._choice(spec(gib))

    def _carries(self, spec: str) -> bool:
        choice = self._choice(spec)
        return choice is not None and choice.fit.carries

    def _choice(self, spec: str) -> Choice | None:
        member = self.catalog.find(spec)
        if member is None:
            return None
        held = fit(member.charged_iops, member.charged_bytes, self._asked(member.charge))
        return Choice(member, self.members, member.charge.unit_bytes, held)

    def _asked(self, charge: Charge) -> Asked:
        """What one member is asked for; sorting a day of seconds takes its time, so it is kept."""
        if charge not in self._kept:
            self._kept[charge] = asked_of(self.demand, charge, self.members)
        return self._kept[charge]

    def _spec(self, gib: int, iops: int | None = None, throughput: int | None = None) -> str:
        spec = f"{self.kind.name}:size={gib}GiB"
        if iops is not None:
            spec += f",iops={iops}"
            if throughput is not None:
                spec += f",throughput={throughput}"
        return spec


def _by_price(one: Choice) -> tuple[bool, float, int, float]:
    """The cheapest first; without prices the one with the lowest limits."""
    return one.usd_per_month is None, one.usd_per_month or 0.0, one.size_bytes, one.member.charged_iops.maximum


def _whole(number: float) -> int:
    """The least whole number that is not smaller, but for the rounding of a sum."""
    return math.ceil(number * (1 - 1e-9))


def smallest(low: int, high: int, suffices: Callable[[int], bool]) -> int | None:
    """The least whole number from ``low`` to ``high`` that suffices, where every larger one does too; ``None``: none does."""
    if low > high:
        return None
    if suffices(low):
        return low
    if not suffices(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
