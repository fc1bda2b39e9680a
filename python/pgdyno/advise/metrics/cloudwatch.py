"""CloudWatch's metrics of a volume: periods, datapoints, formulas, and each minute's value from cumulative counters.

Source: Amazon EC2 User Guide, "Amazon CloudWatch metrics for Amazon EBS" (awsdocs/amazon-ec2-user-guide e3707c43, 15 June 2023),
in the meaning that it gives for volumes of Nitro instances; the averages and checks that came later: AWS Compute Optimizer's
user guide, EBS volume metrics (read in November 2026); those of the instance: the same guide, "Amazon EBS-optimized instances".
"""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...base.errors import InputError
from .samples import CounterHistory

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


MINUTE_S = 60
"""CloudWatch's period of AWS/EBS: a volume is sampled once a minute."""
_SECOND_NS = 1_000_000_000
_WHOLE_NS = 50_000_000
"""What a period may lack and still be whole: one sample's distance from its deadline."""


@dataclass(frozen=True)
class Period:
    """One minute, or the part of it that was sampled."""

    unix_s: int
    """When the minute began, in seconds since 1970: the timestamp of its datapoint."""
    begin_ns: int
    """Begin of what was sampled of it, CLOCK_MONOTONIC."""
    end_ns: int
    whole: bool
    """Whether all of it was sampled."""

    @property
    def seconds(self) -> float:
        """How much of it was sampled."""
        return (self.end_ns - self.begin_ns) / _SECOND_NS


def minutes(samples: CounterHistory, *, begin_ns: int | None = None, end_ns: int | None = None) -> list[Period]:
    """The minutes from the first sample to the last, the earliest first; the outer ones may be parts.

    Minutes end where the wall clock's do, as CloudWatch's. With ``begin_ns`` the first begins there instead (a run's measure phase),
    and a whole minute is one of that phase; ``end_ns`` is where the last ends.
    """
    first_ns, last_ns = samples.begin_ns, samples.end_ns
    if begin_ns is None:
        unix_ns = samples.anchor.to_unix_ns(first_ns)
        origin_ns = samples.anchor.to_monotonic_ns(unix_ns - unix_ns % (MINUTE_S * _SECOND_NS))
    else:
        origin_ns, first_ns = begin_ns, max(first_ns, begin_ns)
    last_ns = last_ns if end_ns is None else min(last_ns, end_ns)
    minutes = []
    while origin_ns < last_ns:
        next_ns = origin_ns + MINUTE_S * _SECOND_NS
        begin, end = max(origin_ns, first_ns), min(next_ns, last_ns)
        if end > begin:
            whole = begin - origin_ns <= _WHOLE_NS and next_ns - end <= _WHOLE_NS
            unix_s = samples.anchor.to_unix_ns(origin_ns) // _SECOND_NS
            minutes.append(Period(unix_s, begin, end, whole))
        origin_ns = next_ns
    return minutes


def require_period(period_s: int) -> int:
    """A length of time over which minutes can be summed up. :class:`InputError` when it is none."""
    if period_s < MINUTE_S or period_s % MINUTE_S:
        raise InputError(
            f"{period_s} s is not a valid period: a volume is sampled once a minute",
            remedy="use a multiple of 60, such as 60 or 300",
        )
    return period_s


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
        return None if time_ns is None or operations is None else average_latency_ms(time_ns / 1e9, operations)

    return value


def _iops(samples: CounterHistory, period: Period) -> float | None:
    operations = _sum(samples, period, "read_ops", "write_ops")
    return None if operations is None else iops(operations, period.seconds)


def _throughput_kib_per_s(samples: CounterHistory, period: Period) -> float | None:
    moved = _sum(samples, period, "read_bytes", "write_bytes")
    return None if moved is None else bandwidth_kib_per_s(moved, period.seconds)


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
    return provisioned_percent(delivered, provisioned)


def _consumed(samples: CounterHistory, period: Period) -> float | None:
    return _whole_growth("io_units")(samples, period) if _is_provisioned(samples, period) else None


def _exceeded(counter: str) -> Value:
    def value(samples: CounterHistory, period: Period) -> float | None:
        waited_ns = samples.delta(counter, period.begin_ns, period.end_ns)
        return None if waited_ns is None else float(is_exceeded(waited_ns / 1e9, period.seconds))

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
        f"1 when operations waited for the volume's IOPS in {CONSISTENTLY_SHARE * 100:g} % of the minute or more, else 0",
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


ScanBy = Literal["TimestampDescending", "TimestampAscending"]

STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "Sum": sum,
    "Average": lambda values: sum(values) / len(values),
    "Minimum": min,
    "Maximum": max,
    "SampleCount": len,
}
"""Over a period's minutes. A volume of a Nitro instance gives one value a minute, so SampleCount counts minutes."""


@dataclass(frozen=True)
class Datapoint:
    """A statistic over one period."""

    unix_s: int
    value: float
    whole: bool
    """Whether all of the period was sampled; a sum over a part is that part's."""


@dataclass(frozen=True)
class DatapointSeries:
    """The datapoints of one metric of one volume, the earliest first."""

    volume: str
    metric: CloudWatchMetric
    statistic: str
    period_s: int
    points: tuple[Datapoint, ...]


def find_metrics(names: Sequence[str]) -> list[CloudWatchMetric]:
    """The metrics of those names, all when there are none. :class:`InputError` with the nearest name for one that is none."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        near = difflib.get_close_matches(unknown[0], BY_NAME, n=1, cutoff=0.5)
        raise InputError(
            f"there is no metric `{unknown[0]}`",
            remedy=f"did you mean {near[0]}?" if near else "`pgdyno metrics names` lists them",
        )
    return [BY_NAME[name] for name in names] if names else list(METRICS)


def series(
    samples: CounterHistory,
    minutes: Sequence[Period],
    metric: CloudWatchMetric,
    *,
    period_s: int = MINUTE_S,
    statistic: str = "",
    origin_s: int = 0,
) -> DatapointSeries:
    """One metric over periods of several minutes; minutes in which the volume does not have it are left out.

    The statistic is the metric's own unless another is named. Periods begin at multiples of their length since 1970, as
    CloudWatch's do, or since ``origin_s`` (the begin of a run's measure phase).
    """
    statistic = statistic or metric.statistic
    groups: dict[int, list[tuple[float, bool]]] = {}
    for minute in minutes:
        value = metric.value(samples, minute)
        if value is not None:
            begin_s = (minute.unix_s - origin_s) // period_s * period_s + origin_s
            groups.setdefault(begin_s, []).append((value, minute.whole))
    points = [
        Datapoint(begin_s, float(STATISTICS[statistic]([value for value, _ in group])), _is_whole(group, period_s))
        for begin_s, group in groups.items()
    ]
    return DatapointSeries(samples.volume, metric, statistic, period_s, tuple(points))


def _is_whole(result: Sequence[tuple[float, bool]], period_s: int) -> bool:
    return len(result) * MINUTE_S == period_s and all(whole for _, whole in result)


def document(series: Sequence[DatapointSeries], scan_by: ScanBy = "TimestampDescending") -> dict[str, Any]:
    """The answer of get-metric-data: the newest datapoint first, as CloudWatch does by default.

    Metrics without a datapoint are left out. A label is the metric's name; of several volumes, the volume's before it, also where the
    metric is their instance's: what sizes a volume wants to know of both. Messages say which datapoints are of a part of their period.
    """
    several = len({datapoint_series.volume for datapoint_series in series}) > 1
    results = [_result(datapoint_series, several, scan_by) for datapoint_series in series if datapoint_series.points]
    partial = sorted(
        {point.unix_s for datapoint_series in series for point in datapoint_series.points if not point.whole}
    )
    named = ", ".join(timestamp(unix_s) for unix_s in partial)
    messages = [{"Code": "PartialPeriod", "Value": f"only a part of these periods was sampled: {named}"}]
    return {"MetricDataResults": results, "Messages": messages if partial else []}


def _result(series: DatapointSeries, several: bool, scan_by: ScanBy) -> dict[str, Any]:
    points = series.points if scan_by == "TimestampAscending" else series.points[::-1]
    return {
        "Id": _identifier(series, several),
        "Label": f"{series.volume} {series.metric.name}" if several else series.metric.name,
        "Timestamps": [timestamp(point.unix_s) for point in points],
        "Values": [point.value for point in points],
        "StatusCode": "Complete",
    }


def _identifier(series: DatapointSeries, several: bool) -> str:
    """An Id as CloudWatch allows it: letters, digits and underscores after a small letter."""
    name = series.metric.name[0].lower() + series.metric.name[1:]
    text = f"v_{series.volume}_{name}" if several else name
    return "".join(sign if sign.isalnum() and sign.isascii() else "_" for sign in text)


def timestamp(unix_s: int) -> str:
    """ISO 8601 in UTC."""
    return dt.datetime.fromtimestamp(unix_s, dt.UTC).isoformat()
