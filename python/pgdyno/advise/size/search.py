"""The one search that decides what to buy: the cheapest volume that carries a need with its margin.

``pgdyno size``, ``pgdyno diagnose``, ``pgdyno compare`` and every remedy ask :func:`offers_for`, so that the same need has the same
answer everywhere. It is sized by what a volume does always: what credits allow for a while carries nothing. What is legal, and what
it costs, the engine says (``crates/catalog/src/volume/offers.rs``); no rule of a provider stands here.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgdyno.analysis.durability import loss_of_stripes

from ...base.catalog import Catalog
from ...base.errors import InputError
from ...base.specification import Charge, VolumeSpec
from .demand import MIB, Demand, Fit, Requirement, asked_of, beyond, first_empty_s, fit

GIB = 1 << 30


@dataclass(frozen=True)
class VolumeType:
    """A type of volume and the range of its limits."""

    name: str
    aliases: frozenset[str]
    """Other names that a specification may have for it."""
    title: str
    summary: str
    provider: str
    """Who sells it: ``AWS EBS``, ``AWS RDS``, ..."""
    until: str | None
    """The last day on which it was sold as described, if that is past."""
    volatile: bool
    """Whether its content ends with its instance."""
    keys: frozenset[str]
    """What a specification may say of it: ``size``, ``iops``, ``throughput``."""
    size_min_gib: int
    size_max_gib: int
    iops_min: int
    iops_max: int | None
    iops_per_gib_max: float | None
    throughput_min_mib_per_s: int
    throughput_max_mib_per_s: int | None
    throughput_mib_per_s_per_iops: float | None
    bursts: bool
    """Whether it may do more than its limits while it has credits."""
    priced: bool
    """Whether the catalogue knows what it costs."""


def volume_types(catalog: Catalog) -> list[VolumeType]:
    """Every type that has limits, in the catalogue's order."""
    return [
        _type(volume_type)
        for volume_type in catalog.volume_types()
        if volume_type["iops"] is not None or volume_type["throughput_mib_per_s"] is not None
    ]


def _type(document: dict[str, Any]) -> VolumeType:
    iops, throughput, size = document["iops"] or {}, document["throughput_mib_per_s"] or {}, document["size_bytes"]
    return VolumeType(
        document["type"],
        frozenset(document["aliases"]),
        document["title"],
        document["summary"],
        document["provider"],
        document["until"],
        document["volatile"],
        frozenset(document["keys"]),
        size_min_gib=max(1, math.ceil(size["minimum"] / GIB)),
        size_max_gib=size["maximum"] // GIB,
        iops_min=iops.get("minimum") or 1,
        iops_max=iops.get("maximum"),
        iops_per_gib_max=document["iops_per_gib_max"],
        throughput_min_mib_per_s=throughput.get("minimum") or 1,
        throughput_max_mib_per_s=throughput.get("maximum"),
        throughput_mib_per_s_per_iops=document["throughput_mib_per_s_per_iops"],
        bursts=document["burst_iops_max"] is not None or document["burst_throughput_mib_per_s_max"] is not None,
        priced=document["default_usd_per_month"] is not None,
    )


RDS_PREFIX = "rds-"
"""Types whose stripes the provider makes itself; they cannot be put together by hand."""
MEMBERS = (1, 2, 4, 8)
"""Numbers of volumes that are tried. More than eight are hardly ever used for one file system."""
PROVIDERS = ("AWS EBS", "AWS RDS")
"""Whose volumes are looked at when nothing is named: those of the provider whose instances the catalogue has."""
MEMBERS_MAX = MEMBERS[-1]
UNIT_ROUNDS = 4
"""A type that counts in smaller units from some IOPS on (io1) is asked again in these; there are two units at most."""


@dataclass(frozen=True)
class Layout:
    """How equal volumes make up the one that is bought."""

    columns: int = 1
    copies: int = 1
    """2: RAID-10."""
    chunk_kib: int | None = None
    """None: the unit in which the type counts."""
    multi_az_ms: float | None = None
    """Round trip to a copy in another zone, which is paid for too."""

    @classmethod
    def of(cls, volume: VolumeSpec) -> Layout:
        """That of a volume or an array."""
        array = volume.document.get("array")
        if not array:
            return cls()
        columns = int(array["columns"])
        away = array.get("multi_az_ms")
        return cls(columns, int(array["copies"]), int(array["chunk_kib"]) if columns > 1 else None, away)

    @property
    def members(self) -> int:
        """Volumes, without those in another zone."""
        return self.columns * self.copies

    @property
    def paid(self) -> int:
        """Volumes that are paid for."""
        return self.members * (1 if self.multi_az_ms is None else 2)

    @property
    def is_redundant(self) -> bool:
        """Whether each byte is on more than one volume."""
        return self.copies > 1 or self.multi_az_ms is not None


@dataclass(frozen=True)
class VolumeChoice:
    """What one would buy: ``members`` times the same volume."""

    member: VolumeSpec
    layout: Layout
    fit: Fit
    in_place: bool = True
    """Whether the present volume may become it as it is; an array is filled by a copy."""

    @property
    def members(self) -> int:
        """How many volumes."""
        return self.layout.members

    @property
    def chunk_bytes(self) -> int:
        """Bytes of one column before the next one's turn."""
        return self.member.charge.unit_bytes if self.layout.chunk_kib is None else self.layout.chunk_kib << 10

    @property
    def spec(self) -> str:
        """As it is written: ``gp3:size=100GiB,...``, or ``4xgp3:...,chunk=256KiB`` for a RAID-0."""
        layout = self.layout
        level = "raid10:" if layout.copies > 1 else ""
        count = f"{layout.members}x" if layout.members > 1 else ""
        chunk = f",chunk={self.chunk_bytes // 1024}KiB" if layout.members > 1 else ""
        away = "" if layout.multi_az_ms is None else f",multi_az={layout.multi_az_ms}ms"
        return f"{level}{count}{self.member.spec}{chunk}{away}"

    @property
    def usd_per_month(self) -> float | None:
        """Price of all volumes."""
        price = self.member.usd_per_month
        return None if price is None else round(price * self.layout.paid, 2)

    @property
    def size_bytes(self) -> int:
        """What fits on it."""
        return self.member.size_bytes * self.layout.columns

    @property
    def failures_per_year_max(self) -> float | None:
        """Share of such volumes that are lost in a year; by the upper published rate. None of those with copies."""
        rate = self.member.failures_per_year_max
        return None if rate is None or self.layout.is_redundant else loss_of_stripes(rate, self.members)


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


@dataclass(frozen=True)
class Market:
    """Which volumes may be bought."""

    present: VolumeSpec | None = None
    """What there is: what takes its place is of the same provider and not smaller, since no volume can shrink; a volume stays one
    volume, and an array keeps its copies."""
    size_bytes: int | None = None
    """What must fit on it."""
    among: Sequence[str] = ()
    """Patterns of types: ``gp3``, ``rds-*``; none: what the provider sells that keeps its content."""
    members_max: int = MEMBERS_MAX
    """Volumes of a RAID-0, which is looked at where no single volume carries the need, and listed where it costs less."""
    volume_iops: Mapping[str, int] = field(default_factory=dict)
    """Type -> the most that one volume of it does on the instance, where that is less than it is bought with."""

    @property
    def least_bytes(self) -> int:
        """The least size."""
        return max(self.size_bytes or 0, 0 if self.present is None else self.present.size_bytes)

    def kinds(self, catalog: Catalog) -> list[VolumeType]:
        """Types that are looked at. :class:`InputError` where a pattern is not the name of a type."""
        kinds = volume_types(catalog)
        for pattern in self.among:
            if not any(_is_called(kind, pattern) for kind in kinds):
                raise InputError(
                    f"no volume type is called `{pattern}`",
                    remedy=f"there are {', '.join(kind.name for kind in kinds)}",
                )
        if self.among:
            return [kind for kind in kinds if any(_is_called(kind, pattern) for pattern in self.among)]
        providers = PROVIDERS if self.present is None else _providers(kinds, self.present)
        return [kind for kind in kinds if kind.provider in providers and not kind.volatile and kind.until is None]

    def layouts(self, kind: VolumeType) -> list[tuple[Layout, bool]]:
        """How volumes of a type may be put together, and whether that needs no copy."""
        here = Layout() if self.present is None else Layout.of(self.present)
        if here.is_redundant:
            return [(here, True)]
        layouts = [(Layout(), True)]
        if kind.name.startswith(RDS_PREFIX):
            return layouts
        if here.columns > 1:
            layouts.append((here, True))
        return layouts + [
            (Layout(members), False)
            for members in MEMBERS[1:]
            if members <= self.members_max and members != here.columns
        ]


@dataclass(frozen=True)
class Offers:
    """What carries a need."""

    choices: tuple[VolumeChoice, ...]
    """The cheapest first, those without a price last. What the present volume may become is before all arrays, and RDS's storage, which no
    instance of one's own has, behind the others.
    """
    unfit: tuple[tuple[str, str], ...] = ()
    """Types of which nothing carries it, with the reason."""
    collapses: tuple[Collapse, ...] = ()
    """Volumes that would live on credits, at the size that is needed anyway."""

    @property
    def best(self) -> VolumeChoice | None:
        """What to buy."""
        return self.choices[0] if self.choices else None


def offers_for(catalog: Catalog, demand: Demand, market: Market) -> Offers:
    """What carries ``demand`` with its headroom, of each type the cheapest. :class:`InputError` where no type has such a name."""
    kinds = market.kinds(catalog)
    demand = demand if market.present is None else beyond(demand, market.present)
    every = [
        Search(catalog, kind, demand, market.least_bytes, layout, in_place, market.volume_iops.get(kind.name))
        for kind in kinds
        for layout, in_place in market.layouts(kind)
    ]
    results = _found(catalog, [search for search in every if search.in_place])
    if market.present is None or not results:
        results += _found(catalog, [search for search in every if not search.in_place])
    choices, unfit, collapses = list[VolumeChoice](), list[tuple[str, str]](), list[Collapse]()
    for kind in kinds:
        kept = _worth_listing([choice for choice in results if choice.member.type == kind.name])
        choices += kept
        alone = next(search for search in every if search.kind is kind)
        if not kept:
            unfit.append((kind.name, alone.why_not()))
        collapse = alone.collapse()
        if collapse is not None:
            collapses.append(collapse)
    return Offers(tuple(sorted(choices, key=_rank)), tuple(unfit), tuple(collapses))


def _found(catalog: Catalog, searches: Sequence[Search]) -> list[VolumeChoice]:
    return [choice for choice in _cheapest(catalog, searches) if choice is not None]


def _worth_listing(choices: Sequence[VolumeChoice]) -> list[VolumeChoice]:
    """The cheapest that needs no copy, and the cheapest array where that costs less, or nothing else carries it."""
    in_place = min((choice for choice in choices if choice.in_place), key=_rank, default=None)
    arrays = [
        choice for choice in choices if not choice.in_place and (in_place is None or _price(choice) < _price(in_place))
    ]
    return [item for item in (in_place, min(arrays, key=_rank, default=None)) if item is not None]


def _rank(choice: VolumeChoice) -> tuple[bool, bool, bool, float, int, str]:
    """What needs no copy, volumes of an instance's own before those of RDS, the cheapest."""
    usd = choice.usd_per_month
    of_rds = choice.member.type.startswith(RDS_PREFIX)
    return not choice.in_place, of_rds, usd is None, usd or 0.0, choice.members, choice.spec


def _price(choice: VolumeChoice) -> float:
    return math.inf if choice.usd_per_month is None else choice.usd_per_month


def _providers(kinds: Sequence[VolumeType], present: VolumeSpec) -> tuple[str, ...]:
    return tuple(kind.provider for kind in kinds if kind.name == present.type)


def _is_called(kind: VolumeType, pattern: str) -> bool:
    """By its name or another one: AWS says io2 to io2bx."""
    return any(fnmatch.fnmatchcase(name, pattern) for name in (kind.name, *kind.aliases))


class Search:
    """The cheapest volume of one type and layout for a demand and a size."""

    def __init__(
        self,
        catalog: Catalog,
        kind: VolumeType,
        demand: Demand,
        size_bytes: int | None,
        layout: Layout | None = None,
        in_place: bool = True,  # with the layout that it belongs to
        iops_max: int | None = None,
    ) -> None:
        self.catalog = catalog
        self.kind = kind
        self.demand = demand
        self.layout = layout or Layout()
        self.in_place = in_place
        self.iops_max = iops_max
        self._size_bytes = size_bytes or 0
        share = math.ceil(self._size_bytes / GIB / self.layout.columns)
        self.smallest_gib = max(kind.size_min_gib, share)

    @property
    def charge(self) -> Charge:
        """How the type counts without being asked for more."""
        return self.catalog.resolve(self.kind.name).charge

    def cheapest(self) -> VolumeChoice | None:
        """What carries the demand at the least price; ``None`` when nothing of this type does, or no size is large enough."""
        return _cheapest(self.catalog, [self])[0]

    def asked(self, charge: Charge) -> Requirement:
        """What one column is asked for."""
        return asked_of(self.demand, charge, self.layout.columns, self.layout.chunk_kib)

    def needed(self) -> tuple[float, float]:
        """Operations and bytes per second that one column must allow, as the type counts them."""
        return self.asked(self.charge).needed

    def collapse(self) -> Collapse | None:
        """How the smallest volume without anything provisioned fares, where it would live on credits; otherwise ``None``."""
        member = self.catalog.find(f"{self.kind.name}:size={self.smallest_gib}GiB") if self.kind.bursts else None
        if member is None:
            return None
        held = fit(member.charged_iops, member.charged_bytes, self.asked(member.charge))
        if held.carries or not held.on_credits:
            return None
        return Collapse(member, held, self.needed(), self._steady_s(member))

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

    def question(self, charge: Charge) -> dict[str, object] | None:
        """What the engine is asked for one member; None where the instance allows it less, or no size is large enough."""
        ops, size = self.asked(charge).needed
        too_much = self.iops_max is not None and ops / charge.read_tokens > self.iops_max
        if too_much or self.smallest_gib > self.kind.size_max_gib:
            return None
        return {"type": self.kind.name, "least_bytes": self.smallest_gib * GIB, "ops_per_s": ops, "bytes_per_s": size}

    def choice(self, member: VolumeSpec) -> VolumeChoice:
        """A member that was found, compared with the load."""
        held = fit(member.charged_iops, member.charged_bytes, self.asked(member.charge))
        return VolumeChoice(member, self.layout, held, self.in_place)

    def why_not(self) -> str:
        """Why nothing of the type carries it."""
        kind = self.kind
        if self._size_bytes > kind.size_max_gib * GIB:
            return f"is at most {kind.size_max_gib:,} GiB"
        ops, size = self.needed()
        has, results = [], []
        if kind.iops_max is not None:
            has.append(f"{min(kind.iops_max, self.iops_max or kind.iops_max):,} IOPS")
            results.append(f"{ops:,.0f} IOPS")
        if kind.throughput_max_mib_per_s is not None:
            has.append(f"{kind.throughput_max_mib_per_s:,} MiB/s")
            results.append(f"{size / MIB:,.0f} MiB/s")
        return f"has at most {' and '.join(has)}; {' and '.join(results)} are needed, as it counts them"


def _cheapest(catalog: Catalog, searches: Sequence[Search]) -> list[VolumeChoice | None]:
    """For each search its choice. The engine is asked for all of them at once."""
    cheapest: list[VolumeChoice | None] = [None] * len(searches)
    open_ = dict.fromkeys(range(len(searches)))
    charges = [search.charge for search in searches]
    for _ in range(UNIT_ROUNDS):
        if not open_:
            break
        questions = {place: searches[place].question(charges[place]) for place in open_}
        documents = {place: question for place, question in questions.items() if question is not None}
        open_ = {}
        for (place, _), member in zip(documents.items(), catalog.cheapest_all(documents.values()), strict=True):
            if member is None:
                continue
            choice = searches[place].choice(member)
            if choice.fit.carries:
                cheapest[place] = choice
            elif member.charge != charges[place]:
                charges[place] = member.charge
                open_[place] = None
    return cheapest
