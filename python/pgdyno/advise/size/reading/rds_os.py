"""What RDS says of the operating system of a database: Enhanced Monitoring, and Performance Insights.

Enhanced Monitoring writes a JSON document each 1 to 60 seconds to the log group ``RDSOSMetrics``; Performance Insights has the same
figures as series. Both are per second, in KiB, of the device ``rdsdev`` that the database's files are on; ``filesystem`` is the
same requests once more. Aurora has neither device: its storage is not a disk.

Names and units: Amazon RDS User Guide, *OS metrics in Enhanced Monitoring*; the form of the series: Performance Insights API,
GetResourceMetrics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ....base.errors import InputError
from .points import by_time
from .series import AVERAGE, RATE, MetricSeries, SeriesMetric, ServiceMetrics

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
_METRICS = {
    "readIOsPS": SeriesMetric("readIOsPS", "read_ops", RATE),
    "writeIOsPS": SeriesMetric("writeIOsPS", "write_ops", RATE),
    "readKbPS": SeriesMetric("readKbPS", "read_bytes", RATE, 1024),
    "writeKbPS": SeriesMetric("writeKbPS", "write_bytes", RATE, 1024),
    "avgQueueLen": SeriesMetric("avgQueueLen", "queue", AVERAGE),
    "await": SeriesMetric("await", "any_ms", AVERAGE),
}
_SERIES = re.compile(rf"os\.diskIO\.(?:(?P<device>[^.]+)\.)?(?P<name>{'|'.join(_METRICS)})\.avg")
_SAME_ONCE_MORE = "filesystem"
_AURORA = "aurorastorage"


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
        yield MetricSeries(owner, _METRICS[match["name"]], INSIGHTS, AVERAGE, by_time(pairs, f"{path}: {name}"), note)


def _of_monitoring(document: object, path: str) -> Iterator[MetricSeries]:
    for moment in _moments(document, path):
        disks = moment.get("diskIO")
        for disk in disks if isinstance(disks, list) else []:
            if not isinstance(disk, dict):
                continue
            device = str(disk.get("device") or "rdsdev")
            if device.lower() == _AURORA or any(key.startswith("auroraStorage") for key in disk):
                raise InputError(
                    f"{path} is of Aurora, whose storage is not a disk with a limit",
                    remedy="choose between Aurora Standard and I/O-Optimized by what its requests cost",
                    code="size.metrics.aurora",
                )
            if device == _SAME_ONCE_MORE:
                continue
            owner = f"{moment.get('instanceID') or 'database'} {device}"
            for name, metric in _METRICS.items():
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
