"""The answer: what carries the measured load, what it costs, and what to mind."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.catalog import Catalog
from pgdyno.errors import InputError
from pgdyno.size import capped, instances
from pgdyno.size.capped import Capped
from pgdyno.size.demand import MIB, Demand
from pgdyno.size.instances import InstanceChoice
from pgdyno.size.search import RDS_PREFIX, Choice, Collapse, Search
from pgdyno.size.volume_type import VolumeType, volume_types

MEMBERS = (1, 2, 4, 8)
"""Numbers of volumes that are tried. RDS takes four; more than eight are hardly ever used for one file system."""
INSTANCES_MAX = 5
PROVIDERS = ("AWS EBS", "AWS RDS")
"""Whose volumes are looked at when none are named: those of the provider whose instances the catalogue has."""
OLDER = ("gp3-2023",)
"""Of what can no longer be had, gp3's first generation is looked at too: AWS Outposts keep to it (Amazon EBS User Guide, late
2025), and what was built around its limits is still around."""
COARSE_S = 60.0
"""Longer intervals hide peaks: a volume's buckets hold a second's worth of its rate, not a minute's."""
SHORT_S = 24 * 3600.0
"""Credits are earned over hours: a measurement that is shorter than a day may have seen none of its quiet hours."""


@dataclass(frozen=True)
class Advice:
    """What to buy for a demand."""

    demand: Demand
    size_bytes: int | None
    """Required capacity; ``None`` if it was not given."""
    choices: tuple[Choice, ...]
    """Volumes and arrays that carry the load, the cheapest first, those without a price last."""
    unfit: tuple[tuple[str, str], ...]
    """Types of which nothing carries it, with the reason."""
    collapses: tuple[Collapse, ...]
    """Volumes that live on credits, at the size that is needed anyway."""
    now: InstanceChoice | None
    """How the instance fares that was named."""
    instances: tuple[InstanceChoice, ...]
    """The cheapest that carry it."""
    capped: Capped | None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must mind."""
        return tuple(_notes(self))


def advise(
    demand: Demand,
    *,
    size_bytes: int | None = None,
    instance: str | None = None,
    among: Sequence[str] = (),
    members_max: int = MEMBERS[-1],
) -> Advice:
    """What carries ``demand``.

    ``size_bytes`` must fit on it; ``instance`` is the one that is there now, of which vCPUs and memory are kept; ``among``
    are patterns of types (``gp3``, ``azure-*``); without any, what AWS sells that keeps its content. :class:`InputError` when no type or no
    instance has such a name.
    """
    choices, unfit, collapses = list[Choice](), list[tuple[str, str]](), list[Collapse]()
    with Catalog() as catalog:
        for kind in _kinds(catalog, among):
            found, single = _of_type(catalog, kind, demand, size_bytes, members_max)
            choices += found
            if not found:
                unfit.append((kind.name, _why_not(single, size_bytes)))
            collapse = single.collapse()
            if collapse is not None and found:
                collapses.append(collapse)
        now = None if instance is None else instances.judge(instance, demand)
        large_enough = instances.cheapest(catalog, demand, now, INSTANCES_MAX)
    choices.sort(key=lambda one: (one.usd_per_month is None, one.usd_per_month or 0.0, one.members, one.spec))
    return Advice(
        demand,
        size_bytes,
        tuple(choices),
        tuple(unfit),
        tuple(collapses),
        now,
        tuple(large_enough),
        capped.find(demand),
    )


def _kinds(catalog: Catalog, among: Sequence[str]) -> list[VolumeType]:
    kinds = volume_types(catalog)
    if not among:
        return [
            kind
            for kind in kinds
            if kind.provider in PROVIDERS and not kind.volatile and (kind.until is None or kind.name in OLDER)
        ]
    for pattern in among:
        if not any(_is_called(kind, pattern) for kind in kinds):
            raise InputError(
                f"no volume type is called `{pattern}`", remedy=f"there are {', '.join(kind.name for kind in kinds)}"
            )
    return [kind for kind in kinds if any(_is_called(kind, pattern) for pattern in among)]


def _is_called(kind: VolumeType, pattern: str) -> bool:
    """By its name or another one: AWS says io2 to io2bx."""
    return any(fnmatch.fnmatchcase(name, pattern) for name in (kind.name, *kind.aliases))


def _of_type(
    catalog: Catalog, kind: VolumeType, demand: Demand, size_bytes: int | None, members_max: int
) -> tuple[list[Choice], Search]:
    """The cheapest single volume, and the cheapest array where it is cheaper or the only one."""
    single = Search(catalog, kind, demand, size_bytes)
    alone = single.cheapest()
    best = alone
    if not kind.name.startswith(RDS_PREFIX):
        for members in MEMBERS[1:]:
            array = Search(catalog, kind, demand, size_bytes, members).cheapest() if members <= members_max else None
            if array is not None and (best is None or _cheaper(array, best)):
                best = array
    return [one for one in dict.fromkeys((alone, best)) if one is not None], single


def _cheaper(left: Choice, right: Choice) -> bool:
    return (
        left.usd_per_month is not None and right.usd_per_month is not None and left.usd_per_month < right.usd_per_month
    )


def _why_not(search: Search, size_bytes: int | None) -> str:
    kind = search.kind
    if size_bytes is not None and size_bytes > kind.size_max_gib << 30:
        return f"is at most {kind.size_max_gib:,} GiB"
    ops, size = search.needed()
    has, asked = [], []
    if kind.iops_max is not None:
        has.append(f"{kind.iops_max:,} IOPS")
        asked.append(f"{ops:,.0f} IOPS")
    if kind.throughput_max_mib_per_s is not None:
        has.append(f"{kind.throughput_max_mib_per_s:,} MiB/s")
        asked.append(f"{size / MIB:,.0f} MiB/s")
    return f"has at most {' and '.join(has)}; {' and '.join(asked)} are asked, as it counts them"


def _notes(advice: Advice) -> list[str]:
    demand = advice.demand
    measured = demand.measured
    notes = []
    if advice.capped is not None:
        notes.append(f"{advice.capped.sentence}. What was wanted is not in the file: this is the least that will do")
    longest = max(sample.seconds for sample in measured.samples)
    if longest > COARSE_S:
        notes.append(
            f"an interval is {longest:g} s long, which hides peaks within it; leave more headroom, or measure finer"
        )
    if demand.percentile < 100 and len(measured.samples) * (100 - demand.percentile) < 100:
        notes.append(
            f"{len(measured.samples)} intervals are too few for the {demand.percentile:g}th percentile: their maximum is taken"
        )
    used = advice.choices + ((advice.now,) if advice.now else ()) + advice.instances
    if measured.seconds < SHORT_S and any(one.fit.on_credits for one in used):
        notes.append("credits are computed as if the measured load were repeated endlessly; it is shorter than a day")
    if advice.size_bytes is None:
        notes.append(
            "nothing was said of how much must fit: --size 500GiB; sizes here are the least that carry the load"
        )
    if any(one.usd_per_month is None for one in advice.choices):
        notes.append("what a volume without a price costs is not in the catalogue")
    if any(one.members > 1 for one in advice.choices):
        notes.append("an array is lost with any one of its volumes")
    if advice.now is None:
        notes.append(
            "instances are chosen by their EBS limits alone: --instance also requires the vCPUs and memory of the present one"
        )
    notes.append("other volumes of the same instance share its limits, and are not in this measurement")
    return notes + list(measured.notes)
