"""What Azure Monitor says of disks: ``az monitor metrics list``, as JSON or as a table, and the portal's download.

Metrics are means of a minute and per second already. Three services count them: a managed disk (``Composite Disk ...``), a virtual
machine (``Data Disk ...`` and ``OS Disk ...``, by ``LUN`` when they are split), and Azure Database for PostgreSQL
(``read_iops``). A machine's ``Data Disk ...`` that is not split is the mean of its disks and not their sum, so it is said.

Names and units: Microsoft Learn, *Supported metrics* of Microsoft.Compute/disks, Microsoft.Compute/virtualMachines and
Microsoft.DBforPostgreSQL/flexibleServers; the form: *az monitor metrics list*.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....base.errors import InputError
from .series import AVERAGE, RATE, MetricSeries, SeriesMetric, ServiceMetrics, by_time

_TYPES = ("azure-*",)
DISK = ServiceMetrics(
    "Azure Monitor",
    'ask for all four at once: az monitor metrics list --resource DISK --interval PT1M --aggregation Average --metrics "Composite Disk Read'
    ' Operations/sec" "Composite Disk Write Operations/sec" "Composite Disk Read Bytes/sec" "Composite Disk Write Bytes/sec" --output json',
    _TYPES,
)
MACHINE = ServiceMetrics(
    "Azure Monitor",
    'ask for all four at once, split by disk: az monitor metrics list --resource VM --interval PT1M --aggregation Average --filter "LUN eq'
    ' \'*\'" --metrics "Data Disk Read Operations/Sec" "Data Disk Write Operations/Sec" "Data Disk Read Bytes/sec" "Data Disk Write'
    ' Bytes/sec" --output json',
    _TYPES,
)
SERVER = ServiceMetrics(
    "Azure Monitor",
    "ask for all four at once: az monitor metrics list --resource SERVER --interval PT1M --aggregation Average --metrics read_iops write_iops"
    " read_throughput write_throughput disk_queue_depth --output json",
    _TYPES,
)


def _of(
    family: ServiceMetrics, prefix: str, *, queue: str = "Queue Depth"
) -> dict[str, tuple[SeriesMetric, ServiceMetrics]]:
    figures = (("Operations/sec", "ops"), ("Bytes/sec", "bytes"))
    metrics = {
        f"{prefix} {way} {unit}".lower(): (
            SeriesMetric(f"{prefix} {way} {unit}", f"{way.lower()}_{figure}", RATE),
            family,
        )
        for way in ("Read", "Write")
        for unit, figure in figures
    }
    metrics[f"{prefix} {queue}".lower()] = (SeriesMetric(f"{prefix} {queue}", "queue", AVERAGE), family)
    return metrics


_METRICS: dict[str, tuple[SeriesMetric, ServiceMetrics]] = {
    **_of(DISK, "Composite Disk"),
    **_of(MACHINE, "Data Disk"),
    **_of(MACHINE, "OS Disk"),
    "data disk latency": (SeriesMetric("Data Disk Latency", "any_ms", AVERAGE), MACHINE),
    "os disk latency": (SeriesMetric("OS Disk Latency", "any_ms", AVERAGE), MACHINE),
    "read_iops": (SeriesMetric("read_iops", "read_ops", RATE), SERVER),
    "write_iops": (SeriesMetric("write_iops", "write_ops", RATE), SERVER),
    "read_throughput": (SeriesMetric("read_throughput", "read_bytes", RATE), SERVER),
    "write_throughput": (SeriesMetric("write_throughput", "write_bytes", RATE), SERVER),
    "disk_queue_depth": (SeriesMetric("disk_queue_depth", "queue", AVERAGE), SERVER),
}
"""By the name of the REST API in lower case: what it means, and whose it is."""
_RESOURCE = re.compile(
    r"/providers/Microsoft\.(?:Compute/(?:disks|virtualMachines)|DBforPostgreSQL/\w+)/([^/]+)", re.IGNORECASE
)
_DECORATION = re.compile(
    r"\s*\((?:preview|deprecated|avg|average|platform)\)|^(?:avg|average)\s+|,\s.*$", re.IGNORECASE
)
"""What the portal writes around a metric's name: ``Avg ...``, ``... (Preview)``, ``..., disk1``."""
_TIME_COLUMN = re.compile(r"time\s*stamp.*|time(?: \(utc\))?|date.*", re.IGNORECASE)
_RULE = re.compile(r"[-\s]+")
UNSPLIT = (
    "Data Disk metrics that are not split by LUN are the mean of a machine's disks and not their sum; with several disks ask for"
    " --filter \"LUN eq '*'\""
)
LABELS_MAX = 6
"""Names that an error lists."""


def is_azure(document: object) -> bool:
    """Whether a document has the form of Azure Monitor."""
    if not isinstance(document, dict):
        return False
    return _is_list(document.get("value")) or ("timeseries" in document and "name" in document)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) and "timeseries" in item for item in value)


def of_documents(documents: Sequence[Any], path: str) -> list[MetricSeries]:
    """The metrics of answers. :class:`InputError` where there is none of a disk, or no average."""
    result, labels = list[MetricSeries](), list[str]()
    for document in documents:
        metrics = document.get("value", [document]) if isinstance(document, dict) else []
        for metric in metrics if isinstance(metrics, list) else []:
            if not isinstance(metric, dict):
                continue
            label = _name(metric.get("name"))
            known = metric_of(label)
            if known is None:
                labels.append(label)
            else:
                result += _of_metric(metric, *known, path)
    if not result:
        raise _unknown(path, labels)
    return result


def _of_metric(
    document: Mapping[str, Any], metric: SeriesMetric, family: ServiceMetrics, path: str
) -> Iterator[MetricSeries]:
    resource = _RESOURCE.search(str(document.get("id", "")))
    name = resource[1] if resource else "disk"
    for part in document.get("timeseries") or []:
        if not isinstance(part, dict):
            continue
        lun = _lun(part.get("metadatavalues"))
        unsplit = family is MACHINE and lun is None and metric.name.startswith("Data")
        owner = (
            name
            if family is not MACHINE
            else f"{name} {f'LUN {lun}' if lun is not None else ' '.join(metric.name.split()[:2])}"
        )
        points = [item for item in part.get("data") or [] if isinstance(item, dict)]
        pairs = [(point.get("timeStamp"), point["average"]) for point in points if point.get("average") is not None]
        others = sorted(
            {key for point in points for key, value in point.items() if value is not None} - {"timeStamp", "average"}
        )
        if points and not pairs and others:
            raise InputError(
                f"{path}: {metric.name} has its {' and '.join(others)}, from which no rate follows",
                remedy="ask for it with --aggregation Average",
                code="size.metrics.statistic",
                data={"metric": metric.name, "statistic": ", ".join(others)},
            )
        yield MetricSeries(
            owner, metric, family, AVERAGE, by_time(pairs, f"{path}: {metric.name}"), UNSPLIT if unsplit else ""
        )


def _name(name: object) -> str:
    return str(name.get("value", "")) if isinstance(name, dict) else str(name or "")


def _lun(values: object) -> str | None:
    """The disk of a machine, if the metric was split by it."""
    for value in values if isinstance(values, list) else []:
        if isinstance(value, dict) and _name(value.get("name")).lower() in ("lun", "slotid"):
            return str(value.get("value"))
    return None


def metric_of(label: str) -> tuple[SeriesMetric, ServiceMetrics] | None:
    """What a name means, as the service or the portal writes it; ``None`` if it is none of a disk."""
    bare = _DECORATION.sub("", _DECORATION.sub("", label.strip())).strip().lower()
    known = _METRICS.get(bare)
    if known is None and bare.startswith("disk "):  # the portal omits the first word
        known = _METRICS.get(f"composite {bare}")
    return known


def of_table(text: str, path: str) -> list[MetricSeries]:
    """The metrics of a table: a column for each, as the portal downloads, or a row for each value, as ``--output table`` prints."""
    rows = _rows(text)
    place = next((place for place, row in enumerate(rows) if _is_header(row)), None)
    if place is None:
        return []
    header, body = [cell.strip() for cell in rows[place]], rows[place + 1 :]
    lower = [name.lower() for name in header]
    if "name" in lower and "average" in lower:
        return _of_long(lower, body, path)
    table = []
    for column, label in enumerate(header):
        known = metric_of(label)
        if known is not None:
            pairs = [(row[0], row[column]) for row in body if len(row) > column and row[column].strip()]
            table.append(_series(known, pairs, path))
    if not table:
        raise _unknown(path, header[1:])
    return table


def _of_long(header: Sequence[str], rows: Sequence[Sequence[str]], path: str) -> list[MetricSeries]:
    time, name, value = (
        next(place for place, label in enumerate(header) if _TIME_COLUMN.fullmatch(label)),
        header.index("name"),
        header.index("average"),
    )
    pairs: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        if len(row) > max(time, name, value) and row[value].strip():
            pairs.setdefault(row[name].strip(), []).append((row[time], row[value]))
    known = {label: metric_of(label) for label in pairs}
    series = [_series(item, pairs[label], path) for label, item in known.items() if item is not None]
    if not series:
        raise _unknown(path, list(pairs))
    return series


def _series(known: tuple[SeriesMetric, ServiceMetrics], pairs: Sequence[tuple[str, str]], path: str) -> MetricSeries:
    metric, family = known
    values = []
    for at, text in pairs:
        try:
            values.append((at.strip(), float(text)))
        except ValueError:
            raise InputError(
                f"{path}: {metric.name} at {at.strip()} is `{text}`, which is not a number",
                remedy="give the table as Azure wrote it, without thousands or decimal commas",
                code="size.metrics.not_a_number",
            ) from None
    return MetricSeries("disk", metric, family, AVERAGE, by_time(values, f"{path}: {metric.name}"))


def _rows(text: str) -> list[list[str]]:
    """The cells of each line: between commas, semicolons or tabs, or two blanks apart."""
    lines = [line for line in text.splitlines() if line.strip()]
    separated = next((sign for sign in ("\t", ";", ",") if any(sign in line for line in lines[:3])), None)
    if separated is not None:
        return list(csv.reader(lines, delimiter=separated))
    return [re.split(r" {2,}", line.strip()) for line in lines if not _RULE.fullmatch(line)]


def _is_header(row: Sequence[str]) -> bool:
    cells = [cell.strip() for cell in row]
    has_time = any(_TIME_COLUMN.fullmatch(cell) for cell in cells)
    return has_time and len(cells) > 1 and ("average" in [cell.lower() for cell in cells] or any(map(metric_of, cells)))


def _unknown(path: str, labels: Sequence[str]) -> InputError:
    return InputError(
        f"{path} has no metric of a disk that is known here: it has {', '.join(labels[:LABELS_MAX]) or 'none'}",
        remedy=DISK.remedy,
        code="size.metrics.none",
        data={"labels": list(labels[:LABELS_MAX])},
    )
