"""The counters of attached volumes as OpenMetrics text (https://prometheus.io/docs/specs/om/open_metrics_spec/, version 1.0).

The last word of a name is its unit, in the base units that the format asks for: seconds, bytes, ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PREFIX = "pgdyno_volume_"

Reading = Mapping[str, Any]
"""What a volume's daemon says (``counters``, ``histograms``), with its ``spec``."""
Sample = tuple[str, dict[str, str], float]
"""What stands after the family's name (``_total``), further labels, value."""


@dataclass(frozen=True)
class VolumeScrape:
    """One volume at a scrape."""

    name: str
    spec: Mapping[str, Any]
    said: Reading | None
    """None when its daemon did not answer, or when it is gone; then nothing may be known of its ``spec`` either."""


@dataclass(frozen=True)
class MetricFamily:
    """A family of metrics: its name without prefix, type, unit, meaning, and the samples of one subject: here, of a volume."""

    name: str
    kind: str
    unit: str
    meaning: str
    samples: Callable[[Any], Iterator[Sample]]
    prefix: str = PREFIX


def _counters(volume: VolumeScrape) -> Mapping[str, Any]:
    return volume.said["counters"] if volume.said is not None else {}


def _by(label: str, counters: Mapping[str, str], unit: float = 1.0, suffix: str = "_total") -> Any:
    """Samples that a label tells apart: value of the label -> counter. Counters that the volume lacks are left out."""

    def samples(volume: VolumeScrape) -> Iterator[Sample]:
        known = _counters(volume)
        for value, counter in counters.items():
            if known.get(counter) is not None:
                yield suffix, {label: value} if label else {}, known[counter] / unit

    return samples


def _limit(key: str, unit: float = 1.0) -> Any:
    def samples(volume: VolumeScrape) -> Iterator[Sample]:
        limit = volume.spec.get("limits", {}).get(key)
        if limit is not None:
            yield "", {}, limit * unit

    return samples


def _info(volume: VolumeScrape) -> Iterator[Sample]:
    if volume.spec:
        yield "_info", {"type": str(volume.spec.get("type", "")), "spec": str(volume.spec.get("spec", ""))}, 1


def _dilation(volume: VolumeScrape) -> Iterator[Sample]:
    if volume.said is not None:
        yield "", {}, volume.said["dilation"]


def _up(volume: VolumeScrape) -> Iterator[Sample]:
    yield "", {}, int(volume.said is not None)


def _latency(volume: VolumeScrape) -> Iterator[Sample]:
    """A histogram by powers of two of microseconds: exact counts, as many as operations completed."""
    if volume.said is None:
        return
    for operation in ("read", "write"):
        below = list(accumulate(volume.said["histograms"][f"{operation}_latency_us_log2"]))
        labels = {"operation": operation}
        for place, count in enumerate(below[:-1]):
            yield "_bucket", {**labels, "le": repr(2**place / 1e6)}, count
        yield "_bucket", {**labels, "le": "+Inf"}, below[-1]
        yield "_count", labels, below[-1]
        yield "_sum", labels, _counters(volume)[f"{operation}_time_ns"] / 1e9


_READ_WRITE = ("read", "write")

FAMILIES: tuple[MetricFamily, ...] = (
    MetricFamily("up", "gauge", "", "Whether the volume's daemon answered.", _up),
    MetricFamily("", "info", "", "The volume's type and specification.", _info),
    MetricFamily(
        "dilation",
        "gauge",
        "",
        "Real seconds in a second of the volume, in whose time it counts: rates are to be multiplied by it.",
        _dilation,
    ),
    MetricFamily(
        "operations",
        "counter",
        "",
        "Operations that completed.",
        _by("operation", {text: f"{text}_ops" for text in _READ_WRITE}),
    ),
    MetricFamily(
        "transferred_bytes",
        "counter",
        "bytes",
        "Bytes of the operations that completed.",
        _by("operation", {text: f"{text}_bytes" for text in _READ_WRITE}),
    ),
    MetricFamily("latency_seconds", "histogram", "seconds", "Latency of the operations that completed.", _latency),
    MetricFamily("flushes", "counter", "", "Flushes that were answered.", _by("", {"": "flush_ops"})),
    MetricFamily(
        "io_units", "counter", "", "I/O units charged, after splitting and merging.", _by("", {"": "io_units"})
    ),
    MetricFamily(
        "queue_length",
        "gauge",
        "",
        "Operations that wait to be completed now.",
        _by("", {"": "queue_length"}, suffix=""),
    ),
    MetricFamily(
        "queue_seconds",
        "counter",
        "seconds",
        "Integral of the queue's length over time: its rate is the mean VolumeQueueLength.",
        _by("", {"": "queue_time_ns"}, 1e9),
    ),
    MetricFamily(
        "busy_seconds",
        "counter",
        "seconds",
        "Time with an operation in the volume: VolumeIdleTime is the rest.",
        _by("", {"": "busy_ns"}, 1e9),
    ),
    MetricFamily(
        "exceeded_seconds",
        "counter",
        "seconds",
        "Time in which operations waited for a limit: of the volume, or of its instance.",
        _by(
            "limit",
            {
                "iops": "exceeded_iops_ns",
                "throughput": "exceeded_throughput_ns",
                "instance_iops": "instance_exceeded_iops_ns",
                "instance_throughput": "instance_exceeded_throughput_ns",
            },
            1e9,
        ),
    ),
    MetricFamily(
        "burst_balance_ratio",
        "gauge",
        "ratio",
        "Credits left of the most that are kept: BurstBalance.",
        _by("", {"": "burst_balance_ppm"}, 1e6, suffix=""),
    ),
    MetricFamily(
        "initialized_ratio",
        "gauge",
        "ratio",
        "How much of its snapshot a restored volume has.",
        _by("", {"": "initialized_ppm"}, 1e6, suffix=""),
    ),
    MetricFamily(
        "first_touch_seconds",
        "counter",
        "seconds",
        "Time for which requests waited for blocks of the volume's snapshot.",
        _by("", {"": "first_touch_ns"}, 1e9),
    ),
    MetricFamily(
        "degraded_seconds",
        "counter",
        "seconds",
        "Time in which a volume with `degraded=` had only a part of its limits.",
        _by("", {"": "degraded_ns"}, 1e9),
    ),
    MetricFamily(
        "instance_balance_ratio",
        "gauge",
        "ratio",
        "What is left of the instance's reserve above its baseline: EBSIOBalance% and EBSByteBalance%.",
        _by(
            "limit",
            {"iops": "instance_iops_balance_ppm", "throughput": "instance_throughput_balance_ppm"},
            1e6,
            suffix="",
        ),
    ),
    MetricFamily("provisioned_iops", "gauge", "", "The volume's IOPS limit.", _limit("iops")),
    MetricFamily(
        "provisioned_bytes_per_second",
        "gauge",
        "bytes_per_second",
        "The volume's throughput limit.",
        _limit("throughput_mib_per_s", 2**20),
    ),
    MetricFamily(
        "late_operations",
        "counter",
        "",
        "Operations answered later than the model said by more than a twentieth of what it said.",
        _by("operation", {text: f"late_{text}_ops" for text in _READ_WRITE}),
    ),
    MetricFamily(
        "overrun_operations",
        "counter",
        "",
        "Operations for which the machine's store was slower than the model.",
        _by("", {"": "overrun_ops"}),
    ),
    MetricFamily(
        "refused_operations",
        "counter",
        "",
        "Requests that were refused: not of whole blocks, or past the end of the volume.",
        _by("", {"": "refused_ops"}),
    ),
    MetricFamily(
        "failed_operations",
        "counter",
        "",
        "Operations answered with an I/O error, because the store is full or its disk is broken.",
        _by("", {"": "failed_ops"}),
    ),
    MetricFamily(
        "daemon_cpu_seconds",
        "counter",
        "seconds",
        "CPU time of the volume's daemon.",
        _by("", {"": "daemon_cpu_ns"}, 1e9),
    ),
)
"""Every family, in the order of the text."""


def text(volumes: Sequence[VolumeScrape]) -> str:
    """The exposition of all volumes, to its end mark."""
    return exposition(lines_of(FAMILIES, [({"volume": volume.name}, volume) for volume in volumes]))


def lines_of(families: Sequence[MetricFamily], subjects: Sequence[tuple[Mapping[str, str], Any]]) -> list[str]:
    """The families of several subjects, each with the labels that tell it apart. A family without a sample is left out."""
    lines: list[str] = []
    for family in families:
        samples = [
            line(full_name(family) + suffix, {**own, **labels}, value)
            for own, subject in subjects
            for suffix, labels, value in family.samples(subject)
        ]
        if samples:
            lines += [*_head(family), *samples]
    return lines


def exposition(lines: Sequence[str]) -> str:
    """Families' lines to the format's end mark."""
    return "\n".join([*lines, "# EOF"]) + "\n"


def full_name(family: MetricFamily) -> str:
    """The family's name with its prefix."""
    return (family.prefix + family.name).rstrip("_")


def line(name: str, labels: Mapping[str, str], value: float) -> str:
    """One sample."""
    inside = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {number(value)}"


def escaped(label: str) -> str:
    """A label's value as the format wants it."""
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: float) -> str:
    """A value without loss; whole numbers without a fraction."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _head(family: MetricFamily) -> Iterator[str]:
    name = full_name(family)
    yield f"# TYPE {name} {family.kind}"
    if family.unit:
        yield f"# UNIT {name} {family.unit}"
    yield f"# HELP {name} {family.meaning}"
