"""Metrics of cloud providers for ``--cloudwatch``: CloudWatch answers, the console's downloads, RDS Enhanced Monitoring.

=======================================================  ===========================================
form                                                     read by
=======================================================  ===========================================
``get-metric-data``, ``get-metric-statistics``           this module
a metric stream, one JSON document for each value        this module
the console's *Download as .csv*                         :mod:`pgdyno.advise.size.reading.cloudwatch`
RDS Enhanced Monitoring, Performance Insights            :mod:`pgdyno.advise.size.reading.cloudwatch`
``az monitor metrics list``, the portal's table          :mod:`pgdyno.advise.size.reading.azure`
=======================================================  ===========================================

Traps that are taken care of: the newest value comes first; a page may not be the last one; operations and bytes of EBS are sums of
a period, those of RDS are per second.

Names and units: Amazon EC2 User Guide (awsdocs/amazon-ec2-user-guide e3707c43, using_cloudwatch_ebs.md, 15 June 2023),
Amazon RDS User Guide (awsdocs/amazon-rds-user-guide f2e9ed35, rds-metrics.md, June 2023); the form of the answer: Amazon
CloudWatch API, GetMetricData and GetMetricStatistics; of a stream: CloudWatch User Guide, *metric streams in JSON format*.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....base.errors import InputError
from ..measured import DeviceSamples
from . import azure
from .series import AVERAGE, ONE_VALUE, RATE, SUM, MetricSeries, SeriesMetric, ServiceMetrics, by_time, shown, volumes

VOLUME = ServiceMetrics(
    "CloudWatch",
    "ask for VolumeReadOps, VolumeWriteOps, VolumeReadBytes and VolumeWriteBytes with Stat Sum, at a Period of 60",
)
INSTANCE = ServiceMetrics(
    "CloudWatch",
    "ask for EBSReadOps, EBSWriteOps, EBSReadBytes and EBSWriteBytes of the instance with Stat Sum, or for those of its volumes"
    " (VolumeReadOps, ...), at a Period of 60",
)
DATABASE = ServiceMetrics(
    "CloudWatch",
    "ask for ReadIOPS, WriteIOPS, ReadThroughput and WriteThroughput of the database with Stat Average, at a Period of 60; DiskQueueDepth,"
    " ReadLatency and WriteLatency tell more",
    ("rds-*",),
)
_METRICS = {
    VOLUME: (
        SeriesMetric("VolumeReadOps", "read_ops", SUM),
        SeriesMetric("VolumeWriteOps", "write_ops", SUM),
        SeriesMetric("VolumeReadBytes", "read_bytes", SUM),
        SeriesMetric("VolumeWriteBytes", "write_bytes", SUM),
        SeriesMetric("VolumeTotalReadTime", "busy_s", SUM),
        SeriesMetric("VolumeTotalWriteTime", "busy_s", SUM),
        SeriesMetric("VolumeQueueLength", "queue", AVERAGE),
        SeriesMetric("VolumeAvgReadLatency", "read_ms", AVERAGE),
        SeriesMetric("VolumeAvgWriteLatency", "write_ms", AVERAGE),
        SeriesMetric("VolumeIOPSExceededCheck", "exceeded iops", AVERAGE),
        SeriesMetric("VolumeThroughputExceededCheck", "exceeded throughput", AVERAGE),
        SeriesMetric("BurstBalance", "balance burst", AVERAGE, 0.01),
        SeriesMetric("VolumeAvgIOPS", "ops", RATE),
        SeriesMetric("VolumeAvgThroughput", "bytes", RATE, 1024),
    ),
    INSTANCE: (
        SeriesMetric("EBSReadOps", "read_ops", SUM),
        SeriesMetric("EBSWriteOps", "write_ops", SUM),
        SeriesMetric("EBSReadBytes", "read_bytes", SUM),
        SeriesMetric("EBSWriteBytes", "write_bytes", SUM),
        SeriesMetric("InstanceEBSIOPSExceededCheck", "exceeded instance_iops", AVERAGE),
        SeriesMetric("InstanceEBSThroughputExceededCheck", "exceeded instance_throughput", AVERAGE),
        SeriesMetric("EBSIOBalance%", "balance instance_iops", AVERAGE, 0.01),
        SeriesMetric("EBSByteBalance%", "balance instance_throughput", AVERAGE, 0.01),
    ),
    DATABASE: (
        SeriesMetric("ReadIOPS", "read_ops", RATE),
        SeriesMetric("WriteIOPS", "write_ops", RATE),
        SeriesMetric("ReadThroughput", "read_bytes", RATE),
        SeriesMetric("WriteThroughput", "write_bytes", RATE),
        SeriesMetric("ReadLatency", "read_ms", AVERAGE, 1000),
        SeriesMetric("WriteLatency", "write_ms", AVERAGE, 1000),
        SeriesMetric("DiskQueueDepth", "queue", AVERAGE),
    ),
}
"""What each metric is for: the figure, how its values are to be taken, and their unit."""
_KNOWN = {metric.name.lower(): (metric, family) for family, metrics in _METRICS.items() for metric in metrics}
_NAME = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(re.escape(name) for name in _KNOWN)})(?![A-Za-z%])", re.IGNORECASE)
_VOLUME_ID = re.compile(r"vol-[0-9a-f]+")
_DIMENSIONS = ("volumeid", "dbinstanceidentifier", "dbinstance", "instanceid")
"""Dimensions that say whose a metric is."""
_AURORA = re.compile(r"(?<![A-Za-z])(?:Volume(?:Read|Write)IOPs|VolumeBytesUsed|AuroraVolume\w+)(?![A-Za-z])")
"""Cluster metrics of Aurora, which counts what it bills and sells no volumes."""
_OF_DATABASE = re.compile(r"CPUUtilization|FreeStorageSpace|FreeableMemory|DatabaseConnections|DBLoad", re.IGNORECASE)
"""Other metrics of a database, by which a file without any of its volume is one of RDS."""


def find(label: str) -> tuple[SeriesMetric, ServiceMetrics, re.Match[str]] | None:
    """The metric that a text names, and where; ``None`` if it names none."""
    match = _NAME.search(label)
    return None if match is None else (*_KNOWN[match[0].lower()], match)


def owner(label: str, match: re.Match[str] | None) -> str:
    """Whose metric it is: of ``vol-0a1b VolumeReadOps`` the volume, of ``orders ReadIOPS`` the database."""
    volume = _VOLUME_ID.search(label)
    if volume:
        return volume[0]
    return ("" if match is None else label[: match.start()].strip()) or "volume"


def owner_of(dimensions: Mapping[str, object]) -> str:
    """Whose a metric with these dimensions is; ``volume`` where they do not tell."""
    known = {name.lower().replace(" ", ""): str(value) for name, value in dimensions.items() if value}
    return next((known[name] for name in _DIMENSIONS if name in known), "volume")


def is_aurora(label: str) -> bool:
    """Whether it is one of Aurora's counts of a cluster."""
    return _AURORA.search(label) is not None


def remedy_for(labels: Sequence[str]) -> str:
    """What to ask for instead of metrics with these labels."""
    if any(is_aurora(label) for label in labels):
        return (
            "Aurora's storage grows by itself and has no IOPS to buy: choose between Aurora Standard and I/O-Optimized by what these"
            " requests cost"
        )
    if any(_OF_DATABASE.search(label) for label in labels):
        return DATABASE.remedy
    return f"{VOLUME.remedy}; of RDS for ReadIOPS, WriteIOPS, ReadThroughput and WriteThroughput with Stat Average"


SYSTEM = ServiceMetrics(
    "Enhanced Monitoring",
    "write them with `aws logs get-log-events --log-group-name RDSOSMetrics --log-stream-name RESOURCE_ID --output json`",
    ("rds-*",),
)
INSIGHTS = ServiceMetrics(
    "Performance Insights",
    "ask for os.diskIO.rdsdev.readIOsPS.avg, .writeIOsPS.avg, .readKbPS.avg and .writeKbPS.avg, with avgQueueLen.avg and await.avg",
    ("rds-*",),
)
_SYSTEM_METRICS = {
    "readIOsPS": SeriesMetric("readIOsPS", "read_ops", RATE),
    "writeIOsPS": SeriesMetric("writeIOsPS", "write_ops", RATE),
    "readKbPS": SeriesMetric("readKbPS", "read_bytes", RATE, 1024),
    "writeKbPS": SeriesMetric("writeKbPS", "write_bytes", RATE, 1024),
    "avgQueueLen": SeriesMetric("avgQueueLen", "queue", AVERAGE),
    "await": SeriesMetric("await", "any_ms", AVERAGE),
}
_SERIES = re.compile(rf"os\.diskIO\.(?:(?P<device>[^.]+)\.)?(?P<name>{'|'.join(_SYSTEM_METRICS)})\.avg")
_SAME_ONCE_MORE = "filesystem"
_SYSTEM_AURORA = "aurorastorage"


def is_of_system(document: object) -> bool:
    """Whether a document is of Enhanced Monitoring, of its log, or of Performance Insights."""
    if not isinstance(document, dict):
        return False
    events = document.get("events")
    is_log = (
        isinstance(events, list)
        and bool(events)
        and all(isinstance(event, dict) and "message" in event for event in events)
    )
    return "diskIO" in document or "MetricList" in document or is_log


def of_documents(documents: Sequence[Any], path: str) -> list[MetricSeries]:
    """The metrics of all documents. :class:`InputError` where no disk is in them."""
    result = list[MetricSeries]()
    for document in documents:
        if isinstance(document, dict) and "MetricList" in document:
            result += _of_insights(document, path)
        else:
            result += _of_monitoring(document, path)
    if not result:
        raise InputError(
            f"{path} has figures of an operating system and none of its disks",
            remedy=f"{SYSTEM.remedy}, of a database that is not Aurora",
            code="size.metrics.none",
        )
    return result


def _of_insights(document: dict[str, Any], path: str) -> Iterator[MetricSeries]:
    note = "Performance Insights has more pages than this file (NextToken)" if document.get("NextToken") else ""
    for item in document["MetricList"] if isinstance(document["MetricList"], list) else []:
        key = item.get("Key") if isinstance(item, dict) else None
        name = str(key.get("Metric", "")) if isinstance(key, dict) else ""
        match = _SERIES.fullmatch(name)
        if match is None or match["device"] == _SAME_ONCE_MORE:
            continue
        points = [point for point in item.get("DataPoints") or [] if isinstance(point, dict)]
        pairs = [(point.get("Timestamp"), point["Value"]) for point in points if point.get("Value") is not None]
        owner = str(document.get("Identifier") or "database")
        yield MetricSeries(
            owner, _SYSTEM_METRICS[match["name"]], INSIGHTS, AVERAGE, by_time(pairs, f"{path}: {name}"), note
        )


def _of_monitoring(document: object, path: str) -> Iterator[MetricSeries]:
    for moment in _moments(document, path):
        disks = moment.get("diskIO")
        for disk in disks if isinstance(disks, list) else []:
            if not isinstance(disk, dict):
                continue
            device = str(disk.get("device") or "rdsdev")
            if device.lower() == _SYSTEM_AURORA or any(key.startswith("auroraStorage") for key in disk):
                raise InputError(
                    f"{path} is of Aurora, whose storage is not a disk with a limit",
                    remedy="choose between Aurora Standard and I/O-Optimized by what its requests cost",
                    code="size.metrics.aurora",
                )
            if device == _SAME_ONCE_MORE:
                continue
            owner = f"{moment.get('instanceID') or 'database'} {device}"
            for name, metric in _SYSTEM_METRICS.items():
                if disk.get(name) is not None:
                    points = by_time([(moment.get("timestamp"), disk[name])], f"{path}: {name}")
                    yield MetricSeries(owner, metric, SYSTEM, AVERAGE, points)


def _moments(document: object, path: str) -> Iterator[dict[str, Any]]:
    """Each document of Enhanced Monitoring, by itself or as the message of an event of its log."""
    if not isinstance(document, dict):
        return
    if "events" not in document:
        yield document
        return
    for event in document["events"]:
        try:
            message = json.loads(event["message"])
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(
                f"{path}: an event's message is not JSON of Enhanced Monitoring",
                remedy=SYSTEM.remedy,
                code="size.json.invalid",
            ) from error
        if isinstance(message, dict):
            yield message


_TIME = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[ T]\d{1,2}:\d{2}.*")
_YEAR_FIRST = re.compile(
    r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})[ T](\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.\d+)?\s*(Z|[+-]\d{2}:?\d{2})?"
)
_PERIOD = re.compile(r"(\d+)\s*(s|sec\w*|m|min\w*|h|hour\w*)?", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_STATISTICS = {"sum": SUM, "average": AVERAGE, "avg": AVERAGE}
HEAD_MAX = 64
"""Rows above the values: a file whose values begin later is another one."""
LOCAL = "times of the console's CSV are taken to be of UTC; it writes local ones where it was set to"


@dataclass
class Head:
    """What stands above the values, by the first cell in lower case without spaces: the cells of each column."""

    rows: dict[str, list[str]] = field(default_factory=dict)

    def cell(self, name: str, column: int) -> str:
        """Of one column; empty where there is none."""
        row = self.rows.get(name, [])
        return row[column].strip() if column < len(row) else ""

    def cells(self, column: int) -> Mapping[str, str]:
        """All of a column."""
        return {name: self.cell(name, column) for name in self.rows}


def series_of_console(text: str, path: str) -> list[MetricSeries]:
    """The metrics of a download; none where it is something else. :class:`InputError` where it has no metric of a volume."""
    rows = list(csv.reader(text.splitlines(), delimiter=_delimiter(text)))
    begin = next((place for place, row in enumerate(rows[:HEAD_MAX]) if row and _TIME.fullmatch(row[0].strip())), None)
    if not begin:
        return []
    head = Head()
    for row in rows[:begin]:
        if row:
            head.rows.setdefault(row[0].strip().lower().replace(" ", ""), row)
    width = max(len(row) for row in rows[:begin])
    columns = range(1, width)
    series = [
        metric_series
        for column in columns
        if (metric_series := _column(head, column, rows[begin:], begin, path)) is not None
    ]
    if not series and ("fulllabel" in head.rows or "label" in head.rows):
        labels = [head.cell("label", column) or head.cell("fulllabel", column) for column in columns]
        raise InputError(
            f"{path} has no metric of a volume that is known here: it has {', '.join(labels[:LABELS_MAX])}",
            remedy=remedy_for(labels),
            code="size.metrics.aurora" if any(is_aurora(label) for label in labels) else "size.metrics.none",
            data={"labels": labels[:LABELS_MAX]},
        )
    return series


def _delimiter(text: str) -> str:
    """Spreadsheets of some countries save with semicolons."""
    line = text.lstrip().partition("\n")[0]
    return ";" if line.count(";") > line.count(",") else ","


def _column(head: Head, column: int, rows: Sequence[Sequence[str]], begin: int, path: str) -> MetricSeries | None:
    """The metric of a column; ``None`` where it is none of a volume."""
    cells = head.cells(column)
    preferred = [cells.get(name, "") for name in ("metricname", "label", "fulllabel")]
    result = next((one for cell in (*preferred, *cells.values()) if (one := find(cell)) is not None), None)
    if result is None:
        return None
    metric, family, _ = result
    volume = owner_of(cells)
    if volume == "volume":
        label = next((cell for cell in preferred if find(cell) is not None), "")
        place = find(label)
        volume = owner(label, None if place is None else place[2])
    what = f"{path}: {metric.name}"
    pairs = [
        (_iso(row[0], f"{path}, line {begin + place + 1}"), _value(row[column], f"{path}, line {begin + place + 1}"))
        for place, row in enumerate(rows)
        if len(row) > column and row[column].strip()
    ]
    statistic = cells.get("statistic") or cells.get("stat") or ""
    statistic = _STATISTICS.get(statistic.lower(), statistic)
    return MetricSeries(
        volume, metric, family, statistic, by_time(pairs, what), LOCAL, _period_s(cells.get("period", ""))
    )


def _value(text: str, where: str) -> float:
    try:
        return float(text.strip())
    except ValueError:
        raise InputError(
            f"{where}: a value is `{text.strip()}`, which is not a number",
            remedy="give the file as the console wrote it, without a spreadsheet's thousands or decimal commas",
            code="size.metrics.not_a_number",
        ) from None


def _iso(text: str, where: str) -> str:
    """The time as ISO 8601 writes it. :class:`InputError` where the year does not come first, which leaves the day open."""
    match = _YEAR_FIRST.fullmatch(text.strip())
    if match is None:
        raise InputError(
            f"{where}: the time is `{text.strip()}`, and the console writes 2026/11/25 09:00:00",
            remedy="give the file as the console wrote it: a spreadsheet may have changed it",
            code="size.metrics.time",
        )
    year, month, day, hour, minute, second, zone = match.groups()
    zone = "+00:00" if zone in (None, "Z") else zone
    return f"{year}-{int(month):02d}-{int(day):02d}T{int(hour):02d}:{minute}:{second or '00'}{zone}"


def _period_s(text: str) -> float | None:
    match = _PERIOD.fullmatch(text)
    return None if match is None else float(match[1]) * _SECONDS[(match[2] or "s")[0].lower()]


__all__ = ["ONE_VALUE", "read"]

_STREAM_KEYS = {"metric_name", "namespace", "timestamp", "value"}
"""What each document of a metric stream has."""
LABELS_MAX = 6
"""Labels that an error lists."""
_OTHER_FORMS = (
    (re.compile(r"\A\s*(?:DATAPOINTS|METRICDATARESULTS|TIMESTAMPS|VALUES|LABEL)\b|^(?:DATAPOINTS|METRICDATARESULTS)\t", re.MULTILINE),
     "the AWS command line's text", "--output json"),
    (re.compile(r"^(?:MetricDataResults|Datapoints|Label):", re.MULTILINE), "the AWS command line's YAML", "--output json"),
    (re.compile(r"\A-{20,}\s*$|^\|\s*Get(?:MetricData|MetricStatistics)\s*\|", re.MULTILINE), "the AWS command line's table", "--output json"),
)  # fmt: skip
"""What a file may be instead, by its first lines."""


def read(
    text: str, path: str, interval_s: float | None = None, wanted: Collection[str] = ()
) -> dict[str, DeviceSamples]:
    """The volumes of a file by their identifier, or one called ``volume``.

    ``interval_s`` is the period if it does not follow from the distance of the values. Where all of ``wanted`` are there,
    others are not looked at. :class:`InputError` when figures are absent or of another statistic.
    """
    series = list(_series(text, path))
    if not series:
        raise InputError(
            f"{path} has no metric of a volume that is known here",
            remedy=VOLUME.remedy,
            code="size.metrics.none",
        )
    return volumes(series, path, interval_s, wanted)


def _series(text: str, path: str) -> Iterator[MetricSeries]:
    if text.lstrip()[:1] not in ("{", "["):
        yield from _of_text(text, path)
        return
    documents = list(_documents(text, path))
    if any(azure.is_azure(document) for document in documents):
        yield from azure.of_documents(documents, path)
    elif any(is_of_system(document) for document in documents):
        yield from of_documents(documents, path)
    elif all(isinstance(document, dict) and document.keys() >= _STREAM_KEYS for document in documents) and documents:
        yield from _of_stream(documents, path)
    else:
        yield from _of_answers(documents, path)


def _of_text(text: str, path: str) -> Iterator[MetricSeries]:
    """CSV of a console; other texts are named and refused."""
    for pattern, what, option in _OTHER_FORMS:
        if pattern.search(text[:4096]):
            raise InputError(
                f"{path} is {what}, and JSON is read",
                remedy=f"write it with `aws cloudwatch get-metric-data {option}`",
                code="size.metrics.form",
                data={"form": what},
            )
    series = series_of_console(text, path) or azure.of_table(text, path)
    if not series:
        raise InputError(
            f"{path} is neither JSON of a provider's metrics nor a table of its console",
            remedy="write it with `aws cloudwatch get-metric-data --output json`, with the console's *Download as .csv*,"
            " or with `az monitor metrics list --output json`",
            code="size.metrics.form",
        )
    yield from series


def _of_answers(documents: list[Any], path: str) -> Iterator[MetricSeries]:
    """The metrics that mean something here."""
    labels = []
    known = False
    for label, identifier, statistic, pairs, note in _results(documents, path):
        # A label is the caller's to choose; where it does not name the metric the query's own name may.
        result = find(label) or find(identifier)
        if result is None:
            labels.append(label or identifier)
            continue
        known = True
        metric, family, place = result
        points = by_time(pairs, f"{path}: {label or identifier}")
        volume = owner(label, place if place.string is label else None)
        yield MetricSeries(volume, metric, family, statistic, points, note)
    if labels and not known:
        listed = ", ".join(labels[:LABELS_MAX])
        raise InputError(
            f"{path} has no metric of a volume that is known here: it has {listed}",
            remedy=remedy_for(labels),
            code="size.metrics.aurora" if any(is_aurora(label) for label in labels) else "size.metrics.none",
            data={"labels": labels[:LABELS_MAX]},
        )


def _results(documents: list[Any], path: str) -> Iterator[tuple[str, str, str, list[tuple[object, object]], str]]:
    """Label, name of the query, statistic (empty: not said), times and values, and what a reader must know."""
    for place, document in enumerate(documents):
        if not isinstance(document, dict):
            raise _not_an_answer(path, f"it has {shown(document)} where an object belongs")
        if "metrics" in document and "MetricDataResults" not in document:
            raise InputError(
                f"{path} is the definition of a graph, which has no values",
                remedy="choose *Download as .csv* in the graph's actions, or `aws cloudwatch get-metric-data --output json`",
                code="size.metrics.graph",
            )
        more = ""
        if document.get("NextToken") and place == len(documents) - 1:  # otherwise the next document is the next page
            more = "CloudWatch has more pages than this file (NextToken): what they show is not in it"
        for result in _list(document, "MetricDataResults", path, "the answer"):
            label, identifier = str(result.get("Label", "")), str(result.get("Id", ""))
            status = str(result.get("StatusCode", "Complete"))
            if status not in ("Complete", "PartialData"):
                raise InputError(
                    f"{path}: CloudWatch gave up on {label or identifier}: {status}",
                    remedy="ask again",
                    code="size.metrics.failed",
                )
            partial = "CloudWatch calls its answer partial (PartialData): values may be missing; ask again"
            note = more or (partial if status == "PartialData" else "")
            yield label, identifier, "", _pairs(result, path, label or identifier or "a metric"), note
        yield from _of_statistics(document, path)


def _pairs(result: dict[str, Any], path: str, metric: str) -> list[tuple[object, object]]:
    times, values = result.get("Timestamps"), result.get("Values")
    if not isinstance(times, list) or not isinstance(values, list):
        raise _not_an_answer(path, f"{metric} has no lists of Timestamps and Values")
    if len(times) != len(values):
        raise InputError(
            f"{path}: {metric} has {len(times)} Timestamps and {len(values)} Values",
            remedy="ask again, and keep the whole answer",
            code="size.metrics.lengths",
        )
    return list(zip(times, values, strict=True))


def _of_statistics(
    document: dict[str, Any], path: str
) -> Iterator[tuple[str, str, str, list[tuple[object, object]], str]]:
    """The output of the older call: the statistic that the metric's figure is made of, else the one that is there."""
    label = str(document.get("Label", ""))
    points = _list(document, "Datapoints", path, label or "the answer")
    result = find(label)
    fitting = SUM if result is not None and result[0].kind == SUM else AVERAGE
    present = [statistic for statistic in (SUM, AVERAGE) if any(statistic in point for point in points)]
    for statistic in [fitting] if fitting in present else present:
        pairs = [(point.get("Timestamp"), point[statistic]) for point in points if statistic in point]
        yield label, "", statistic, pairs, ""
    if points and not present:
        others = sorted({key for point in points for key in point} - {"Timestamp", "Unit"})
        raise InputError(
            f"{path}: {label} has {', '.join(others) or 'no statistic'}, from which no rate follows",
            remedy=result[1].remedy if result is not None else VOLUME.remedy,
            code="size.metrics.statistic",
            data={"metric": label, "statistic": ", ".join(others)},
        )


def _of_stream(documents: list[dict[str, Any]], path: str) -> Iterator[MetricSeries]:
    """A metric stream: a value for each minute, with its sum and its count."""
    for document in documents:
        name, value, dimensions = str(document["metric_name"]), document["value"], document.get("dimensions")
        result = find(name)
        if result is None or not isinstance(value, dict):
            continue
        metric, family, _ = result
        total, count = value.get("sum"), value.get("count")
        if metric.kind != SUM and isinstance(total, int | float) and isinstance(count, int | float) and count:
            total = total / count
        owner = owner_of(dimensions if isinstance(dimensions, dict) else {})
        points = by_time([(document["timestamp"], total)], f"{path}: {name}")
        yield MetricSeries(owner, metric, family, SUM if metric.kind == SUM else AVERAGE, points, period_s=60.0)


def _list(document: dict[str, Any], key: str, path: str, where: str) -> list[dict[str, Any]]:
    """The objects below a key; none when it is not there."""
    result = document.get(key, [])
    if not isinstance(result, list) or not all(isinstance(item, dict) for item in result):
        raise _not_an_answer(path, f"{key} of {where} is not a list of objects")
    return result


def _not_an_answer(path: str, why: str) -> InputError:
    return InputError(
        f"{path} is JSON, and not as CloudWatch answers: {why}",
        remedy="write it with `aws cloudwatch get-metric-data --output json`, without --query",
        code="size.metrics.form",
    )


def _documents(text: str, path: str) -> Iterator[Any]:
    """One document, or several one after the other (pages), or a list of them."""
    decoder, at = json.JSONDecoder(), 0
    text = text.strip()
    while at < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path} is not JSON: {error}",
                remedy="write it with `aws cloudwatch get-metric-data --output json`",
                code="size.json.invalid",
            ) from error
        yield from document if isinstance(document, list) else [document]
        while at < len(text) and text[at].isspace():
            at += 1
