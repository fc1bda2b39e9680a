"""What the user says was bought: volumes by role and the instance; and what could be bought instead for the load that was seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.analysis.binding.evidence import Evidence

from ...analysis.binding.evidence import Circumstances
from ...analysis.figures import BLOCK_BYTES
from ...base.catalog import Catalog
from ...base.errors import InputError
from ...base.text import size
from ...results.record import InstanceRecord, VolumeRecord
from ...results.tables import DATA_VOLUME
from ..size.measured import DeviceSamples


@dataclass(frozen=True)
class Purchase:
    """What the server that is watched stands on."""

    volumes: Mapping[str, VolumeRecord] = field(default_factory=dict)
    """By role; a volume of which nothing was said is absent."""
    instance: InstanceRecord = field(default_factory=InstanceRecord)


def purchase_of(bought: Sequence[str], instance: str | None) -> Purchase:
    """From ``ROLE=VOLUME`` (``gp3`` alone is the data's) and the name of a type. :class:`InputError` says what is wrong."""
    from ...base.catalog import Catalog
    from ..size.offers import with_price

    if not bought and instance is None:
        return Purchase()
    volumes: dict[str, VolumeRecord] = {}
    with Catalog() as catalog:
        for text in bought:
            role, spec = role_and_value(text)
            if role in volumes:
                raise InputError(f"--bought names {role} twice", remedy="name each volume once")
            volumes[role] = _volume(catalog, spec)
        record = InstanceRecord() if instance is None else with_price(catalog, _instance(instance))
    return Purchase(volumes, record)


def with_offers(around: Circumstances, evidence: Evidence, measured: Mapping[str, DeviceSamples]) -> Circumstances:
    """With what could be bought instead of each volume and the instance: for what a file has ``measured`` of it, else for what was seen."""
    from ...base.catalog import Catalog
    from ..size import offers

    if not around.volumes and around.instance.type is None:
        return around
    roles = dict.fromkeys(role for second in evidence.seconds for role in second.devices)
    loads = {
        role: offers.measured_of([second.devices[role] for second in evidence.seconds if role in second.devices])
        for role in roles
    }
    with Catalog() as catalog:
        volumes, instance = offers.with_offers(catalog, around.volumes, around.instance, {**loads, **measured})
    return replace(around, volumes=volumes, instance=instance)


def require_roles(volumes: Mapping[str, VolumeRecord], seen: Collection[str]) -> None:
    """Refuse a volume of a role that the server does not have; where no device was ``seen``, any role may be right."""
    strange = next((role for role in volumes if seen and role not in seen), None)
    if strange is not None:
        raise InputError(
            f"--bought: the server has no {strange} volume of its own", remedy=f"it has {', '.join(sorted(seen))}"
        )


def require_memory(instance: InstanceRecord, settings: Mapping[str, str | None]) -> None:
    """Refuse an instance type whose memory the server's shared_buffers do not fit into: it runs on another one."""
    blocks = settings.get("shared_buffers")
    if instance.type is None or instance.memory_bytes is None or blocks is None:
        return
    shared_bytes = int(blocks) * BLOCK_BYTES
    if shared_bytes >= instance.memory_bytes:
        raise InputError(
            f"--instance: a {instance.type} has {size(instance.memory_bytes)} of memory, and shared_buffers are {size(shared_bytes)}",
            remedy="name the type that the server runs on",
        )


def role_and_value(text: str) -> tuple[str, str]:
    """``data=gp3:iops=6000``, ``wal=metrics.json``: what is before the first ``=`` is a role, unless it belongs to the value."""
    role, equals, spec = text.partition("=")
    if not equals or ":" in role or "/" in role:
        return DATA_VOLUME, text
    return role, spec


def _volume(catalog: Catalog, spec: str) -> VolumeRecord:
    return VolumeRecord(spec=dict(catalog.resolve(spec).document))


def _instance(name: str) -> InstanceRecord:
    from ...machine.instance_type import resolve_type

    type_ = resolve_type(name)
    return InstanceRecord(
        memory_bytes=type_.memory_bytes, type=type_.name, vcpus=type_.vcpus, ebs=type_.ebs, storage_only=False
    )
