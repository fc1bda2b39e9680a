"""Metrics of a provider as series of values, and the load that the series of one volume make together.

A value is the sum over a period, or per second already, or the mean of a state. Traps that are taken care of: an average of sums
is neither, and is refused; minutes in which a volume was not attached are absent, and are not zero; a volume and its instance
count the same requests.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import cast

from ....base.errors import InputError
from ..measured import BYTES_MAX, COUNT_MAX, Check, DeviceSamples, IntervalSample, Reserve, possible

SUM, RATE, AVERAGE = "Sum", "Rate", "Average"
EXCEEDED, BALANCE, OF_INSTANCE = "exceeded ", "balance ", " instance_"
"""In the names of figures that are the checks of a provider, reserves, and an instance's."""
SPARSE_MIN = 3
"""A metric with fewer values than these may have gaps between all of them."""
ONE_VALUE = "size.metrics.one_value"
"""The code of the error about a file that does not tell its period; its remedy is an option of ``size``."""
SPLIT, TOGETHER = ("read_ops", "write_ops", "read_bytes", "write_bytes"), ("ops", "bytes")
"""The figures that a load needs, counted apart or together."""


@dataclass(frozen=True)
class SeriesMetric:
    """What a metric means."""

    name: str
    figure: str
    """What it is a part of: ``read_ops``, ``queue``, ``exceeded iops``."""
    kind: str
    """:data:`SUM`, :data:`RATE` or :data:`AVERAGE`."""
    unit: float = 1.0
    """What one of its values is in bytes, seconds or milliseconds."""


@dataclass(frozen=True)
class ServiceMetrics:
    """The metrics of one service, and what to ask it for."""

    origin: str
    """Who counted, for a reader."""
    remedy: str
    """Which metrics are needed, and how they are asked for."""
    among: tuple[str, ...] = ()
    """The only types of volumes that its owner can have; empty where any may be."""


@dataclass(frozen=True)
class MetricSeries:
    """Values of one metric."""

    owner: str
    """Whose: a volume, a database, an instance."""
    metric: SeriesMetric
    family: ServiceMetrics
    statistic: str
    """Empty where it is not said."""
    points: dict[float, float]
    """By the time, in seconds since 1970."""
    note: str = ""
    """What a reader must know, if anything."""
    period_s: float | None = None
    """Where the file says it."""


def volumes(
    series: Sequence[MetricSeries], path: str, interval_s: float | None = None, wanted: Collection[str] = ()
) -> dict[str, DeviceSamples]:
    """The volumes of a file by their identifier.

    ``interval_s`` is the period if it does not follow from the distance of the values. Where all of ``wanted`` are there,
    others are not looked at. :class:`InputError` when figures are absent or of another statistic.
    """
    owners = {metric_series.owner for metric_series in series}
    chosen = owners.intersection(wanted) if owners.issuperset(wanted) and wanted else owners
    known = [metric_series for metric_series in series if metric_series.owner in chosen]
    merged: dict[str, dict[str, MetricSeries]] = defaultdict(dict)
    for metric_series in known:
        _refuse_statistic(metric_series, path)
        kept = merged[metric_series.owner].setdefault(metric_series.metric.name, replace(metric_series, points={}))
        _add(kept, metric_series, path)
    notes = [metric_series.note for metric_series in known if metric_series.note]
    measured = {name: list(metrics.values()) for name, metrics in merged.items()}
    measured = {name: metrics for name, metrics in measured.items() if any(metric.points for metric in metrics)}
    if not measured:
        raise InputError(
            f"{path} has metrics without a value",
            remedy="ask for a time in which the volume was attached",
            code="size.metrics.empty",
        )
    measured = _with_instance(measured)
    return {name: _measured(name, metrics, path, interval_s, notes) for name, metrics in measured.items()}


def _add(kept: MetricSeries, more: MetricSeries, path: str) -> None:
    """The older call's label is the metric alone: a second volume's values would take the first one's place.

    Pages of an answer have other times, and what was asked for twice has the same values.
    """
    if any(kept.points.get(at, value) != value for at, value in more.points.items()):
        raise InputError(
            f"{path} has two values of {more.metric.name} of {more.owner} for the same time, as of two volumes",
            remedy="let each Label say whose it is, `vol-0a1b VolumeReadOps`, or write a file for each volume",
            code="size.metrics.two_values",
        )
    kept.points.update(more.points)


def _with_instance(owners: dict[str, list[MetricSeries]]) -> dict[str, list[MetricSeries]]:
    """Checks and reserves of an instance, which are its volumes' too where both are in one file."""
    of_instance = {
        name: metrics
        for name, metrics in owners.items()
        if all(OF_INSTANCE in metric.metric.figure for metric in metrics)
    }
    if len(of_instance) != 1 or len(owners) == 1:
        return owners
    ((instance, shared),) = of_instance.items()
    return {name: [*shared, *metrics] for name, metrics in owners.items() if name != instance}


def _refuse_statistic(series: MetricSeries, path: str) -> None:
    """A sum of operations or bytes is a whole number. One that is not is an average of something else.

    A sum of a rate grows with the samples of a period; of a check it says no more and no less than an average.
    """
    metric, statistic = series.metric, series.statistic
    if metric.kind != SUM and statistic == SUM and not metric.figure.startswith(EXCEEDED):
        raise InputError(
            f"{path}: {metric.name} is a sum of rates",
            remedy="request it with Stat Average",
            code="size.metrics.statistic",
            data={"metric": metric.name, "statistic": statistic},
        )
    if metric.kind != SUM or metric.name.endswith("Time") or statistic == SUM:
        return
    if statistic or any(value != int(value) for value in series.points.values()):
        raise InputError(
            f"{path}: {metric.name} is {f'its {statistic}' if statistic not in ('', AVERAGE) else 'an average'},"
            " from which no rate follows",
            remedy=series.family.remedy,
            code="size.metrics.statistic",
            data={"metric": metric.name, "statistic": statistic or AVERAGE},
        )


def _refuse_twice(name: str, metrics: Sequence[MetricSeries], path: str) -> None:
    """What a volume and its instance or database count are the same requests: their sum would be twice the load."""
    for figure in (*SPLIT, *TOGETHER):
        several = sorted(metric.metric.name for metric in metrics if metric.metric.figure == figure)
        if len(several) > 1:
            raise InputError(
                f"{path}: {' and '.join(several)} of {name} count the same requests",
                remedy="ask for one of them, or let each Label say whose it is: `vol-0a1b VolumeReadOps`",
                code="size.metrics.counted_twice",
            )


def _measured(
    name: str, metrics: Sequence[MetricSeries], path: str, interval_s: float | None, notes: list[str]
) -> DeviceSamples:
    _refuse_twice(name, metrics, path)
    period_s = interval_s or _period_s(metrics, path)
    _refuse_other_periods(metrics, period_s, path, interval_s is not None)
    figures: dict[str, dict[float, float]] = {}
    for metric in metrics:
        scale = metric.metric.unit / period_s if metric.metric.kind == SUM else metric.metric.unit
        into = figures.setdefault(metric.metric.figure, {})
        most = BYTES_MAX if metric.metric.figure.endswith("bytes") else COUNT_MAX
        for at, value in metric.points.items():
            what = f"{path}: {metric.metric.name} of {name} at {utc(at)}, per second,"
            into[at] = into.get(at, 0.0) + possible(value * scale, what, most)
    split = set(SPLIT) <= set(figures)
    if not split and not set(TOGETHER) <= set(figures):
        raise _lacking(name, metrics, path)
    needed = SPLIT if split else TOGETHER
    valued = {figure: set(figures[figure]) for figure in needed}
    times = sorted(set.intersection(*valued.values()))
    if not times:
        raise InputError(
            f"{path}: the metrics of {name} have no time in common",
            remedy="ask for all of them at once, with one Period",
            code="size.metrics.no_common_time",
        )
    notes = notes + _left_out(metrics, needed, set.union(*valued.values()), times, period_s)
    samples = tuple(_sample(figures, at, period_s, split) for at in times)
    family = _family(metrics)
    return DeviceSamples(family.origin, name, samples, split, None, tuple(dict.fromkeys(notes)), among=family.among)


def _family(metrics: Sequence[MetricSeries]) -> ServiceMetrics:
    """The family of the metrics that make the load; of the first metric where there are none."""
    return next((metric.family for metric in metrics if metric.metric.figure in (*SPLIT, *TOGETHER)), metrics[0].family)


def _lacking(name: str, metrics: Sequence[MetricSeries], path: str) -> InputError:
    """Names what there is, and what is asked for in the words of the service that counted it."""
    return InputError(
        f"{path} lacks metrics of {name}: it has {', '.join(sorted({metric.metric.name for metric in metrics}))}",
        remedy=_family(metrics).remedy,
        code="size.metrics.lacking",
        data={"owner": name, "metrics": sorted({metric.metric.name for metric in metrics})},
    )


def _left_out(
    metrics: Sequence[MetricSeries], needed: Collection[str], every: set[float], used: Sequence[float], period_s: float
) -> list[str]:
    """The note of periods, from the first of any metric that is needed to the last of any, in which one has no value."""
    periods = round((max(every) - min(every)) / period_s) + 1
    if periods <= len(used):
        return []
    wanted = sorted(
        (metric for metric in metrics if metric.metric.figure in needed), key=lambda series: series.metric.name
    )
    lacking = [series for series in wanted if every - set(series.points)]
    left_out = f"{periods - len(used)} of {periods} periods are left out"
    short = [item for item in lacking if item.points and max(item.points) < max(every)]
    if short and len(short) < len(wanted):
        ends = ", ".join(f"{item.metric.name} ends at {utc(max(item.points))}" for item in short)
        return [f"{left_out}: {ends}, and the other metrics at {utc(max(every))}; ask again for the whole time"]
    names = [item.metric.name for item in lacking]
    whose = f"{' and '.join(names) or 'the metrics'} {'has' if len(names) == 1 else 'have'} no value there"
    return [f"{left_out}: {whose}, as when a volume is not attached"]


def utc(at: float) -> str:
    """A time for a reader."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _sample(figures: dict[str, dict[float, float]], at: float, period_s: float, split: bool) -> IntervalSample:
    if split:
        reads, writes = figures["read_ops"][at], figures["write_ops"][at]
        read_bytes, write_bytes = figures["read_bytes"][at], figures["write_bytes"][at]
    else:  # counted together, as by VolumeAvgIOPS: all are taken for writes
        reads, writes, read_bytes, write_bytes = 0.0, figures["ops"][at], 0.0, figures["bytes"][at]
    # A check is 0 or 1 for each minute; its sum over a longer period is the minutes in which it was 1.
    exceeded, balance = (
        {
            name.removeprefix(kind): min(1.0, points[at])
            for name, points in figures.items()
            if name.startswith(kind) and at in points
        }
        for kind in (EXCEEDED, BALANCE)
    )
    return IntervalSample(
        period_s,
        reads,
        writes,
        read_bytes,
        write_bytes,
        queue_length=figures.get("queue", {}).get(at),
        latency_ms=_latency_ms(figures, at, reads, writes),
        exceeded=cast("dict[Check, float]", exceeded),
        balance=cast("dict[Reserve, float]", balance),
        at_s=at,
    )


def _latency_ms(figures: dict[str, dict[float, float]], at: float, reads: float, writes: float) -> float | None:
    """Mean over all requests: from their time together, else from the means of all, or of reads and of writes."""
    busy_s, any_ms, read_ms, write_ms = (
        figures.get(name, {}).get(at) for name in ("busy_s", "any_ms", "read_ms", "write_ms")
    )
    if not reads + writes:
        return None
    if busy_s is not None:
        return 1000 * busy_s / (reads + writes)
    if any_ms is not None:
        return any_ms
    if read_ms is None or write_ms is None:
        return None
    return (read_ms * reads + write_ms * writes) / (reads + writes)


def _refuse_other_periods(metrics: Sequence[MetricSeries], period_s: float, path: str, was_said: bool) -> None:
    """A sum over five minutes that is divided by one is five times the load; where a period was said, the other way round."""
    for metric in sorted(metrics, key=lambda each: each.metric.name):
        times = sorted(metric.points)
        least_s = min((end - begin for begin, end in pairwise(times)), default=period_s)
        if least_s < period_s and was_said:
            raise InputError(
                f"{path}: values of {metric.metric.name} are {least_s:g} s apart, and --interval says {period_s:g} s",
                remedy=f"omit --interval, or use --interval {least_s:g}s",
                code="size.metrics.interval",
            )
        if least_s > period_s and len(times) >= SPARSE_MIN and not was_said and metric.metric.kind == SUM:
            raise InputError(
                f"{path}: {metric.metric.name} has a period of {least_s:g} s, and other metrics one of {period_s:g} s",
                remedy="ask for all of them with one Period",
                code="size.metrics.periods",
            )


def _period_s(metrics: Sequence[MetricSeries], path: str) -> float:
    """The usual distance of two values: periods that are missing make a few of them longer. Of too few, what the file says.

    What it says is not always right: a volume that is counted each five minutes has sums of five when each minute is asked for.
    """
    distances: Counter[float] = Counter()
    for metric in metrics:
        distances.update(end - begin for begin, end in pairwise(sorted(metric.points)))
    stated = {metric.period_s for metric in metrics if metric.period_s is not None}
    if len(stated) == 1 and (len(distances) != 1 or all(len(metric.points) <= SPARSE_MIN for metric in metrics)):
        return stated.pop()
    if not distances:
        raise InputError(
            f"{path} has one value of each metric, which tells no period",
            remedy="say it: --interval 60s",
            code=ONE_VALUE,
        )
    return distances.most_common(1)[0][0]


SHOWN_MAX = 40
"""Characters of a value that an error shows."""
YEAR_2100_S = 4_102_444_800.0
MILLISECONDS_MIN = 100_000_000_000.0
"""Seconds since 1970 are smaller until the year 5138: a larger number is of milliseconds."""
FLOAT_MAX = 1e300
"""JSON has integers that no float holds."""


def by_time(pairs: Iterable[tuple[object, object]], what: str) -> dict[float, float]:
    """Values by their time, in seconds since 1970. :class:`InputError` where one is none, or impossible, or there twice."""
    points: dict[float, float] = {}
    for time, value in pairs:
        at, where = unix_s(time, what), f"{what} at {time}"
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise InputError(
                f"{where} is {shown(value)}, which is not a number",
                remedy="ask again, or remove the value",
                code="size.metrics.not_a_number",
            )
        result = possible(math.inf if value > FLOAT_MAX else float(value), where, FLOAT_MAX)
        if points.get(at, result) != result:
            raise InputError(
                f"{where} has two values",
                remedy="ask again, and keep each answer in a file of its own",
                code="size.metrics.two_values",
            )
        points[at] = result
    return points


def shown(value: object) -> str:
    """A value of a document, for an error."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def unix_s(at: object, what: str) -> float:
    """Seconds since 1970; a time without a zone is UTC's. :class:`InputError` if it is not a time, or one before the service existed."""
    unix_s = math.nan
    with contextlib.suppress(ValueError, OverflowError):
        if isinstance(at, str):
            moment = datetime.fromisoformat(at.replace("/", "-").strip())
            unix_s = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        elif isinstance(at, int | float) and not isinstance(at, bool):
            unix_s = float(at) / (1000 if at > MILLISECONDS_MIN else 1)
    if not 0 < unix_s < YEAR_2100_S:
        raise InputError(
            f"{what} has a value at {shown(at)}, which is not a time of a metric",
            remedy="write the answer with `aws cloudwatch get-metric-data --output json`, and leave it as it is",
            code="size.metrics.time",
        )
    return unix_s
