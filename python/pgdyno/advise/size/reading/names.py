"""The names of Amazon's metrics of volumes, instances and databases, and what each of them means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .series import AVERAGE, RATE, SUM, SeriesMetric, ServiceMetrics

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
