"""What could have been bought instead of what a run stood on: recorded with the run, so that a report made later can name
a remedy and its price without a catalogue.

A ladder rather than everything: of the same type more IOPS, more throughput, both, or more GiB where limits follow from
them; of every other type of the provider the same capacity with as much as there is, and more. What another offer beats
in everything is left out.
"""

from __future__ import annotations

import math
import re
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from pgdyno import _engine
from pgdyno.analysis.binding.bought import PAGE_BYTES, Bought
from pgdyno.analysis.cost import HOURS_PER_MONTH
from pgdyno.analysis.durability import loss_of_volume
from pgdyno.errors import InputError
from pgdyno.size.offer import VolumeType, volume_types
from pgdyno.size.search import RDS_PREFIX
from pgdyno.store.record import InstanceOfferRecord, InstanceRecord, OfferRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MIB = 1 << 20
STEPS = (1.5, 2.0, 4.0, 8.0)
"""Times what there is: a half more is the least that is worth moving for, eight times is where other limits are met."""
_NUMBER = {key: re.compile(rf"(?<=[:,]){key}=(\d+)") for key in ("iops", "throughput")}
_SIZE = re.compile(r"(?<=[:,])size=(\d+)(KiB|MiB|GiB|TiB)")
_CREDITS = re.compile(r",credits=[^,]+")
"""What is bought begins with full credits, whatever the measured volume began with."""


def volume_offers(resolved: Mapping[str, Any]) -> tuple[OfferRecord, ...]:
    """Beside a resolved specification, the cheapest first; empty for what nobody sells."""
    if resolved.get("usd_per_month") is None or (resolved.get("limits") or {}).get("iops") is None:
        return ()
    return _beside(str(resolved["spec"]))


@cache
def _beside(spec: str) -> tuple[OfferRecord, ...]:
    resolved = _resolve(spec)
    kinds = [] if resolved is None else [kind for kind in volume_types() if kind.name == resolved["type"]]
    if resolved is None or not kinds:
        return ()
    others = [kind for kind in _kinds() if kind.provider == kinds[0].provider and kind.name != kinds[0].name]
    specs = dict.fromkeys([*_of_same_type(resolved), *(s for kind in others for s in _of_type(kind, resolved))])
    return undominated(offer for one in specs if (offer := _offer(one)) is not None)


@cache
def _kinds() -> tuple[VolumeType, ...]:
    """What is for sale today and keeps its content."""
    return tuple(kind for kind in volume_types() if kind.until is None and not kind.volatile and kind.priced)


@cache
def _resolve(spec: str) -> dict[str, Any] | None:
    """The specification resolved; None where the catalogue's rules refuse it."""
    try:
        return _engine.run_json(["volume", "spec", spec])
    except InputError:
        return None


def _of_same_type(resolved: Mapping[str, Any]) -> Iterator[str]:
    """More of what can be chosen, in an array of every member; more GiB where nothing can be."""
    spec = _CREDITS.sub("", str(resolved["spec"]))
    keys = [key for key, pattern in _NUMBER.items() if pattern.search(spec)]
    for step in STEPS:
        if not keys:
            yield _SIZE.sub(partial(_grown, "size", step), spec)
        for chosen in ([key] for key in keys):
            yield _times(spec, chosen, step)
        if len(keys) > 1:
            yield _times(spec, keys, step)


def _times(spec: str, keys: Iterable[str], step: float) -> str:
    for key in keys:
        spec = _NUMBER[key].sub(partial(_grown, key, step), spec)
    return spec


def _grown(key: str, step: float, found: re.Match[str]) -> str:
    unit = found[2] if found.re is _SIZE else ""
    return f"{key}={math.ceil(int(found[1]) * step)}{unit}"


def _of_type(kind: VolumeType, resolved: Mapping[str, Any]) -> Iterator[str]:
    """A single volume of another type, as large, with as many IOPS or more."""
    if kind.name.startswith(RDS_PREFIX) and resolved.get("array") is not None:
        return
    limits = resolved["limits"]
    base = f"{kind.name}:size={math.ceil(int(resolved['size_bytes']) / MIB)}MiB"
    yield base
    if "iops" not in kind.keys:
        return
    for step in (1.0, *STEPS):
        iops = f"{base},iops={max(kind.iops_min, math.ceil(limits['iops'] * step))}"
        yield iops
        size = limits.get("throughput_mib_per_s")
        if "throughput" in kind.keys and size is not None:
            yield f"{iops},throughput={max(kind.throughput_min_mib_per_s, math.ceil(size * step))}"


def _offer(spec: str) -> OfferRecord | None:
    resolved = _resolve(spec)
    bought = None if resolved is None else Bought.of(resolved)
    if resolved is None or bought is None or resolved["usd_per_month"] is None:
        return None
    usual = bought.usual
    return OfferRecord(
        spec=bought.spec,
        usd_per_month=resolved["usd_per_month"],
        iops=None if bought.iops is None else bought.iops.sustained,
        mib_per_s=None if bought.mib_per_s is None else bought.mib_per_s.sustained,
        read_ms=None if usual is None else usual.ms(PAGE_BYTES, 0.0),
        write_ms=None if usual is None else usual.ms(PAGE_BYTES, 1.0),
        loss_per_year_max=None if (loss := loss_of_volume(resolved)) is None else loss.high,
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
    """A limit that is not there is endless, and a time or a loss that nobody published counts as the worst."""
    return math.inf if value is None else value


def with_offers(instance: InstanceRecord) -> InstanceRecord:
    """An instance's record with its price, and with what could be had instead; as it is without a type."""
    found = next((one for one in _instances() if one["instance"] == instance.type), None)
    if instance.type is None or found is None:
        return instance
    return instance.model_copy(
        update={"usd_per_month": _usd_per_month(found), "offers": tuple(_instances_beside(instance.type))}
    )


@cache
def _instances_beside(name: str) -> tuple[InstanceOfferRecord, ...]:
    """The cheapest for each step of EBS limits and of vCPUs; of several with the same price the first by name."""
    here = next(one for one in _instances() if one["instance"] == name)
    known = sorted(
        (one for one in _instances() if _can_replace(one, here)),
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


@cache
def _instances() -> tuple[dict[str, Any], ...]:
    return tuple(_engine.run_json(["instance", "types"])["types"])
