"""What ``aws cloudwatch get-metric-data`` and ``get-metric-statistics`` print, of EBS volumes and RDS instances.

Traps that are taken care of: the newest value comes first; operations and bytes of EBS are sums of a period, those of
RDS are per second; an average of ``VolumeReadOps`` is neither, and is refused; minutes in which the volume was not attached
are absent, and are not zero; a page may not be the last one.

Names and units: Amazon EC2 User Guide (awsdocs/amazon-ec2-user-guide e3707c43, using_cloudwatch_ebs.md, 15 June 2023),
Amazon RDS User Guide (awsdocs/amazon-rds-user-guide f2e9ed35, rds-metrics.md, June 2023); the form of the answer: Amazon
CloudWatch API, GetMetricData and GetMetricStatistics.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, cast

from pgdyno.errors import InputError
from pgdyno.size.measured import Check, Measured, Reserve, Sample
from pgdyno.size.reading.possible import BYTES_MAX, COUNT_MAX, possible

SUM, RATE, AVERAGE = "Sum", "Rate", "Average"
"""A value is the sum over the period, or per second already, or the mean of a state."""

METRICS: dict[str, tuple[str, str, float]] = {
    "VolumeReadOps": ("read_ops", SUM, 1),
    "VolumeWriteOps": ("write_ops", SUM, 1),
    "VolumeReadBytes": ("read_bytes", SUM, 1),
    "VolumeWriteBytes": ("write_bytes", SUM, 1),
    "VolumeTotalReadTime": ("busy_s", SUM, 1),
    "VolumeTotalWriteTime": ("busy_s", SUM, 1),
    "VolumeQueueLength": ("queue", AVERAGE, 1),
    "VolumeAvgReadLatency": ("read_ms", AVERAGE, 1),
    "VolumeAvgWriteLatency": ("write_ms", AVERAGE, 1),
    "VolumeIOPSExceededCheck": ("exceeded iops", AVERAGE, 1),
    "VolumeThroughputExceededCheck": ("exceeded throughput", AVERAGE, 1),
    "BurstBalance": ("balance burst", AVERAGE, 0.01),
    "VolumeAvgIOPS": ("ops", RATE, 1),
    "VolumeAvgThroughput": ("bytes", RATE, 1024),
    "EBSReadOps": ("read_ops", SUM, 1),
    "EBSWriteOps": ("write_ops", SUM, 1),
    "EBSReadBytes": ("read_bytes", SUM, 1),
    "EBSWriteBytes": ("write_bytes", SUM, 1),
    "InstanceEBSIOPSExceededCheck": ("exceeded instance_iops", AVERAGE, 1),
    "InstanceEBSThroughputExceededCheck": ("exceeded instance_throughput", AVERAGE, 1),
    "EBSIOBalance%": ("balance instance_iops", AVERAGE, 0.01),
    "EBSByteBalance%": ("balance instance_throughput", AVERAGE, 0.01),
    "ReadIOPS": ("read_ops", RATE, 1),
    "WriteIOPS": ("write_ops", RATE, 1),
    "ReadThroughput": ("read_bytes", RATE, 1),
    "WriteThroughput": ("write_bytes", RATE, 1),
    "ReadLatency": ("read_ms", AVERAGE, 1000),
    "WriteLatency": ("write_ms", AVERAGE, 1000),
    "DiskQueueDepth": ("queue", AVERAGE, 1),
}
"""What each metric is for: the figure, how its values are to be taken, and their unit."""
_EXCEEDED, _BALANCE, _OF_INSTANCE = "exceeded ", "balance ", " instance_"
"""In the names of figures that are the checks of a provider, reserves, and an instance's."""
_NAME = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(METRICS)})(?![A-Za-z%])", re.IGNORECASE)
_EXACT = {name.lower(): name for name in METRICS}
_VOLUME = re.compile(r"vol-[0-9a-f]+")
_REMEDY = "ask for VolumeReadOps, VolumeWriteOps, VolumeReadBytes and VolumeWriteBytes with Stat Sum, at a Period of 60"
SHOWN_MAX = 40
"""Characters of a value that an error shows."""
YEAR_2100_S = 4_102_444_800.0
FLOAT_MAX = 1e300
"""JSON has integers that no float holds."""
SPARSE_MIN = 3
"""A metric with fewer values than these may have gaps between all of them."""

Pairs = list[tuple[object, object]]
"""Times and values as they stand in the file."""


@dataclass(frozen=True)
class Series:
    """Values of one metric."""

    owner: str
    """Whose: a volume, a database, an instance."""
    metric: str
    statistic: str
    """Empty where it is not said."""
    points: dict[float, float]
    """By the time, in seconds since 1970."""
    note: str
    """What a reader must know, if anything."""


def read(text: str, path: str, interval_s: float | None = None, wanted: Collection[str] = ()) -> dict[str, Measured]:
    """The volumes of a file by their identifier, or one called ``volume``.

    ``interval_s`` is the period if it does not follow from the distance of the values. Where all of ``wanted`` are there,
    others are not looked at. :class:`InputError` when figures are absent or of another statistic.
    """
    found = list(_known(text, path))
    if not found:
        raise InputError(f"{path} has no metric of a volume that is known here", remedy=_REMEDY)
    owners = {one.owner for one in found}
    chosen = owners.intersection(wanted) if owners.issuperset(wanted) and wanted else owners
    series: dict[str, dict[str, dict[float, float]]] = defaultdict(lambda: defaultdict(dict))
    for one in found:
        if one.owner in chosen:
            _refuse_statistic(one, path)
            _refuse_two_values(one, series[one.owner][one.metric], path)
            series[one.owner][one.metric].update(one.points)
    notes = [one.note for one in found if one.owner in chosen and one.note]
    measured = {name: metrics for name, metrics in series.items() if any(metrics.values())}
    if not measured:
        raise InputError(
            f"{path} has metrics without a value", remedy="ask for a time in which the volume was attached"
        )
    measured = _with_instance(measured)
    return {name: _measured(name, metrics, path, interval_s, notes) for name, metrics in measured.items()}


def _with_instance(owners: dict[str, dict[str, dict[float, float]]]) -> dict[str, dict[str, dict[float, float]]]:
    """Checks and reserves of an instance, which are its volumes' too where both are in one file."""
    of_instance = {
        name: metrics
        for name, metrics in owners.items()
        if all(_OF_INSTANCE in METRICS[metric][0] for metric in metrics)
    }
    if len(of_instance) != 1 or len(owners) == 1:
        return owners
    ((instance, shared),) = of_instance.items()
    return {name: {**shared, **metrics} for name, metrics in owners.items() if name != instance}


def _known(text: str, path: str) -> Iterator[Series]:
    """The metrics that mean something here."""
    for label, identifier, statistic, pairs, note in _series(text, path):
        # A label is the caller's to choose; where it does not name the metric the query's own name may.
        found = _NAME.search(label) or _NAME.search(identifier)
        if found is None:
            continue
        points = _by_time(pairs, f"{path}: {label or identifier}")
        yield Series(_owner(label, found), _EXACT[found[0].lower()], statistic, points, note)


def _refuse_two_values(more: Series, known: dict[float, float], path: str) -> None:
    """The older call's label is the metric alone: a second volume's values would take the first one's place.

    Pages of an answer have other times, and what was asked for twice has the same values.
    """
    if any(known.get(at, value) != value for at, value in more.points.items()):
        raise InputError(
            f"{path} has two values of {more.metric} of {more.owner} for the same time, as of two volumes",
            remedy="let each Label say whose it is, `vol-0a1b VolumeReadOps`, or write a file for each volume",
        )


def _series(text: str, path: str) -> Iterator[tuple[str, str, str, Pairs, str]]:
    """Label, name of the query, statistic (empty: not said), times and values, and what a reader must know."""
    for document in _documents(text, path):
        if not isinstance(document, dict):
            raise _not_an_answer(path, f"it has {_shown(document)} where an object belongs")
        more = "CloudWatch has more pages than this file" if document.get("NextToken") else ""
        for result in _list(document, "MetricDataResults", path, "the answer"):
            label, identifier = str(result.get("Label", "")), str(result.get("Id", ""))
            status = str(result.get("StatusCode", "Complete"))
            if status not in ("Complete", "PartialData"):
                raise InputError(f"{path}: CloudWatch gave up on {label or identifier}: {status}", remedy="ask again")
            note = more or ("CloudWatch calls its answer partial" if status == "PartialData" else "")
            yield label, identifier, "", _pairs(result, path, label or identifier or "a metric"), note
        yield from _of_statistics(document, path)


def _pairs(result: dict[str, Any], path: str, metric: str) -> Pairs:
    times, values = result.get("Timestamps"), result.get("Values")
    if not isinstance(times, list) or not isinstance(values, list):
        raise _not_an_answer(path, f"{metric} has no lists of Timestamps and Values")
    if len(times) != len(values):
        raise InputError(
            f"{path}: {metric} has {len(times)} Timestamps and {len(values)} Values",
            remedy="ask again, and keep the whole answer",
        )
    return list(zip(times, values, strict=True))


def _by_time(pairs: Pairs, what: str) -> dict[float, float]:
    """Values by their time, in seconds since 1970. :class:`InputError` where one is none, or impossible, or there twice."""
    points: dict[float, float] = {}
    for time, value in pairs:
        at, where = _unix_s(time, what), f"{what} at {time}"
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise InputError(
                f"{where} is {_shown(value)}, which is not a number", remedy="ask again, or remove the value"
            )
        one = possible(math.inf if value > FLOAT_MAX else float(value), where, FLOAT_MAX)
        if points.get(at, one) != one:
            raise InputError(f"{where} has two values", remedy="ask again, and keep each answer in a file of its own")
        points[at] = one
    return points


def _of_statistics(document: dict[str, Any], path: str) -> Iterator[tuple[str, str, str, Pairs, str]]:
    """The output of the older call: the statistic that the metric's figure is made of, else the one that is there."""
    label = str(document.get("Label", ""))
    points = _list(document, "Datapoints", path, label or "the answer")
    found = _NAME.search(label)
    fitting = SUM if found is not None and METRICS[_EXACT[found[0].lower()]][1] == SUM else AVERAGE
    there = [statistic for statistic in (SUM, AVERAGE) if any(statistic in point for point in points)]
    for statistic in [fitting] if fitting in there else there:
        yield label, "", statistic, [(one.get("Timestamp"), one[statistic]) for one in points if statistic in one], ""


def _list(document: dict[str, Any], key: str, path: str, where: str) -> list[dict[str, Any]]:
    """The objects below a key; none when it is not there."""
    found = document.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise _not_an_answer(path, f"{key} of {where} is not a list of objects")
    return found


def _not_an_answer(path: str, why: str) -> InputError:
    return InputError(
        f"{path} is JSON, and not as CloudWatch answers: {why}",
        remedy="write it with `aws cloudwatch get-metric-data --output json`, without --query",
    )


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def _documents(text: str, path: str) -> Iterator[Any]:
    """One document, or several one after the other (pages), or a list of them."""
    decoder, at = json.JSONDecoder(), 0
    text = text.strip()
    while at < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path} is not JSON: {error}", remedy="write it with `aws cloudwatch get-metric-data --output json`"
            ) from error
        yield from document if isinstance(document, list) else [document]
        at += len(text[at:]) - len(text[at:].lstrip())


def _unix_s(at: object, what: str) -> float:
    """Seconds since 1970. :class:`InputError` if it is not a time, or one before the service existed."""
    found = math.nan
    with contextlib.suppress(ValueError, OverflowError):
        if isinstance(at, str):
            found = datetime.fromisoformat(at).timestamp()
        elif isinstance(at, int | float) and not isinstance(at, bool):
            found = float(at)
    if not 0 < found < YEAR_2100_S:
        raise InputError(
            f"{what} has a value at {_shown(at)}, which is not a time of CloudWatch",
            remedy="write the answer with `aws cloudwatch get-metric-data --output json`, and leave it as it is",
        )
    return found


def _owner(label: str, found: re.Match[str]) -> str:
    """Whose metric it is: of ``vol-0a1b VolumeReadOps`` the volume, of ``orders ReadIOPS`` the database."""
    volume = _VOLUME.search(label)
    if volume:
        return volume[0]
    return (label[: found.start()].strip() if found.string is label else "") or "volume"


def _refuse_statistic(series: Series, path: str) -> None:
    """A sum of operations or bytes is a whole number. One that is not is an average of something else.

    A sum of a rate grows with the samples of a period; of a check it says no more and no less than an average.
    """
    metric, statistic = series.metric, series.statistic
    figure, kind, _ = METRICS[metric]
    if kind != SUM and statistic == SUM and not figure.startswith(_EXCEEDED):
        raise InputError(f"{path}: {metric} is a sum of rates", remedy="request it with Stat Average")
    if kind != SUM or metric.endswith("Time") or statistic == SUM:
        return
    if statistic == AVERAGE or any(value != int(value) for value in series.points.values()):
        raise InputError(f"{path}: {metric} is an average, from which no rate follows", remedy=_REMEDY)


def _refuse_twice(name: str, metrics: dict[str, dict[float, float]], path: str) -> None:
    """What a volume and its instance or database count are the same requests: their sum would be twice the load."""
    for figure in ("read_ops", "write_ops", "read_bytes", "write_bytes"):
        several = [metric for metric in sorted(metrics) if METRICS[metric][0] == figure]
        if len(several) > 1:
            raise InputError(
                f"{path}: {' and '.join(several)} of {name} count the same requests",
                remedy="ask for one of them, or let each Label say whose it is: `vol-0a1b VolumeReadOps`",
            )


def _measured(
    name: str, metrics: dict[str, dict[float, float]], path: str, interval_s: float | None, notes: list[str]
) -> Measured:
    _refuse_twice(name, metrics, path)
    period_s = interval_s or _period_s(metrics, path)
    _refuse_other_periods(metrics, period_s, path, interval_s is not None)
    figures: dict[str, dict[float, float]] = {}
    for metric, points in metrics.items():
        figure, kind, unit = METRICS[metric]
        scale = unit / period_s if kind == SUM else unit
        into = figures.setdefault(figure, {})
        most = BYTES_MAX if figure.endswith("bytes") else COUNT_MAX
        for at, value in points.items():
            rate = possible(value * scale, f"{path}: {metric} of {name} at {_utc(at)}, per second,", most)
            into[at] = into.get(at, 0.0) + rate
    split = {"read_ops", "write_ops", "read_bytes", "write_bytes"} <= set(figures)
    if not split and not {"ops", "bytes"} <= set(figures):
        raise InputError(f"{path} lacks metrics of {name}: it has {', '.join(sorted(metrics))}", remedy=_REMEDY)
    needed = ("read_ops", "write_ops", "read_bytes", "write_bytes") if split else ("ops", "bytes")
    valued = {figure: set(figures[figure]) for figure in needed}
    times = sorted(set.intersection(*valued.values()))
    if not times:
        raise InputError(
            f"{path}: the metrics of {name} have no time in common",
            remedy="ask for all of them at once, with one Period",
        )
    notes = notes + _left_out(metrics, needed, set.union(*valued.values()), len(times), period_s)
    samples = tuple(_sample(figures, at, period_s, split) for at in times)
    return Measured("CloudWatch", name, samples, split, None, tuple(dict.fromkeys(notes)))


def _left_out(
    metrics: dict[str, dict[float, float]], needed: Collection[str], every: set[float], used: int, period_s: float
) -> list[str]:
    """The note of periods, from the first of any metric that is needed to the last of any, in which one has no value."""
    periods = round((max(every) - min(every)) / period_s) + 1
    if periods <= used:
        return []
    lacking = [metric for metric in sorted(metrics) if METRICS[metric][0] in needed and every - set(metrics[metric])]
    whose = f"{' and '.join(lacking) or 'the metrics'} {'has' if len(lacking) == 1 else 'have'} no value there"
    return [f"{periods - used} of {periods} periods are left out: {whose}, as when a volume is not attached"]


def _utc(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _sample(figures: dict[str, dict[float, float]], at: float, period_s: float, split: bool) -> Sample:
    if split:
        reads, writes = figures["read_ops"][at], figures["write_ops"][at]
        read_bytes, write_bytes = figures["read_bytes"][at], figures["write_bytes"][at]
    else:  # VolumeAvgIOPS and VolumeAvgThroughput are sums of reads and writes; all are taken for writes
        reads, writes, read_bytes, write_bytes = 0.0, figures["ops"][at], 0.0, figures["bytes"][at]
    # A check is 0 or 1 for each minute; its sum over a longer period is the minutes in which it was 1.
    exceeded, balance = (
        {
            name.removeprefix(kind): min(1.0, points[at])
            for name, points in figures.items()
            if name.startswith(kind) and at in points
        }
        for kind in (_EXCEEDED, _BALANCE)
    )
    return Sample(
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
    """Mean over all requests: from their time together, else from the means of reads and of writes."""
    busy_s, read_ms, write_ms = (figures.get(name, {}).get(at) for name in ("busy_s", "read_ms", "write_ms"))
    if not reads + writes:
        return None
    if busy_s is not None:
        return 1000 * busy_s / (reads + writes)
    if read_ms is None or write_ms is None:
        return None
    return (read_ms * reads + write_ms * writes) / (reads + writes)


def _refuse_other_periods(metrics: dict[str, dict[float, float]], period_s: float, path: str, was_said: bool) -> None:
    """A sum over five minutes that is divided by one is five times the load; where a period was said, the other way round."""
    for metric, points in sorted(metrics.items()):
        times = sorted(points)
        least_s = min((end - begin for begin, end in pairwise(times)), default=period_s)
        if least_s < period_s and was_said:
            raise InputError(
                f"{path}: values of {metric} are {least_s:g} s apart, and --interval says {period_s:g} s",
                remedy=f"omit --interval, or use --interval {least_s:g}s",
            )
        if least_s > period_s and len(times) >= SPARSE_MIN and not was_said and METRICS[metric][1] == SUM:
            raise InputError(
                f"{path}: {metric} has a period of {least_s:g} s, and other metrics one of {period_s:g} s",
                remedy="ask for all of them with one Period",
            )


def _period_s(metrics: dict[str, dict[float, float]], path: str) -> float:
    """The usual distance of two values: periods that are missing make a few of them longer."""
    distances: Counter[float] = Counter()
    for points in metrics.values():
        times = sorted(points)
        distances.update(end - begin for begin, end in pairwise(times))
    if not distances:
        raise InputError(f"{path} has one value of each metric, which tells no period", remedy="say it: --interval 60s")
    return distances.most_common(1)[0][0]
