"""Instance types that carry a load always: the cheapest ones, and how the one fares that is there now.

An instance's limits are a sustained baseline and a maximum that is available "for 30 minutes at least once every 24 hours"
(Amazon EC2 User Guide, awsdocs/amazon-ec2-user-guide e3707c43, ebs-optimized.md, 15 June 2023). What lies above the baseline carries
nothing; for how long it would last is computed from that promise, given back evenly over the day. The same goes for a CPU that is paid
with credits: a burstable type is never offered, and a present one is judged by its baseline.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from pgdyno.analysis.cost import HOURS_PER_MONTH

from ...base import engine
from ...base.catalog import Catalog
from ...base.specification import UNLIMITED, Charge, Rate
from .demand import MIB, Demand
from .fit import Fit, Requirement, asked_of, at_least, fit

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
