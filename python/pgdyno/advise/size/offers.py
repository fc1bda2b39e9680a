"""What could be bought instead of what a run stood on: recorded with the run, so that a report made later can name a remedy and its
price without a catalogue.

Of volumes it is what :mod:`pgdyno.advise.size.search` finds for the load that the run has measured: each carries it with the usual margin, and
the first is the cheapest. Of instances it is the cheapest that carries the load, and
the cheapest with more and more vCPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from pgdyno.analysis.binding.evidence import devices_of
from pgdyno.analysis.cost import HOURS_PER_MONTH

from ...analysis.binding.device import PAGE_BYTES, DeviceActivity, ProvisionedVolume, Usual
from ...base import engine
from ...base.catalog import Catalog
from ...base.errors import InputError
from ...base.specification import UNLIMITED, Charge, Rate, VolumeSpec
from ...results import StoredRun
from ...results.record import InstanceOfferRecord, InstanceRecord, OfferRecord, RunRecord, VolumeRecord
from .demand import MIB, Demand, Fit, Requirement, asked_of, at_least, demand_of, fit
from .measured import DeviceSamples, IntervalSample
from .search import RDS_PREFIX, Market, VolumeChoice, offers_for, volume_types

VCPUS_MIN = 2
"""With one vCPU a checkpoint, autovacuum and a session take turns."""
MEMORY_PER_VCPU_GIB = 4
"""The least that Amazon RDS gives a class of its general purpose (db.m) families: what has less is made for computing."""
BURST_S = 30 * 60.0
DAY_S = 24 * 3600.0
CHARGE = Charge(256 << 10)
"""EBS counts an operation of up to 256 KiB as one (Amazon EC2 User Guide, ebs-io-characteristics.md, 15 June 2023)."""


@dataclass(frozen=True)
class InstanceChoice:
    """An instance type and how it fares."""

    name: str
    vcpus: int
    memory_bytes: int
    arch: str
    usd_per_month: float | None
    price_region: str | None
    iops: Rate
    throughput: Rate
    """Bytes per second."""
    fit: Fit
    document: Mapping[str, Any] = field(repr=False, compare=False)
    """As the engine lists it."""

    @property
    def burstable(self) -> bool:
        """Whether its CPU is paid with credits."""
        return bool(self.document["burstable"])

    @property
    def volume_iops(self) -> Mapping[str, int]:
        """Volume type -> the most that one of it does there; absent where that is what it is bought with."""
        return self.document["volume_iops"] or {}


def judge(name: str, demand: Demand) -> InstanceChoice:
    """How one instance type fares. ``vcpus=4,memory=16GiB`` has no limits. :class:`InputError` when there is no such type."""
    return _choice(engine.run_json(["instance", "spec", name]), asked_of(demand, CHARGE))


def cheapest(
    catalog: Catalog, demand: Demand, present: InstanceChoice | None, most: int, vcpus: float = 0.0
) -> list[InstanceChoice]:
    """The cheapest types that always carry the demand, at most ``most`` of them, with ``vcpus`` or more.

    Those that can take the place of ``present`` (:func:`replaces`); without one, those that a database is run on: at least
    :data:`VCPUS_MIN` vCPUs with :data:`MEMORY_PER_VCPU_GIB` GiB each.
    """
    here = None if present is None else present.document
    result = asked_of(demand, CHARGE)
    chosen = (
        document for document in for_sale(catalog, here) if document["vcpus"] >= vcpus and carries(document, result)
    )
    return [_choice(item, result) for item in islice(chosen, most)]


def for_sale(catalog: Catalog, here: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Types with a price, EBS bandwidth of their own and a CPU that is not paid with credits, the cheapest first."""
    fits = _for_a_database if here is None else partial(replaces, here=here)
    known = [
        instance_type
        for instance_type in catalog.instance_types()
        if instance_type["usd_per_hour"] is not None
        and instance_type["ebs"]
        and instance_type["ebs"]["always"]
        and not instance_type["burstable"]
        and fits(instance_type)
    ]
    return sorted(known, key=lambda document: (document["usd_per_hour"], document["instance"]))


def carries(document: Mapping[str, Any], requirement: Requirement) -> bool:
    """Whether a type's EBS limits carry a load always."""
    ebs, (ops, size) = document["ebs"], requirement.needed
    return bool(at_least(ebs["baseline_iops"], ops) and at_least(ebs["baseline_mib_per_s"] * MIB, size))


def replaces(document: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Whether it has the memory and the sustained vCPUs, is of the same architecture (a cluster's files are not moved to another one), and
    of no older generation, whose vCPUs compute less. What is not known of ``here`` is not required.
    """
    vcpus = here["vcpus"] if here["sustained_vcpus"] is None else here["sustained_vcpus"]
    vcpus = max(vcpus, min(VCPUS_MIN, here["vcpus"]))
    return bool(
        document["arch"] == (here["arch"] or document["arch"])
        and _generation(document["instance"]) >= _generation(here["instance"])
        and document["vcpus"] >= vcpus
        and document["memory_bytes"] >= here["memory_bytes"]
    )


def _generation(name: str) -> int:
    """6 of ``r6g.large``; 0 of an instance without a type."""
    text = re.match(r"[a-z-]+?(\d+)", name) if "=" not in name else None
    return 0 if text is None else int(text[1])


def _for_a_database(document: Mapping[str, Any]) -> bool:
    least_bytes = MEMORY_PER_VCPU_GIB * document["vcpus"] << 30
    return bool(document["vcpus"] >= VCPUS_MIN and document["memory_bytes"] >= least_bytes)


def sustained_phrase(choice: InstanceChoice) -> str:
    """What a burstable type's CPU is without credits."""
    baseline = choice.document["sustained_vcpus"]
    return f"not known of its {choice.vcpus} vCPUs" if baseline is None else f"{baseline:g} of its {choice.vcpus} vCPUs"


def usd_per_month(document: Mapping[str, Any]) -> float | None:
    """Linux, on demand."""
    usd = document["usd_per_hour"]
    return None if usd is None else round(usd * HOURS_PER_MONTH, 2)


def _choice(document: Mapping[str, Any], requirement: Requirement) -> InstanceChoice:
    ebs = document["ebs"] or {}
    iops = _rate(ebs, "iops", 1.0)
    throughput = _rate(ebs, "mib_per_s", MIB)
    return InstanceChoice(
        name=document["instance"],
        vcpus=document["vcpus"],
        memory_bytes=document["memory_bytes"],
        arch=document["arch"] or "",
        usd_per_month=usd_per_month(document),
        price_region=document["price_region"],
        iops=iops,
        throughput=throughput,
        fit=fit(iops, throughput, requirement),
        document=document,
    )


def _rate(ebs: Mapping[str, Any], unit: str, scale: float) -> Rate:
    if not ebs:
        return UNLIMITED
    baseline, maximum = (float(ebs[f"{which}_{unit}"]) * scale for which in ("baseline", "maximum"))
    capacity = BURST_S * (maximum - baseline)
    return Rate(baseline, maximum, capacity, capacity / DAY_S) if maximum > baseline else Rate(baseline, baseline)


def volume_offers(
    catalog: Catalog, present: VolumeSpec, measured: DeviceSamples, volume_iops: Mapping[str, int] | None = None
) -> tuple[OfferRecord, ...]:
    """What carries a measured load in the place of a volume or an array, the cheapest first.

    Empty where the present one is not sold, where its blocks still come from a snapshot (another one would wait for them as well), and
    where nothing was done.
    """
    document = (present.document.get("array") or {}).get("member") or present.document
    kind = next((volume_type for volume_type in volume_types(catalog) if volume_type.name == present.type), None)
    made_up = kind is None or (kind.priced and present.usd_per_month is None)
    if made_up or (document.get("params") or {}).get("first_touch") is not None:
        return ()
    try:
        demand = demand_of(measured)
    except InputError:
        return ()
    choices = offers_for(catalog, demand, Market(present=present, volume_iops=volume_iops or {})).choices
    return tuple(_offer(catalog, choice) for choice in choices if choice.usd_per_month is not None)


def of_run(run: StoredRun) -> RunRecord:
    """The record of a run with what could be bought instead of its volumes and its instance, for the load that it has measured."""
    world = run.record.world
    devices = {
        role: [activity for activity in seen if activity is not None]
        for role, seen in devices_of(run).items()
        if role in world.volumes and world.volumes[role].spec
    }
    loads = {role: measured_of(seen) for role, seen in devices.items() if seen}
    if not loads and world.instance.type is None:
        return run.record
    with Catalog() as catalog:
        volumes, instance = with_offers(catalog, world.volumes, world.instance, loads)
    return run.record.model_copy(update={"world": world.model_copy(update={"volumes": volumes, "instance": instance})})


def with_offers(
    catalog: Catalog, volumes: Mapping[str, VolumeRecord], instance: InstanceRecord, loads: Mapping[str, DeviceSamples]
) -> tuple[dict[str, VolumeRecord], InstanceRecord]:
    """Volumes by role, and their instance, each with what could be bought instead for the loads."""
    here = _type_of(catalog, instance)
    most = {} if here is None else here["volume_iops"]
    result = dict(volumes)
    for role, volume in volumes.items():
        if role in loads and volume.spec:
            offers = volume_offers(catalog, VolumeSpec.of(volume.spec), loads[role], most)
            result[role] = volume.model_copy(update={"offers": offers})
    rds = any(str(volume.spec.get("type", "")).startswith(RDS_PREFIX) for volume in volumes.values())
    others = instance_offers(catalog, instance, list(loads.values()), rds=rds)
    return result, with_price(catalog, instance).model_copy(update={"offers": others})


def measured_of(devices: Sequence[DeviceActivity]) -> DeviceSamples:
    """What a block device did, second by second, as a load to size."""
    return DeviceSamples(
        "live",
        "",
        tuple(
            IntervalSample(
                1.0,
                device.reads_per_s,
                device.writes_per_s,
                device.read_mib_per_s * MIB,
                device.write_mib_per_s * MIB,
                queue_length=device.queue_length,
            )
            for device in devices
        ),
    )


def _offer(catalog: Catalog, choice: VolumeChoice) -> OfferRecord:
    usual, columns = _usual(catalog, choice.member.type), choice.layout.columns
    member, usd = choice.member, choice.usd_per_month
    assert usd is not None, "what has no price was left out"
    loss = choice.failures_per_year_max
    return OfferRecord(
        spec=choice.spec,
        usd_per_month=usd,
        iops=None if member.iops is None else member.iops.sustained * columns,
        mib_per_s=None if member.mib_per_s is None else member.mib_per_s.sustained * columns,
        read_ms=None if usual is None else usual.ms(PAGE_BYTES, 0.0),
        write_ms=None if usual is None else usual.ms(PAGE_BYTES, 1.0),
        loss_per_year_max=loss,
    )


def _usual(catalog: Catalog, name: str) -> Usual | None:
    """How long a request takes on a volume of a type while nothing queues: the same at every size."""
    bought = ProvisionedVolume.of(catalog.resolve(name).document)
    return None if bought is None else bought.usual


def with_price(catalog: Catalog, instance: InstanceRecord) -> InstanceRecord:
    """An instance's record with its price and its sustained vCPUs; as it is without a type."""
    here = _type_of(catalog, instance)
    if here is None:
        return instance
    return instance.model_copy(
        update={"usd_per_month": usd_per_month(here), "sustained_vcpus": here["sustained_vcpus"]}
    )


def instance_offers(
    catalog: Catalog, instance: InstanceRecord, loads: Sequence[DeviceSamples], *, rds: bool = False
) -> tuple[InstanceOfferRecord, ...]:
    """Instances that carry the loads of all volumes together, the cheapest first, each with more vCPUs than those before it.

    With ``rds`` they are classes of RDS, of which the catalogue has the EC2 types that they run on and no price.
    """
    here = _type_of(catalog, instance)
    if here is None:
        return ()
    types = [document for document in for_sale(catalog, here) if document["rds"] or not rds]
    total = together(loads)
    if total is not None:
        result = asked_of(demand_of(total), CHARGE)
        types = [type_ for type_ in types if carries(type_, result)]
    return tuple(_instance_offer(document, rds=rds) for document in undominated(types))


def together(loads: Sequence[DeviceSamples]) -> DeviceSamples | None:
    """The loads of several volumes as one; None where nothing was done, or they are not of the same intervals."""
    used = [load for load in loads if load.busiest_ops_per_s > 0]
    if not used or len({tuple(sample.seconds for sample in samples.samples) for samples in used}) != 1:
        return None
    pairs = zip(*(samples.samples for samples in used), strict=True)
    samples = tuple(
        IntervalSample(
            pair[0].seconds,
            *(
                sum(getattr(sample, name) for sample in pair)
                for name in ("read_ops_per_s", "write_ops_per_s", "read_bytes_per_s", "write_bytes_per_s")
            ),
        )
        for pair in pairs
    )
    return DeviceSamples(used[0].origin, " + ".join(samples.device for samples in used), samples)


def _type_of(catalog: Catalog, instance: InstanceRecord) -> dict[str, Any] | None:
    return next(
        (instance_type for instance_type in catalog.instance_types() if instance_type["instance"] == instance.type),
        None,
    )


def undominated(types: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of types in the order of their price those that have more vCPUs than every one before them."""
    kept: list[Mapping[str, Any]] = []
    for type_ in types:
        if not kept or type_["vcpus"] > kept[-1]["vcpus"]:
            kept.append(type_)
    return kept


def _instance_offer(document: Mapping[str, Any], *, rds: bool) -> InstanceOfferRecord:
    return InstanceOfferRecord(
        type=f"db.{document['instance']}" if rds else document["instance"],
        usd_per_month=None if rds else usd_per_month(document),
        vcpus=document["vcpus"],
        iops=float(document["ebs"]["baseline_iops"]),
        mib_per_s=float(document["ebs"]["baseline_mib_per_s"]),
    )
