"""CloudWatch's metrics of a volume: their names, units and statistics, and each minute's value from cumulative counters.

Source: Amazon EC2 User Guide, "Amazon CloudWatch metrics for Amazon EBS" (awsdocs/amazon-ec2-user-guide e3707c43, 15 June 2023),
in the meaning that it gives for volumes of Nitro instances; the averages and checks that came later: AWS Compute Optimizer's
user guide, EBS volume metrics (read in November 2026); those of the instance: the same guide, "Amazon EBS-optimized instances".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import formulas
from .periods import Period
from .samples import CounterHistory

PROVISIONED_IOPS = "io"
"""Types of Provisioned IOPS begin so (io1, io2, io2bx): some metrics are theirs alone."""
EBS, EC2 = "AWS/EBS", "AWS/EC2"
"""Namespaces: of a volume, and of the instance whose limits its volumes share."""

Value = Callable[["CounterHistory", "Period"], "float | None"]


@dataclass(frozen=True)
class CloudWatchMetric:
    """One metric. ``value`` is None where a volume does not have it, or where it was not recorded."""

    name: str
    unit: str
    """A unit of CloudWatch; ``None`` is one of them, for checks."""
    statistic: str
    """The statistic that is meaningful for a period: Sum, Average or Maximum."""
    meaning: str
    value: Value
    namespace: str = EBS


def _growth(counter: str, per: float = 1.0) -> Value:
    def value(samples: CounterHistory, period: Period) -> float | None:
        grown = samples.delta(counter, period.begin_ns, period.end_ns)
        return None if grown is None else grown / per

    return value


def _whole_growth(counter: str) -> Value:
    """Of what is counted in whole numbers. Between two samples a counter is a fraction; minutes still add up when it is rounded
    where one ends and the next begins.
    """

    def value(samples: CounterHistory, period: Period) -> float | None:
        begin, end = samples.at(counter, period.begin_ns), samples.at(counter, period.end_ns)
        return None if begin is None or end is None else float(round(end) - round(begin))

    return value


def _level(counter: str, per: float) -> Value:
    """What a counter was when the minute ended."""

    def value(samples: CounterHistory, period: Period) -> float | None:
        level = samples.at(counter, period.end_ns)
        return None if level is None else level / per

    return value


def _sum(samples: CounterHistory, period: Period, *counters: str) -> float | None:
    grown = [samples.delta(counter, period.begin_ns, period.end_ns) for counter in counters]
    return None if None in grown else sum(value for value in grown if value is not None)


def _idle_s(samples: CounterHistory, period: Period) -> float | None:
    busy_ns = samples.delta("busy_ns", period.begin_ns, period.end_ns)
    return None if busy_ns is None else max(0.0, period.seconds - busy_ns / 1e9)


def _queue_length(samples: CounterHistory, period: Period) -> float | None:
    queue_ns = samples.delta("queue_time_ns", period.begin_ns, period.end_ns)
    return None if queue_ns is None else queue_ns / 1e9 / period.seconds


def _latency_ms(operation: str) -> Value:
    def value(samples: CounterHistory, period: Period) -> float | None:
        time_ns = _sum(samples, period, f"{operation}_time_ns")
        operations = _sum(samples, period, f"{operation}_ops")
        return None if time_ns is None or operations is None else formulas.average_latency_ms(time_ns / 1e9, operations)

    return value


def _iops(samples: CounterHistory, period: Period) -> float | None:
    operations = _sum(samples, period, "read_ops", "write_ops")
    return None if operations is None else formulas.iops(operations, period.seconds)


def _throughput_kib_per_s(samples: CounterHistory, period: Period) -> float | None:
    moved = _sum(samples, period, "read_bytes", "write_bytes")
    return None if moved is None else formulas.bandwidth_kib_per_s(moved, period.seconds)


def provisioned_iops(samples: CounterHistory, period: Period) -> float | None:
    """The IOPS that the volume sustained when the minute ended; None if it has no limit or is not emulated."""
    limit = samples.spec_at(period.end_ns).get("limits", {}).get("iops")
    return None if limit is None else float(limit)


def _is_provisioned(samples: CounterHistory, period: Period) -> bool:
    return str(samples.spec_at(period.end_ns).get("type", "")).startswith(PROVISIONED_IOPS)


def _provisioned_percent(samples: CounterHistory, period: Period) -> float | None:
    delivered, provisioned = _iops(samples, period), provisioned_iops(samples, period)
    if delivered is None or provisioned is None or not _is_provisioned(samples, period):
        return None
    return formulas.provisioned_percent(delivered, provisioned)


def _consumed(samples: CounterHistory, period: Period) -> float | None:
    return _whole_growth("io_units")(samples, period) if _is_provisioned(samples, period) else None


def _exceeded(counter: str) -> Value:
    def value(samples: CounterHistory, period: Period) -> float | None:
        waited_ns = samples.delta(counter, period.begin_ns, period.end_ns)
        return None if waited_ns is None else float(formulas.is_exceeded(waited_ns / 1e9, period.seconds))

    return value


def _stalled(samples: CounterHistory, period: Period) -> float | None:
    """Whether operations waited all the minute and none was completed."""
    idle_s, completed = _idle_s(samples, period), _sum(samples, period, "read_ops", "write_ops")
    if idle_s is None or completed is None or not period.whole:
        return None
    return float(completed == 0 and idle_s < _NEVER_IDLE_S)


_NEVER_IDLE_S = 0.001
"""A minute with less idle time has none: what remains is rounding."""

METRICS: tuple[CloudWatchMetric, ...] = (
    CloudWatchMetric(
        "VolumeReadBytes", "Bytes", "Sum", "bytes read by operations that completed", _whole_growth("read_bytes")
    ),
    CloudWatchMetric(
        "VolumeWriteBytes", "Bytes", "Sum", "bytes written by operations that completed", _whole_growth("write_bytes")
    ),
    CloudWatchMetric("VolumeReadOps", "Count", "Sum", "reads that completed", _whole_growth("read_ops")),
    CloudWatchMetric("VolumeWriteOps", "Count", "Sum", "writes that completed", _whole_growth("write_ops")),
    CloudWatchMetric(
        "VolumeTotalReadTime",
        "Seconds",
        "Sum",
        "total time of the completed reads: more than the period if several were outstanding at the same time",
        _growth("read_time_ns", 1e9),
    ),
    CloudWatchMetric(
        "VolumeTotalWriteTime", "Seconds", "Sum", "total time of the completed writes", _growth("write_time_ns", 1e9)
    ),
    CloudWatchMetric("VolumeIdleTime", "Seconds", "Sum", "time without an operation in the volume", _idle_s),
    CloudWatchMetric(
        "VolumeQueueLength", "Count", "Average", "mean number of operations waiting for completion", _queue_length
    ),
    CloudWatchMetric(
        "VolumeThroughputPercentage",
        "Percent",
        "Average",
        "share of the provisioned IOPS that was delivered; Provisioned IOPS volumes only",
        _provisioned_percent,
    ),
    CloudWatchMetric(
        "VolumeConsumedReadWriteOps",
        "Count",
        "Sum",
        "I/O units charged after splitting and merging, of 256 KiB where the type does not count in others;"
        " Provisioned IOPS volumes only",
        _consumed,
    ),
    CloudWatchMetric(
        "BurstBalance",
        "Percent",
        "Average",
        "credits left at the end of the minute, as a share of the capacity; volumes with credits only",
        _level("burst_balance_ppm", 1e4),
    ),
    CloudWatchMetric(
        "FastSnapshotRestoreCreditsBucketSize",
        "None",
        "Maximum",
        "volume creation credits that the volume's snapshot keeps at most; volumes with `init=fsr` only",
        _level("restore_credits_most_millionths", 1e6),
    ),
    CloudWatchMetric(
        "FastSnapshotRestoreCreditsBalance",
        "None",
        "Maximum",
        "volume creation credits of the snapshot at the end of the minute; volumes with `init=fsr` only",
        _level("restore_credits_millionths", 1e6),
    ),
    CloudWatchMetric("VolumeAvgReadLatency", "Milliseconds", "Average", "mean latency of reads", _latency_ms("read")),
    CloudWatchMetric(
        "VolumeAvgWriteLatency", "Milliseconds", "Average", "mean latency of writes", _latency_ms("write")
    ),
    CloudWatchMetric("VolumeAvgIOPS", "Count/Second", "Average", "operations completed per second", _iops),
    CloudWatchMetric(
        "VolumeAvgThroughput",
        "Kilobytes/Second",
        "Average",
        "KiB read and written per second (CloudWatch's unit has the decimal name)",
        _throughput_kib_per_s,
    ),
    CloudWatchMetric(
        "VolumeIOPSExceededCheck",
        "None",
        "Maximum",
        f"1 when operations waited for the volume's IOPS in {formulas.CONSISTENTLY_SHARE * 100:g} % of the minute or more, else 0",
        _exceeded("exceeded_iops_ns"),
    ),
    CloudWatchMetric(
        "VolumeThroughputExceededCheck",
        "None",
        "Maximum",
        "the same for the volume's throughput",
        _exceeded("exceeded_throughput_ns"),
    ),
    CloudWatchMetric(
        "VolumeStalledIOCheck",
        "None",
        "Maximum",
        "1 if operations waited during the whole minute and none completed, else 0; whole minutes only",
        _stalled,
    ),
    CloudWatchMetric(
        "InstanceEBSIOPSExceededCheck",
        "None",
        "Maximum",
        "the exceeded check of the IOPS that the instance's volumes share; instances with limits only",
        _exceeded("instance_exceeded_iops_ns"),
        EC2,
    ),
    CloudWatchMetric(
        "InstanceEBSThroughputExceededCheck",
        "None",
        "Maximum",
        "the same for their bandwidth",
        _exceeded("instance_exceeded_throughput_ns"),
        EC2,
    ),
    CloudWatchMetric(
        "EBSIOBalance%",
        "Percent",
        "Average",
        "rest of the instance's IOPS burst reserve at the end of the minute; burstable instances only",
        _level("instance_iops_balance_ppm", 1e4),
        EC2,
    ),
    CloudWatchMetric(
        "EBSByteBalance%",
        "Percent",
        "Average",
        "the same for the bandwidth reserve",
        _level("instance_throughput_balance_ppm", 1e4),
        EC2,
    ),
)
"""Every metric, in the order of the guide; those of the instance at the end."""

BY_NAME = {metric.name: metric for metric in METRICS}
