"""Datapoints of metrics over periods, and the document in which ``aws cloudwatch get-metric-data`` gives them."""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...base.errors import InputError
from .cloudwatch import BY_NAME, METRICS, CloudWatchMetric
from .periods import MINUTE_S, Period
from .samples import CounterHistory

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
