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

from pgdyno.errors import InputError
from pgdyno.size.reading.points import by_time
from pgdyno.size.reading.series import AVERAGE, RATE, Family, Metric, Series

SYSTEM = Family(
    "Enhanced Monitoring",
    "write them with `aws logs get-log-events --log-group-name RDSOSMetrics --log-stream-name RESOURCE_ID --output json`",
    ("rds-*",),
)
INSIGHTS = Family(
    "Performance Insights",
    "ask for os.diskIO.rdsdev.readIOsPS.avg, .writeIOsPS.avg, .readKbPS.avg and .writeKbPS.avg, with avgQueueLen.avg and await.avg",
    ("rds-*",),
)
_METRICS = {
    "readIOsPS": Metric("readIOsPS", "read_ops", RATE),
    "writeIOsPS": Metric("writeIOsPS", "write_ops", RATE),
    "readKbPS": Metric("readKbPS", "read_bytes", RATE, 1024),
    "writeKbPS": Metric("writeKbPS", "write_bytes", RATE, 1024),
    "avgQueueLen": Metric("avgQueueLen", "queue", AVERAGE),
    "await": Metric("await", "any_ms", AVERAGE),
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
        isinstance(events, list) and bool(events) and all(isinstance(one, dict) and "message" in one for one in events)
    )
    return "diskIO" in document or "MetricList" in document or is_log


def of_documents(documents: Sequence[Any], path: str) -> list[Series]:
    """The metrics of all documents. :class:`InputError` where no disk is in them."""
    found = list[Series]()
    for document in documents:
        if isinstance(document, dict) and "MetricList" in document:
            found += _of_insights(document, path)
        else:
            found += _of_monitoring(document, path)
    if not found:
        raise InputError(
            f"{path} has figures of an operating system and none of its disks",
            remedy=f"{SYSTEM.remedy}, of a database that is not Aurora",
            code="size.metrics.none",
        )
    return found


def _of_insights(document: dict[str, Any], path: str) -> Iterator[Series]:
    note = "Performance Insights has more pages than this file (NextToken)" if document.get("NextToken") else ""
    for one in document["MetricList"] if isinstance(document["MetricList"], list) else []:
        key = one.get("Key") if isinstance(one, dict) else None
        name = str(key.get("Metric", "")) if isinstance(key, dict) else ""
        found = _SERIES.fullmatch(name)
        if found is None or found["device"] == _SAME_ONCE_MORE:
            continue
        points = [point for point in one.get("DataPoints") or [] if isinstance(point, dict)]
        pairs = [(point.get("Timestamp"), point["Value"]) for point in points if point.get("Value") is not None]
        owner = str(document.get("Identifier") or "database")
        yield Series(owner, _METRICS[found["name"]], INSIGHTS, AVERAGE, by_time(pairs, f"{path}: {name}"), note)


def _of_monitoring(document: object, path: str) -> Iterator[Series]:
    for one in _moments(document, path):
        disks = one.get("diskIO")
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
            owner = f"{one.get('instanceID') or 'database'} {device}"
            for name, metric in _METRICS.items():
                if disk.get(name) is not None:
                    points = by_time([(one.get("timestamp"), disk[name])], f"{path}: {name}")
                    yield Series(owner, metric, SYSTEM, AVERAGE, points)


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
