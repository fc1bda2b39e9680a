"""Remedies of a diagnosis: the purchase that `--bought` names, offers in its place, and changes that cost nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pgdyno.analysis.binding.consumers import Consumer
from pgdyno.analysis.binding.evidence import Evidence
from pgdyno.analysis.binding.remedy import RATIO_MAX

from ...analysis.binding.consumers import What
from ...analysis.binding.evidence import Circumstances
from ...analysis.figures import BLOCK_BYTES, growth_of
from ...base.catalog import Catalog
from ...base.errors import InputError
from ...base.text import size
from ...results import StoredRun
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


MATTERS = 0.15
"""Share of the volume's requests or bytes: without a consumer that has less, hardly a fifth more could be done."""
WAL_MARGIN = 1.9
"""Times the WAL of a checkpoint_timeout: a checkpoint is forced when max_wal_size / (1 + checkpoint_completion_target) is written
since the last one began (PostgreSQL's CalculateCheckpointSegments), which with 0.9 is 1 / 1.9 of it."""
WAL_MAX_GIB = 64
"""More is not proposed: replaying it after a crash would take longer than most may wait."""
GIB = float(1 << 30)


@dataclass(frozen=True)
class SettingAdvice:
    """One setting that is proposed."""

    name: str
    now: str
    proposed: str


@dataclass(frozen=True)
class Free:
    """A remedy that is not bought."""

    kind: Literal["setting", "other"]
    action: str
    """A sentence's end without its full stop."""
    ratio_max: float | None = None
    """Times the work that the volume can do at most, were this consumer gone; None where it cannot be bounded."""
    settings: tuple[SettingAdvice, ...] = ()


def free_of(run: StoredRun, consumers: Sequence[Consumer]) -> tuple[Free, ...]:
    """For the consumers that matter, the one that can bring most first."""
    shares = {consumer.what: consumer.share for consumer in consumers}
    settings = settings_of(run)
    findings = [made for rule in _RULES if (made := rule(run, shares, settings)) is not None]
    return tuple(sorted(findings, key=lambda finding: -(finding.ratio_max or 1.0)))


def _without(share: float) -> float:
    """Times the work that fits where a share of the requests is gone."""
    return min(RATIO_MAX, 1 / max(1e-9, 1 - share))


def _checkpoints(run: StoredRun, shares: Mapping[What, float], settings: Mapping[str, str]) -> Free | None:
    """max_wal_size so large that checkpoint_timeout decides, where checkpoints came because it was reached."""
    share = shares.get("checkpoints", 0.0) + shares.get("whole_pages", 0.0)
    forced = growth_of(run, "probe/checkpointer", ("num_requested",)).get("num_requested", 0.0)
    made = growth_of(run, "probe/wal", ("wal_bytes",)).get("wal_bytes", 0.0)
    now_mib, timeout_s = settings.get("max_wal_size"), settings.get("checkpoint_timeout")
    if share < MATTERS or forced < 1 or now_mib is None or timeout_s is None:
        return None
    needed = made / run.record.measure.seconds * float(timeout_s) * WAL_MARGIN / GIB
    proposed = min(WAL_MAX_GIB, max(1, math.ceil(needed)))
    if proposed * 1024 <= float(now_mib):
        return None
    now = _mib(float(now_mib))
    return Free(
        "setting",
        f"max_wal_size = {proposed}GB instead of {now} (a reload): checkpoints then come by checkpoint_timeout; recovery takes longer",
        _without(share),
        (SettingAdvice("max_wal_size", now, f"{proposed}GB"),),
    )


def _whole_pages(_: StoredRun, shares: Mapping[What, float], settings: Mapping[str, str]) -> Free | None:
    share = shares.get("whole_pages", 0.0)
    if share < MATTERS or settings.get("wal_compression") != "off":
        return None
    return Free(
        "setting",
        "wal_compression = on instead of off (a reload): whole pages in WAL get smaller, for some CPU",
        _without(share),
        (SettingAdvice("wal_compression", "off", "on"),),
    )


def _temporary(_: StoredRun, shares: Mapping[What, float], settings: Mapping[str, str]) -> Free | None:
    share = shares.get("temporary_files", 0.0)
    if share < MATTERS:
        return None
    now_kib = settings.get("work_mem")
    now = "" if now_kib is None else f", which is {_mib(float(now_kib) / 1024)}"
    return Free(
        "other", f"more work_mem{now}, for the statements that write temporary files alone (SET LOCAL)", _without(share)
    )


def _habit(what: What, action: str) -> Callable[[StoredRun, Mapping[What, float], Mapping[str, str]], Free | None]:
    def rule(_: StoredRun, shares: Mapping[What, float], __: Mapping[str, str]) -> Free | None:
        share = shares.get(what, 0.0)
        return Free("other", action, _without(share)) if share >= MATTERS else None

    return rule


_RULES = (
    _checkpoints,
    _whole_pages,
    _temporary,
    _habit(
        "vacuum",
        "vacuum that takes less at a time (a larger vacuum_cost_delay, of autovacuum its own), or at another hour",
    ),
    _habit(
        "scans",
        "an index for the statements that read whole tables; dumps and reports at another hour or from a standby",
    ),
    _habit("backup_and_replication", "backups from a standby, or at a lower rate (pg_basebackup --max-rate)"),
    _habit("reads", "more memory for shared_buffers and the page cache, or fewer pages that a statement needs"),
)


def settings_of(run: StoredRun) -> dict[str, str]:
    """Every setting of the server, in the base units of pg_settings."""
    table = run.table("postgres/settings")
    pairs = zip(table["name"].to_pylist(), table["setting"].to_pylist(), strict=True)
    return {name: value for name, value in pairs if value is not None}


def _mib(mib: float) -> str:
    """As postgresql.conf has it."""
    if mib >= 1024 and mib % 1024 == 0:
        return f"{mib / 1024:.0f}GB"
    return f"{mib:.0f}MB" if mib >= 1 else f"{mib * 1024:.0f}kB"
