"""What ``aws cloudwatch get-metric-data`` and ``get-metric-statistics`` print, of EBS volumes and RDS instances.

Traps that are taken care of: the newest value comes first; operations and bytes of EBS are sums of a period, those of
RDS are per second; an average of ``VolumeReadOps`` is neither, and is refused; minutes in which the volume was not attached
are absent, and are not zero; a page may not be the last one.

Names and units: Amazon EC2 User Guide (awsdocs/amazon-ec2-user-guide e3707c43, using_cloudwatch_ebs.md, 15 June 2023),
Amazon RDS User Guide (awsdocs/amazon-rds-user-guide f2e9ed35, rds-metrics.md, June 2023); the form of the answer: Amazon
CloudWatch API, GetMetricData and GetMetricStatistics.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from pgdyno.errors import InputError
from pgdyno.size.measured import Measured, Sample

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
    "VolumeIOPSExceededCheck": ("limited", AVERAGE, 1),
    "VolumeThroughputExceededCheck": ("limited", AVERAGE, 1),
    "VolumeAvgIOPS": ("ops", RATE, 1),
    "VolumeAvgThroughput": ("bytes", RATE, 1024),
    "EBSReadOps": ("read_ops", SUM, 1),
    "EBSWriteOps": ("write_ops", SUM, 1),
    "EBSReadBytes": ("read_bytes", SUM, 1),
    "EBSWriteBytes": ("write_bytes", SUM, 1),
    "InstanceEBSIOPSExceededCheck": ("limited", AVERAGE, 1),
    "InstanceEBSThroughputExceededCheck": ("limited", AVERAGE, 1),
    "ReadIOPS": ("read_ops", RATE, 1),
    "WriteIOPS": ("write_ops", RATE, 1),
    "ReadThroughput": ("read_bytes", RATE, 1),
    "WriteThroughput": ("write_bytes", RATE, 1),
    "DiskQueueDepth": ("queue", AVERAGE, 1),
}
"""What each metric is for: the figure, how its values are to be taken, and their unit."""
_NAME = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(METRICS)})(?![A-Za-z])", re.IGNORECASE)
_EXACT = {name.lower(): name for name in METRICS}
_VOLUME = re.compile(r"vol-[0-9a-f]+")
_REMEDY = "ask for VolumeReadOps, VolumeWriteOps, VolumeReadBytes and VolumeWriteBytes with Stat Sum, at a Period of 60"

Points = dict[float, dict[str, float]]
"""Seconds since 1970 -> figure -> value per second, or of the state."""


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

    ``interval_s`` is the period where it cannot be told from the distance of the values. Where all of ``wanted`` are there,
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
    return {name: _measured(name, metrics, path, interval_s, notes) for name, metrics in measured.items()}


def _known(text: str, path: str) -> Iterator[Series]:
    """The metrics that mean something here."""
    for label, identifier, statistic, points, note in _series(text, path):
        # A label is the caller's to choose; where it does not name the metric the query's own name may.
        found = _NAME.search(label) or _NAME.search(identifier)
        if found is None:
            continue
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


def _series(text: str, path: str) -> Iterator[tuple[str, str, str, dict[float, float], str]]:
    """Label, name of the query, statistic (empty: not said), values by time, and what a reader must know."""
    for document in _documents(text, path):
        try:
            yield from _of(document, path)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path} is JSON, and not as CloudWatch answers: {type(error).__name__} {error}",
                remedy="write it with `aws cloudwatch get-metric-data --output json`, without --query",
            ) from error


def _of(document: dict[str, Any], path: str) -> Iterator[tuple[str, str, str, dict[float, float], str]]:
    """The same of one document; an error of Python's where it is of another shape."""
    more = "CloudWatch has more pages than this file" if document.get("NextToken") else ""
    for result in document.get("MetricDataResults", []):
        label, identifier = str(result.get("Label", "")), str(result.get("Id", ""))
        status = str(result.get("StatusCode", "Complete"))
        if status not in ("Complete", "PartialData"):
            raise InputError(f"{path}: CloudWatch gave up on {label or identifier}: {status}", remedy="ask again")
        pairs = zip(result["Timestamps"], result["Values"], strict=True)
        note = more or ("CloudWatch calls its answer partial" if status == "PartialData" else "")
        yield label, identifier, "", {_unix_s(at): float(value) for at, value in pairs}, note
    yield from _of_statistics(str(document.get("Label", "")), document.get("Datapoints", []))


def _of_statistics(label: str, points: list[Any]) -> Iterator[tuple[str, str, str, dict[float, float], str]]:
    """The older call's. Of several statistics the one that the metric's figure is made of, else whatever there is."""
    found = _NAME.search(label)
    fitting = SUM if found is not None and METRICS[_EXACT[found[0].lower()]][1] == SUM else AVERAGE
    there = [statistic for statistic in (SUM, AVERAGE) if any(statistic in point for point in points)]
    for statistic in [fitting] if fitting in there else there:
        values = {_unix_s(point["Timestamp"]): float(point[statistic]) for point in points if statistic in point}
        yield label, "", statistic, values, ""


def _documents(text: str, path: str) -> Iterator[dict[str, Any]]:
    """One document, or several one after the other (pages), or a list of them."""
    decoder, at = json.JSONDecoder(), 0
    text = text.strip()
    while at < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError as error:
            raise InputError(
                f"{path} is no JSON: {error}", remedy="write it with `aws cloudwatch get-metric-data --output json`"
            ) from error
        yield from document if isinstance(document, list) else [document]
        at += len(text[at:]) - len(text[at:].lstrip())


def _unix_s(at: Any) -> float:
    if isinstance(at, int | float):
        return float(at)
    return datetime.fromisoformat(str(at)).timestamp()


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
    if kind != SUM and statistic == SUM and figure != "limited":
        raise InputError(f"{path}: {metric} is a sum of what is no amount", remedy="ask for it with Stat Average")
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
    figures: dict[str, dict[float, float]] = {}
    for metric, points in metrics.items():
        figure, kind, unit = METRICS[metric]
        scale = unit / period_s if kind == SUM else unit
        into = figures.setdefault(figure, {})
        for at, value in points.items():
            into[at] = into.get(at, 0.0) + value * scale
    split = {"read_ops", "write_ops", "read_bytes", "write_bytes"} <= set(figures)
    if not split and not {"ops", "bytes"} <= set(figures):
        raise InputError(f"{path} lacks metrics of {name}: it has {', '.join(sorted(metrics))}", remedy=_REMEDY)
    needed = ("read_ops", "write_ops", "read_bytes", "write_bytes") if split else ("ops", "bytes")
    times = sorted(set.intersection(*(set(figures[figure]) for figure in needed)))
    if not times:
        raise InputError(
            f"{path}: the metrics of {name} have no time in common",
            remedy="ask for all of them at once, with one Period",
        )
    missing = round((times[-1] - times[0]) / period_s) + 1 - len(times)
    if missing > 0:
        notes = [*notes, f"{missing} periods have no value, as when a volume is not attached; they are left out"]
    samples = tuple(_sample(figures, at, period_s, split) for at in times)
    return Measured("CloudWatch", name, samples, split, None, tuple(dict.fromkeys(notes)))


def _sample(figures: dict[str, dict[float, float]], at: float, period_s: float, split: bool) -> Sample:
    if split:
        reads, writes = figures["read_ops"][at], figures["write_ops"][at]
        read_bytes, write_bytes = figures["read_bytes"][at], figures["write_bytes"][at]
    else:  # VolumeAvgIOPS and VolumeAvgThroughput are sums of reads and writes; all are taken for writes
        reads, writes, read_bytes, write_bytes = 0.0, figures["ops"][at], 0.0, figures["bytes"][at]
    busy_s, limited = figures.get("busy_s", {}).get(at), figures.get("limited", {}).get(at)
    return Sample(
        period_s,
        reads,
        writes,
        read_bytes,
        write_bytes,
        queue_length=figures.get("queue", {}).get(at),
        latency_ms=1000 * busy_s / (reads + writes) if busy_s is not None and reads + writes else None,
        limited=limited > 0 if limited is not None else None,
        at_s=at,
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
