"""EBS detailed performance statistics: what the NVMe log page 0xD0 of an EBS volume says, as JSON.

Keys and units as ``ebsnvme stats --json`` prints them (amazonlinux/amazon-ec2-utils 066b044c; the page itself also in
linux-nvme/nvme-cli, plugins/amzn): counters since attach, times in microseconds, latency in bins by powers of two of microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_COUNTERS = {
    "total_read_ops": ("read_ops", 1),
    "total_write_ops": ("write_ops", 1),
    "total_read_bytes": ("read_bytes", 1),
    "total_write_bytes": ("write_bytes", 1),
    "total_read_time": ("read_time_ns", 1000),
    "total_write_time": ("write_time_ns", 1000),
    "ebs_volume_performance_exceeded_iops": ("exceeded_iops_ns", 1000),
    "ebs_volume_performance_exceeded_tp": ("exceeded_throughput_ns", 1000),
    "ec2_instance_ebs_performance_exceeded_iops": ("instance_exceeded_iops_ns", 1000),
    "ec2_instance_ebs_performance_exceeded_tp": ("instance_exceeded_throughput_ns", 1000),
    "volume_queue_length": ("queue_length", 1),
}
"""Key of the page -> counter of the daemon and its unit in the page's."""


def statistics(document: Mapping[str, Any]) -> dict[str, Any]:
    """The page of a volume, from what its daemon says. A volume that no instance limits never waited for one."""
    counters = document["counters"]
    page: dict[str, Any] = {key: (counters.get(name) or 0) // unit for key, (name, unit) in _COUNTERS.items()}
    for operation in ("read", "write"):
        page[f"{operation}_io_latency_histogram"] = histogram(document["histograms"][f"{operation}_latency_us_log2"])
    return page


def histogram(counts: Sequence[int]) -> dict[str, Any]:
    """Bins [0, 1), [1, 2), [2, 4), ... of microseconds with their counts."""
    bins = [
        {"lower": 0 if place == 0 else 2 ** (place - 1), "upper": 2**place, "count": count}
        for place, count in enumerate(counts)
    ]
    return {"num_bins": len(bins), "bins": bins}
