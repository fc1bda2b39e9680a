"""A volume with every figure settled, as the engine resolved it: the one place that knows the keys of that document.

A specification is parsed once, by the engine. From then on a :class:`VolumeSpec` travels: to what sizes, attaches,
prices and records it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REQUEST_BYTES_MAX = 256 << 10
"""A larger request the kernel sends in parts (``max_sectors_kb`` of EBS's devices, and of pgdyno's): of a provider that counts in such
units each is one."""

_INIT = re.compile(r"[:,]\s*init\s*=", re.IGNORECASE)
_INIT_FIRST = re.compile(r":\s*init\s*=\s*[^,\s]+\s*,", re.IGNORECASE)
_INIT_VALUE = re.compile(r"([:,]\s*init\s*=\s*)([^,\s]+)", re.IGNORECASE)
_LEVEL = re.compile(r"^\s*raid\d+\s*:", re.IGNORECASE)
"""What may be before an array's first colon."""


@dataclass(frozen=True)
class Rate:
    """A limit with or without credits, in units per second."""

    sustained: float
    """The sustained rate."""
    maximum: float
    """The rate while there are credits; equal to ``sustained`` without credits."""
    capacity: float = math.inf
    """Units above the sustained rate that a full bucket holds."""
    refill_max: float = math.inf
    """The most by which the bucket fills, units per second."""

    @property
    def bursts(self) -> bool:
        """Whether there is a burst above the sustained rate."""
        return self.maximum > self.sustained

    @property
    def steady_seconds(self) -> float:
        """How long the maximum lasts from a full bucket."""
        return self.capacity / (self.maximum - self.sustained) if self.bursts else math.inf


UNLIMITED = Rate(math.inf, math.inf)


@dataclass(frozen=True)
class Charge:
    """How a volume counts requests."""

    unit_bytes: int
    """The largest operation that counts as one."""
    whole_units: bool = False
    """Whether bytes are charged in whole units too, as HDD volumes do to requests that are not one after the other."""
    read_tokens: int = 1
    """Cost of an operation where reads and writes have limits of their own; otherwise 1."""
    write_tokens: int = 1


@dataclass(frozen=True)
class Prices:
    """The catalogue's prices behind a monthly price, in US dollars a month."""

    gib_month_usd: float
    """Of one more GiB; IOPS and throughput stay as they are unless they follow from the size."""
    iops_month_usd: tuple[tuple[float, float], ...]
    """(above, price of each I/O unit per second above it), up to where the next tier begins."""
    mib_per_s_month_usd: tuple[tuple[float, float], ...]
    """The same of each MiB per second."""
    limits_follow_size: bool
    """Whether a larger volume has higher limits, or bursts for longer."""


@dataclass(frozen=True)
class VolumeSpec:
    """A volume, or an array, with every figure settled. What has no limit, or no price, is None."""

    spec: str
    """The canonical specification; it resolves to this same volume."""
    type: str
    title: str
    """For people: ``gp3, 100 GiB, 3,000 IOPS, 125 MiB/s``."""
    size_bytes: int
    iops: Rate | None
    """I/O units per second of the whole; of reads alone where writes have a limit of their own."""
    write_iops: float | None
    """Where writes have a limit of their own."""
    mib_per_s: Rate | None
    """Throughput of the whole volume or array."""
    unit_bytes: int
    """The largest request that counts as one."""
    charge: Charge
    charged_iops: Rate
    """The limit of each member, as the model charges it: operations, or their cost if reads and writes have separate limits."""
    charged_bytes: Rate
    """The limit of each member, in bytes per second."""
    columns: int
    """Members of an array that add up; 1 of a single volume."""
    copies: int
    """Volumes with the same content, in each column of an array; those in another zone are counted too."""
    attachments: int
    """Volumes of the instance that it takes; none where it is the instance's own storage."""
    usd_per_month: float | None
    price_region: str | None
    prices: Prices | None
    durability: str | None
    """The provider's words."""
    failures_per_year_max: float | None
    """The upper end of the published annual failure rate, as a share; None of an array."""
    document: Mapping[str, Any] = field(repr=False, compare=False)
    """As the engine said it, which is how runs record it."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> VolumeSpec:
        """From the engine's document, or from one that was recorded, which may be older and lack parts."""
        limits, burst = document.get("limits") or {}, document.get("burst") or {}
        params, array = document.get("params") or {}, document.get("array") or {}
        columns, copies = (int(array.get(name) or 1) for name in ("columns", "copies"))
        failures = document.get("annual_failure_rate_percent")
        return cls(
            spec=str(document.get("spec", "")),
            type=str(document.get("type", "")),
            title=str(document.get("title", "")),
            size_bytes=int(document.get("size_bytes") or 0),
            iops=_stated(limits, burst, "iops"),
            write_iops=limits.get("write_iops"),
            mib_per_s=_stated(limits, burst, "throughput_mib_per_s"),
            unit_bytes=int(document.get("accounting_unit_kib") or 0) << 10 or REQUEST_BYTES_MAX,
            charge=_charge(params),
            charged_iops=_charged(params, "iops"),
            charged_bytes=_charged(params, "throughput"),
            columns=columns,
            copies=copies if array.get("multi_az_ms") is None else 2 * copies,
            attachments=0 if document.get("volatile") else columns * copies,
            usd_per_month=document.get("usd_per_month"),
            price_region=document.get("price_region"),
            prices=_prices(document.get("prices")),
            durability=document.get("durability"),
            failures_per_year_max=max(failures) / 100 if failures else None,
            document=document,
        )

    @property
    def members(self) -> int:
        """Volumes of an array; 1 of a single one. Copies in another zone are not counted."""
        array = self.document.get("array") or {}
        return self.columns * int(array.get("copies") or 1)

    @property
    def stripes(self) -> tuple[int, int] | None:
        """(columns, KiB of a chunk) of an array; None where all bytes are in one column."""
        array = self.document.get("array") or {}
        return None if self.columns == 1 else (self.columns, int(array["chunk_kib"]))

    @property
    def is_restored(self) -> bool:
        """Whether it gets its blocks from a snapshot, in one of the ways of ``init=``."""
        return self.document.get("initialization") is not None

    def __str__(self) -> str:
        """The canonical specification."""
        return self.spec


def init_of(spec: str) -> str:
    """What ``init=`` says in a specification, in lower case; "" where it says nothing."""
    match = _INIT_VALUE.search(spec)
    return match[2].lower() if match else ""


def replaced_init(spec: str, init: str) -> str:
    """The specification with another ``init=`` in the place of its own."""
    return _INIT_VALUE.sub(lambda match: f"{match[1]}{init}", spec)


def without_init(spec: str) -> str:
    """The canonical specification without ``init=``."""
    return _INIT_VALUE.sub("", _INIT_FIRST.sub(":", spec))


def with_init(spec: str, init: str) -> str:
    """The specification of a volume that is made from a snapshot in the way ``init``, unless it says itself in which."""
    if _INIT.search(spec):
        return spec
    member = _LEVEL.sub("", spec)
    return f"{spec}{',' if ':' in member else ':'}init={init}"


def _stated(limits: Mapping[str, Any], burst: Mapping[str, Any], name: str) -> Rate | None:
    sustained = limits.get(name)
    if sustained is None:
        return None
    return Rate(float(sustained), max(float(sustained), float(burst.get(name) or 0.0)))


def _charge(params: Mapping[str, Any]) -> Charge:
    accounting, cost = params.get("accounting") or {}, params.get("cost") or {}
    return Charge(
        int(accounting.get("unit_bytes") or REQUEST_BYTES_MAX),
        bool(cost.get("whole_units", False)),
        int(cost.get("read_tokens", 1)),
        int(cost.get("write_tokens", 1)),
    )


def _charged(params: Mapping[str, Any], kind: str) -> Rate:
    """A limit and the credits beside it. The second's worth of tokens of a limit is left out: it is there once."""
    limit, credit = params.get(f"{kind}_limit"), params.get(f"{kind}_credit")
    if limit is None:
        return UNLIMITED
    maximum = float(limit["rate_per_s"])
    if credit is None or credit["rate_per_s"] >= maximum:
        return Rate(maximum, maximum)
    return Rate(float(credit["rate_per_s"]), maximum, float(credit["capacity"]))


def _prices(document: Mapping[str, Any] | None) -> Prices | None:
    if document is None:
        return None
    iops, mib_per_s = (
        tuple((float(tier["above"]), float(tier["usd"])) for tier in document[key])
        for key in ("iops_month_usd", "mib_per_s_month_usd")
    )
    return Prices(float(document["gib_month_usd"]), iops, mib_per_s, bool(document["limits_follow_size"]))
