"""Types of volumes, and the range of their limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...base.catalog import Catalog

GIB = 1 << 30


@dataclass(frozen=True)
class VolumeType:
    """A type of volume and the range of its limits."""

    name: str
    aliases: frozenset[str]
    """Other names that a specification may have for it."""
    title: str
    summary: str
    provider: str
    """Who sells it: ``AWS EBS``, ``AWS RDS``, ..."""
    until: str | None
    """The last day on which it was sold as described, if that is past."""
    volatile: bool
    """Whether its content ends with its instance."""
    keys: frozenset[str]
    """What a specification may say of it: ``size``, ``iops``, ``throughput``."""
    size_min_gib: int
    size_max_gib: int
    iops_min: int
    iops_max: int | None
    iops_per_gib_max: float | None
    throughput_min_mib_per_s: int
    throughput_max_mib_per_s: int | None
    throughput_mib_per_s_per_iops: float | None
    bursts: bool
    """Whether it may do more than its limits while it has credits."""
    priced: bool
    """Whether the catalogue knows what it costs."""


def volume_types(catalog: Catalog) -> list[VolumeType]:
    """Every type that has limits, in the catalogue's order."""
    return [
        _type(volume_type)
        for volume_type in catalog.volume_types()
        if volume_type["iops"] is not None or volume_type["throughput_mib_per_s"] is not None
    ]


def _type(document: dict[str, Any]) -> VolumeType:
    iops, throughput, size = document["iops"] or {}, document["throughput_mib_per_s"] or {}, document["size_bytes"]
    return VolumeType(
        document["type"],
        frozenset(document["aliases"]),
        document["title"],
        document["summary"],
        document["provider"],
        document["until"],
        document["volatile"],
        frozenset(document["keys"]),
        size_min_gib=max(1, math.ceil(size["minimum"] / GIB)),
        size_max_gib=size["maximum"] // GIB,
        iops_min=iops.get("minimum") or 1,
        iops_max=iops.get("maximum"),
        iops_per_gib_max=document["iops_per_gib_max"],
        throughput_min_mib_per_s=throughput.get("minimum") or 1,
        throughput_max_mib_per_s=throughput.get("maximum"),
        throughput_mib_per_s_per_iops=document["throughput_mib_per_s_per_iops"],
        bursts=document["burst_iops_max"] is not None or document["burst_throughput_mib_per_s_max"] is not None,
        priced=document["default_usd_per_month"] is not None,
    )
