"""What could be bought instead of what a run stood on: recorded with the run, so that a report made later can name a remedy and its
price without a catalogue.

Of volumes it is what :mod:`pgdyno.advise.size.search` finds for the load that the run has measured: each carries it with the usual margin, and
the first is the cheapest. Of instances it is the cheapest that carries the load, and
the cheapest with more and more vCPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pgdyno.analysis.binding.evidence import devices_of

from ...analysis.binding.device import PAGE_BYTES, DeviceActivity, ProvisionedVolume, Usual
from ...base.catalog import Catalog
from ...base.errors import InputError
from ...base.specification import VolumeSpec
from ...results import StoredRun
from ...results.record import InstanceOfferRecord, InstanceRecord, OfferRecord, RunRecord, VolumeRecord
from .demand import MIB, demand_of
from .fit import asked_of
from .instances import CHARGE, carries, for_sale, usd_per_month
from .measured import DeviceSamples, IntervalSample
from .search import RDS_PREFIX, Market, VolumeChoice, offers_for
from .volume_type import volume_types


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
