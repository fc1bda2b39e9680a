"""What could have been bought instead of what a run stood on: recorded with the run, so that a report made later can name
a remedy and its price without a catalogue.

The catalogue gives a ladder: more of the same type, and other types of the provider with as much and more. An offer that another
one beats in everything is left out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.binding.bought import PAGE_BYTES, Bought
from pgdyno.analysis.cost import HOURS_PER_MONTH
from pgdyno.analysis.durability import loss_of_volume
from pgdyno.store.record import InstanceOfferRecord, InstanceRecord, OfferRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pgdyno.catalog import Catalog
    from pgdyno.specification import VolumeSpec

STEPS = (1.5, 2.0, 4.0, 8.0)
"""Times what there is: a half more is the least that is worth moving for, eight times is where other limits are met."""


def volume_offers(catalog: Catalog, volume: VolumeSpec) -> tuple[OfferRecord, ...]:
    """Beside a volume or an array, the cheapest first; empty if the provider does not sell it."""
    return undominated(_offer(one) for one in catalog.beside(volume, STEPS))


def _offer(volume: VolumeSpec) -> OfferRecord:
    bought = Bought.of(volume.document)
    assert bought is not None and volume.usd_per_month is not None, "what is not for sale is not offered"
    usual = bought.usual
    return OfferRecord(
        spec=volume.spec,
        usd_per_month=volume.usd_per_month,
        iops=None if volume.iops is None else volume.iops.sustained,
        mib_per_s=None if volume.mib_per_s is None else volume.mib_per_s.sustained,
        read_ms=None if usual is None else usual.ms(PAGE_BYTES, 0.0),
        write_ms=None if usual is None else usual.ms(PAGE_BYTES, 1.0),
        loss_per_year_max=None if (loss := loss_of_volume(volume.document)) is None else loss.high,
    )


def undominated(offers: Iterable[OfferRecord]) -> tuple[OfferRecord, ...]:
    """Those that no other one beats or equals in price, limits and latency, the cheapest first."""
    kept: list[OfferRecord] = []
    for one in sorted(dict.fromkeys(offers), key=lambda offer: (offer.usd_per_month, offer.spec)):
        if not any(_at_least(other, one) for other in kept):
            kept = [other for other in kept if not (other.usd_per_month >= one.usd_per_month and _at_least(one, other))]
            kept.append(one)
    return tuple(kept)


def _at_least(one: OfferRecord, other: OfferRecord) -> bool:
    """Whether one offers everything that another does; the prices are the caller's."""
    more = all(_known(getattr(one, name)) >= _known(getattr(other, name)) for name in ("iops", "mib_per_s"))
    less = ("read_ms", "write_ms", "loss_per_year_max")
    return more and all(_known(getattr(one, name)) <= _known(getattr(other, name)) for name in less)


def _known(value: float | None) -> float:
    """A limit that is not there is endless, and an unpublished time or loss counts as the worst."""
    return math.inf if value is None else value


def with_offers(catalog: Catalog, instance: InstanceRecord) -> InstanceRecord:
    """An instance's record with its price and its alternatives; as it is without a type."""
    types = catalog.instance_types()
    found = next((one for one in types if one["instance"] == instance.type), None)
    if instance.type is None or found is None:
        return instance
    return instance.model_copy(
        update={"usd_per_month": _usd_per_month(found), "offers": tuple(_instances_beside(found, types))}
    )


def _instances_beside(here: Mapping[str, Any], types: Iterable[Mapping[str, Any]]) -> tuple[InstanceOfferRecord, ...]:
    """The cheapest for each step of EBS limits and of vCPUs; of several with the same price the first by name."""
    known = sorted(
        (one for one in types if _can_replace(one, here)),
        key=lambda one: (one["usd_per_hour"], one["instance"]),
    )
    chosen = [
        next((one for one in known if _figure(one, key) >= step * _figure(here, key)), None)
        for key in ("baseline_iops", "baseline_mib_per_s", "vcpus")
        for step in STEPS
        if _figure(here, key) > 0
    ]
    names = dict.fromkeys(one["instance"] for one in chosen if one is not None)
    return tuple(_instance_offer(one) for one in known if one["instance"] in names)


def _can_replace(one: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Whether it has a price, EBS limits of its own, and at least the vCPUs and the memory, of the same architecture."""
    return bool(
        one["usd_per_hour"] is not None
        and one["ebs"]
        and one["ebs"]["always"]
        and one["arch"] == here["arch"]
        and one["vcpus"] >= here["vcpus"]
        and one["memory_bytes"] >= here["memory_bytes"]
    )


def _figure(one: Mapping[str, Any], key: str) -> float:
    return float(one["vcpus"] if key == "vcpus" else (one["ebs"] or {}).get(key) or 0.0)


def _instance_offer(one: Mapping[str, Any]) -> InstanceOfferRecord:
    usd = _usd_per_month(one)
    assert usd is not None, "types without a price were left out"
    return InstanceOfferRecord(
        type=one["instance"],
        usd_per_month=usd,
        vcpus=one["vcpus"],
        iops=float(one["ebs"]["baseline_iops"]),
        mib_per_s=float(one["ebs"]["baseline_mib_per_s"]),
    )


def _usd_per_month(one: Mapping[str, Any]) -> float | None:
    usd = one["usd_per_hour"]
    return None if usd is None else round(usd * HOURS_PER_MONTH, 2)
