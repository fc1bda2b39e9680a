"""The formulas by which people read a volume's metrics.

Sources: *whitepaper* is "Optimizing PostgreSQL Running on Amazon EC2 Using Amazon EBS" (AWS, undated copy read in November
2026); *guide* is the Amazon EC2 User Guide, "Amazon CloudWatch metrics for Amazon EBS" and "General Purpose SSD volumes"
(awsdocs/amazon-ec2-user-guide e3707c43, 15 June 2023). A figure is None where its divisor is zero: no operations have no
latency.
"""

from __future__ import annotations

KIB_BYTES = 1024

QUEUE_LENGTH_PER_IOPS = 1 / 1000
"""Whitepaper: a mean queue longer than one for every 1,000 provisioned IOPS can cause latency."""

CONSISTENTLY_SHARE = 0.5
"""Share of a minute in which requests waited for a limit, from which on a check says that it was exceeded.

AWS says that the application "consistently" tried to exceed it and gives no figure (Compute Optimizer's user guide, EBS volume
metrics, read in November 2026). Half the minute is this project's choice: a published run under full saturation shows 41.9 s of 60.
"""


def bandwidth_kib_per_s(transferred_bytes: float, period_s: float) -> float | None:
    """Read or write bandwidth: Sum(VolumeReadBytes) / Period / 1024 (whitepaper, guide)."""
    return transferred_bytes / period_s / KIB_BYTES if period_s > 0 else None


def iops(operations: float, period_s: float) -> float | None:
    """Operations per second: Sum(VolumeReadOps) / Period (guide)."""
    return operations / period_s if period_s > 0 else None


def throughput_bytes_per_s(operations_per_s: float, operation_bytes: float) -> float:
    """Throughput of operations of one size: IOPS times the size of an operation (whitepaper)."""
    return operations_per_s * operation_bytes


def average_size_kib(transferred_bytes: float, operations: float) -> float | None:
    """Mean size of an operation: Sum(VolumeReadBytes) / Sum(VolumeReadOps) / 1024 (guide)."""
    return transferred_bytes / operations / KIB_BYTES if operations > 0 else None


def average_latency_ms(total_time_s: float, operations: float) -> float | None:
    """Mean latency on a Nitro instance: Sum(VolumeTotalReadTime) / Sum(VolumeReadOps) * 1000 (whitepaper, guide)."""
    return total_time_s / operations * 1e3 if operations > 0 else None


def utilisation_percent(idle_time_s: float, period_s: float) -> float | None:
    """Share of the time with at least one operation: 100 - Sum(VolumeIdleTime) / Period * 100 (guide: time spent idle)."""
    return 100.0 - idle_time_s / period_s * 100.0 if period_s > 0 else None


def queue_length_wanted(provisioned_iops: float) -> float:
    """The mean queue length at which a volume of these IOPS is used and not yet overloaded: one per 1,000 (whitepaper)."""
    return provisioned_iops * QUEUE_LENGTH_PER_IOPS


def is_queue_too_long(queue_length: float, provisioned_iops: float) -> bool:
    """Whether Avg(VolumeQueueLength) is above one for every 1,000 provisioned IOPS, so that latency grows (whitepaper)."""
    return queue_length > queue_length_wanted(provisioned_iops)


def provisioned_percent(operations_per_s: float, provisioned_iops: float) -> float:
    """Delivered of the provisioned IOPS in per cent: VolumeThroughputPercentage (guide)."""
    return operations_per_s / provisioned_iops * 100.0


def burst_duration_s(credit_balance: float, burst_per_s: float, baseline_per_s: float) -> float | None:
    """How long credits last at full burst: balance / (burst - baseline) (whitepaper, guide).

    Credits and rates are of I/O (gp2) or of bytes (st1, sc1). None if the baseline is not below the burst: such a
    volume spends no credits.
    """
    spent_per_s = burst_per_s - baseline_per_s
    return credit_balance / spent_per_s if spent_per_s > 0 else None


def credits_last_s(balance: float, balance_before: float, period_s: float) -> float | None:
    """How long credits last if they go on to be spent as in the last period; None while they grow or stay."""
    spent = balance_before - balance
    return balance / spent * period_s if spent > 0 else None


def refill_duration_s(missing_credits: float, baseline_per_s: float) -> float | None:
    """How long an idle volume takes to earn missing credits at its baseline (guide: 5.4 million / baseline)."""
    return missing_credits / baseline_per_s if baseline_per_s > 0 else None


def is_exceeded(waited_s: float, period_s: float) -> bool:
    """The value of an exceeded check: whether requests waited for the limit for :data:`CONSISTENTLY_SHARE` of the time."""
    return waited_s >= CONSISTENTLY_SHARE * period_s
