"""The answer: what carries the measured load, what it costs, and what to mind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...base.catalog import Catalog
from ...base.text import money
from . import capped
from . import offers as instances
from .capped import CapEvidence
from .demand import Demand, beyond
from .offers import MEMORY_PER_VCPU_GIB, VCPUS_MIN, InstanceChoice, sustained_phrase
from .search import MEMBERS_MAX, Collapse, Market, VolumeChoice, offers_for

INSTANCES_MAX = 5
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
    choices: tuple[VolumeChoice, ...]
    """Volumes that carry the load without credits, the cheapest first, those without a price last; then RDS's storage; then arrays."""
    unfit: tuple[tuple[str, str], ...]
    """Types of which nothing carries it, with the reason."""
    collapses: tuple[Collapse, ...]
    """Volumes that live on credits, at the size that is needed anyway."""
    now: InstanceChoice | None
    """How the instance fares that was named."""
    instances: tuple[InstanceChoice, ...]
    """The cheapest that carry it."""
    capped: CapEvidence | None

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
    members_max: int = MEMBERS_MAX,
    present: str | None = None,
) -> Advice:
    """What carries ``demand``.

    ``size_bytes`` must fit on it; ``instance`` is the one that is there now, of which vCPUs and memory are kept; ``present`` is the
    volume that is there now, and what takes its place is not smaller and of its provider; ``among`` are patterns of types (``gp3``,
    ``azure-*``); without any, what AWS sells that keeps its content. :class:`InputError` when no type or no instance has such a name.
    """
    with Catalog() as catalog:
        now = None if instance is None else instances.judge(instance, demand)
        market = Market(
            present=None if present is None else catalog.resolve(present),
            size_bytes=size_bytes,
            among=among,
            members_max=members_max,
            volume_iops={} if now is None else now.volume_iops,
        )
        demand = demand if market.present is None else beyond(demand, market.present)
        offers = offers_for(catalog, demand, market)
        large_enough = instances.cheapest(catalog, demand, now, INSTANCES_MAX)
    return Advice(
        demand,
        size_bytes,
        offers.choices,
        offers.unfit,
        offers.collapses,
        now,
        tuple(large_enough),
        capped.find(demand),
    )


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
    if measured.seconds < SHORT_S and advice.collapses:
        notes.append("credits are computed as if the measured load were repeated endlessly; it is shorter than a day")
    if advice.now is not None and advice.now.burstable:
        notes.append(
            f"{advice.now.name} is burstable: its CPU is {sustained_phrase(advice.now)} in the long run, and no burstable type is offered"
        )
    if advice.size_bytes is None:
        notes.append(
            "no --size given: these sizes are for the I/O load only, not for your data; say how much must fit, --size 500GiB"
        )
    if any(choice.usd_per_month is None for choice in advice.choices):
        notes.append("a volume without a price has none in the catalogue")
    array = next((choice for choice in advice.choices if not choice.in_place), None)
    if array is not None and array is not advice.choices[0]:
        price = "" if array.usd_per_month is None else f" for {money(array.usd_per_month)} a month"
        notes.append(
            f"{array.spec} carries it too{price}: an array is made of new volumes and filled by a copy, and is lost with any one of its volumes"
        )
    elif array is not None:
        notes.append("an array is lost with any one of its volumes")
    if advice.now is None:
        notes.append(
            f"instances are chosen by their EBS limits, from {VCPUS_MIN} vCPUs and {MEMORY_PER_VCPU_GIB} GiB each on: --instance"
            " requires the vCPUs and memory of the present one instead"
        )
    notes.append("other volumes of the same instance share its limits, and are not in this measurement")
    return notes + list(measured.notes)
