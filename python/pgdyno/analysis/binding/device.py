"""What a block device did in a second."""

from __future__ import annotations

from dataclasses import dataclass

MIB = float(1 << 20)


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
