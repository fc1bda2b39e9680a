"""What can be bought: types of volumes and single volumes out of the engine's catalogue, with limits as rates.

Only the engine knows prices, sizes and rules; an illegal specification is one that it refuses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

from pgdyno import _engine
from pgdyno.errors import InputError
from pgdyno.size.bucket import UNLIMITED, Rate
from pgdyno.size.demand import Charge

GIB = 1 << 30


@dataclass(frozen=True)
class VolumeType:
    """A type of volume and the range of what can be had of it."""

    name: str
    aliases: frozenset[str]
    """Other names that a specification may have for it."""
    title: str
    summary: str
    provider: str
    """Who sells it: ``AWS EBS``, ``AWS RDS``, ..."""
    until: str | None
    """The last day on which it could be had as described, where that is past."""
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
    priced: bool
    """Whether the catalogue knows what it costs."""


@dataclass(frozen=True)
class Offer:
    """One volume with every figure settled."""

    spec: str
    type: str
    title: str
    """For people: ``gp3, 100 GiB, 3,000 IOPS, 125 MiB/s``."""
    size_bytes: int
    usd_per_month: float | None
    """``None`` where the catalogue has no price."""
    price_region: str | None
    durability: str | None
    failures_per_year_max: float | None
    """The upper end of the published annual failure rate, as a share."""
    charge: Charge
    iops: Rate
    """Operations, or what they cost where reads and writes have limits of their own."""
    throughput: Rate
    """Bytes per second."""


def volume_types() -> list[VolumeType]:
    """Every type that has limits, in the catalogue's order."""
    return [
        _type(one)
        for one in _engine.run_json(["volume", "types"])["types"]
        if one["iops"] is not None or one["throughput_mib_per_s"] is not None
    ]


def _type(one: dict[str, Any]) -> VolumeType:
    iops, throughput, size = one["iops"] or {}, one["throughput_mib_per_s"] or {}, one["size_bytes"]
    return VolumeType(
        one["type"],
        frozenset(one["aliases"]),
        one["title"],
        one["summary"],
        one["provider"],
        one["until"],
        one["volatile"],
        frozenset(one["keys"]),
        size_min_gib=max(1, math.ceil(size["minimum"] / GIB)),
        size_max_gib=size["maximum"] // GIB,
        iops_min=iops.get("minimum") or 1,
        iops_max=iops.get("maximum"),
        iops_per_gib_max=one["iops_per_gib_max"],
        throughput_min_mib_per_s=throughput.get("minimum") or 1,
        throughput_max_mib_per_s=throughput.get("maximum"),
        throughput_mib_per_s_per_iops=one["throughput_mib_per_s_per_iops"],
        priced=one["default_usd_per_month"] is not None,
    )


@cache
def offer(spec: str) -> Offer | None:
    """The volume that ``spec`` means; ``None`` when the catalogue's rules refuse it."""
    try:
        answer = _engine.run_json(["volume", "spec", spec])
    except InputError:
        return None
    params = answer["params"]
    cost = params.get("cost") or {}
    failures = answer["annual_failure_rate_percent"]
    return Offer(
        answer["spec"],
        answer["type"],
        answer["title"],
        answer["size_bytes"],
        answer["usd_per_month"],
        answer["price_region"],
        answer["durability"],
        max(failures) / 100 if failures else None,
        Charge(
            params["accounting"]["unit_bytes"],
            bool(cost.get("whole_units", False)),
            int(cost.get("read_tokens", 1)),
            int(cost.get("write_tokens", 1)),
        ),
        _rate(params.get("iops_limit"), params.get("iops_credit")),
        _rate(params.get("throughput_limit"), params.get("throughput_credit")),
    )


def _rate(limit: dict[str, Any] | None, credit: dict[str, Any] | None) -> Rate:
    """A limit and the credits beside it. The second's worth of tokens of a limit is left out: it is there once."""
    if limit is None:
        return UNLIMITED
    maximum = float(limit["rate_per_s"])
    if credit is None or credit["rate_per_s"] >= maximum:
        return Rate(maximum, maximum)
    return Rate(float(credit["rate_per_s"]), maximum, float(credit["capacity"]))
