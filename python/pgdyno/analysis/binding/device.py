"""Block devices: their activity in a second, the limits that were bought, and the usual latency of such a volume.

On a real host the limits are on the bill. An emulated volume has them in its resolved specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ...base.specification import REQUEST_BYTES_MAX, Rate, VolumeSpec
from ...results.record import InstanceRecord


@dataclass(frozen=True)
class DeviceActivity:
    """What one volume's block device did in a second, by the kernel's statistics or by a file's. None is what it does not say."""

    reads_per_s: float
    writes_per_s: float
    read_mib_per_s: float
    write_mib_per_s: float
    request_ms: float | None
    """From submission to completion, mean of the requests that ended; 0 where none did; None where they were not timed."""
    queue_length: float | None
    """Mean number of requests in the device."""
    reading: float | None
    """Mean number of reads in it."""

    @property
    def iops(self) -> float:
        """Requests per second."""
        return self.reads_per_s + self.writes_per_s

    @property
    def mib_per_s(self) -> float:
        """Reads and writes."""
        return self.read_mib_per_s + self.write_mib_per_s

    @property
    def request_bytes(self) -> float:
        """Mean size of a request."""
        return self.mib_per_s * MIB / self.iops if self.iops else 0.0

    @property
    def write_share(self) -> float:
        """Writes as a share of the requests."""
        return self.writes_per_s / self.iops if self.iops else 0.0


MEDIAN_PPM = 500_000
PAGE_BYTES = 8192
MIB = float(1 << 20)
BLOCK_BYTES = 4 << 10
"""Requests are whole numbers of these."""

AT_LIMIT = 0.95
"""Of what was bought. Providers promise nine tenths of it for 99 % of the time and deliver all of it nearly always; a rate
that happens to lie in the last twentieth without being held there is rare."""
LEFT_ABOVE = 1.30
"""A rate that is held at what is left without credits can be this much above it by the kernel's count: a volume counts
requests in sequence as one."""


IOPS_IMPOSSIBLE = 3.0
"""Times the IOPS that were bought, over the seconds of a verdict: a database's requests are hardly ever merged three at a time."""
THROUGHPUT_IMPOSSIBLE = 1.5
"""Times the throughput: what a bucket saves up is a second's worth at most."""


@dataclass(frozen=True)
class Usual:
    """How long a request usually takes on such a volume while nothing queues: medians by size, milliseconds."""

    read: tuple[tuple[float, float], ...]
    """(bytes, ms), the smallest size first; between two sizes on a straight line."""
    write: tuple[tuple[float, float], ...]

    def ms(self, size_bytes: float, write_share: float) -> float:
        """Usual service time of a mix of reads and writes of a mean size."""
        return _between(self.read, size_bytes) * (1 - write_share) + _between(self.write, size_bytes) * write_share


@dataclass(frozen=True)
class ProvisionedVolume:
    """One volume as it was ordered. What has no limit is None."""

    spec: str
    iops: Rate | None
    write_iops: float | None
    """Limit of writes alone, where they have one; in a mix, reads and writes each take their part of the two limits."""
    mib_per_s: Rate | None
    usual: Usual | None
    unit_bytes: int = REQUEST_BYTES_MAX
    """What the provider counts as one: a larger request is as many as it fills."""

    @classmethod
    def of(cls, resolved: Mapping[str, Any]) -> ProvisionedVolume | None:
        """From a resolved specification; None for a device that was there and whose type is not known."""
        if not resolved:
            return None
        volume = VolumeSpec.of(resolved)
        usual = _usual((resolved.get("params") or {}).get("service_time"))
        return cls(volume.spec, volume.iops, volume.write_iops, volume.mib_per_s, usual, volume.unit_bytes)

    def counted_iops(self, device: DeviceActivity) -> float:
        """As many I/Os a second as the provider counts, where the kernel counts requests; an estimate from their mean size."""
        return self._counted(device.reads_per_s, device.read_mib_per_s) + self._counted(
            device.writes_per_s, device.write_mib_per_s
        )

    def used_iops(self, device: DeviceActivity) -> float | None:
        """Share of the most IOPS that can ever be had; None without such a limit."""
        if self.iops is None:
            return None
        if self.write_iops is not None:
            reads = self._counted(device.reads_per_s, device.read_mib_per_s)
            writes = self._counted(device.writes_per_s, device.write_mib_per_s)
            return reads / self.iops.maximum + writes / self.write_iops
        return self.counted_iops(device) / self.iops.maximum

    def least_used_iops(self, device: DeviceActivity) -> float | None:
        """Share of the most IOPS that is used however requests in sequence were merged: an I/O has a unit's bytes at most."""
        if self.iops is None:
            return None
        reads, writes = (mib * MIB / self.unit_bytes for mib in (device.read_mib_per_s, device.write_mib_per_s))
        return reads / self.iops.maximum + writes / (self.write_iops or self.iops.maximum)

    def _counted(self, requests_per_s: float, mib_per_s: float) -> float:
        if self.unit_bytes >= REQUEST_BYTES_MAX:
            return requests_per_s
        # The last unit of a request is filled in part: of n blocks a unit by (n - 1) / 2n of it less, were all sizes alike often.
        blocks = max(1, self.unit_bytes // BLOCK_BYTES)
        unfilled = (blocks - 1) / (2 * blocks)
        return max(requests_per_s, mib_per_s * MIB / self.unit_bytes + unfilled * requests_per_s)

    def is_contradicted(self, device: DeviceActivity) -> bool:
        """Whether the device did what such a volume cannot do: then something else was bought. Requests in sequence count as one, so the
        number of requests may be above the limit, and of their bytes only what buckets save up.
        """
        iops, size = self.used_iops(device), self.used_throughput(device.mib_per_s)
        return (iops or 0.0) >= IOPS_IMPOSSIBLE or (size or 0.0) >= THROUGHPUT_IMPOSSIBLE

    def used_throughput(self, mib_per_s: float) -> float | None:
        """Share of the most MiB/s that can ever be had; None without such a limit."""
        return None if self.mib_per_s is None else mib_per_s / self.mib_per_s.maximum


@dataclass(frozen=True)
class BoughtInstance:
    """The limits of an instance to all of its volumes together."""

    type: str
    iops: Rate
    mib_per_s: Rate

    @classmethod
    def of(cls, instance: InstanceRecord) -> BoughtInstance | None:
        """From a run's record; None where the instance has no such limits, or nobody said what it is."""
        ebs = instance.ebs
        if not ebs:
            return None
        iops, size = (
            Rate(float(ebs[f"baseline_{unit}"]), float(ebs.get(f"maximum_{unit}") or ebs[f"baseline_{unit}"]))
            for unit in ("iops", "mib_per_s")
        )
        return cls(instance.type or "the instance", iops, size)


def cpu_share_of(instance: InstanceRecord) -> float:
    """Share of an instance's vCPUs that may be used without limit of time: less than 1 of a burstable type."""
    if not instance.vcpus or instance.sustained_vcpus is None:
        return 1.0
    return min(1.0, instance.sustained_vcpus / instance.vcpus)


def _usual(service_time: Mapping[str, Any] | None) -> Usual | None:
    if not service_time or not all(service_time.get(op) for op in ("read", "write")):
        return None
    return Usual(read=_medians(service_time["read"]), write=_medians(service_time["write"]))


def _medians(table: Mapping[str, Any]) -> tuple[tuple[float, float], ...]:
    ppm = [float(item) for item in table["probability_ppm"]]
    return tuple(
        (float(row["size_bytes"]), _between(tuple(zip(ppm, row["service_ns"], strict=True)), MEDIAN_PPM) / 1e6)
        for row in table["rows"]
    )


def _between(points: tuple[tuple[float, float], ...], x: float) -> float:
    """The value at ``x`` on straight lines between points; the nearest point's outside of them."""
    if x <= points[0][0]:
        return float(points[0][1])
    for (left, low), (right, high) in pairwise(points):
        if x <= right:
            return float(low + (high - low) * (x - left) / (right - left))
    return float(points[-1][1])
