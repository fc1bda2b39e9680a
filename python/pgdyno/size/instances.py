"""Instance types that carry a load: the cheapest ones, and how the one fares that is there now.

An instance's limits are a sustained baseline and a maximum that is available "for 30 minutes at least once every 24 hours"
(Amazon EC2 User Guide, awsdocs/amazon-ec2-user-guide e3707c43, ebs-optimized.md, 15 June 2023). How the bucket is filled is
not published; so no more is counted on than the promise: what lies above the baseline in any day must fit into 30 minutes
of the difference, given back evenly over the day.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno import _engine
from pgdyno.analysis.cost import HOURS_PER_MONTH
from pgdyno.size.demand import MIB, Demand
from pgdyno.size.fit import Asked, Fit, asked_of, fit
from pgdyno.specification import UNLIMITED, Charge, Rate

if TYPE_CHECKING:
    from pgdyno.catalog import Catalog

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


def judge(name: str, demand: Demand) -> InstanceChoice:
    """How one instance type fares. ``vcpus=4,memory=16GiB`` has no limits. :class:`InputError` when there is no such type."""
    return _choice(_engine.run_json(["instance", "spec", name]), asked_of(demand, CHARGE))


def cheapest(catalog: Catalog, demand: Demand, at_least: InstanceChoice | None, most: int) -> list[InstanceChoice]:
    """The cheapest types that carry the demand, at most ``most`` of them, with the vCPUs and the memory of ``at_least``.

    Left out are types without a price, those whose EBS bandwidth must be asked for, and those that share the network's.
    """
    found = []
    for one in catalog.instance_types():
        if one["usd_per_hour"] is None or not one["ebs"] or not one["ebs"]["always"]:
            continue
        if at_least and (one["vcpus"] < at_least.vcpus or one["memory_bytes"] < at_least.memory_bytes):
            continue
        found.append(one)
    chosen, asked = list[InstanceChoice](), asked_of(demand, CHARGE)
    for one in sorted(found, key=lambda one: (one["usd_per_hour"], one["instance"])):
        choice = _choice(one, asked)
        if choice.fit.carries:
            chosen.append(choice)
            if len(chosen) == most:
                break
    return chosen


def _choice(one: dict[str, Any], asked: Asked) -> InstanceChoice:
    ebs = one["ebs"] or {}
    iops = _rate(ebs, "iops", 1.0)
    throughput = _rate(ebs, "mib_per_s", MIB)
    held = fit(iops, throughput, asked)
    usd = one["usd_per_hour"]
    return InstanceChoice(
        one["instance"],
        one["vcpus"],
        one["memory_bytes"],
        one["arch"] or "",
        None if usd is None else round(usd * HOURS_PER_MONTH, 2),
        one["price_region"],
        iops,
        throughput,
        held,
    )


def _rate(ebs: dict[str, Any], unit: str, scale: float) -> Rate:
    if not ebs:
        return UNLIMITED
    baseline, maximum = (float(ebs[f"{which}_{unit}"]) * scale for which in ("baseline", "maximum"))
    capacity = BURST_S * (maximum - baseline)
    return Rate(baseline, maximum, capacity, capacity / DAY_S) if maximum > baseline else Rate(baseline, baseline)
