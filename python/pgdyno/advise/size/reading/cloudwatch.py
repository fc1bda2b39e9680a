"""Metrics of cloud providers, as their commands and consoles write them: the file of ``--cloudwatch``.

=======================================================  ===========================================
form                                                     read by
=======================================================  ===========================================
``get-metric-data``, ``get-metric-statistics``           this module
a metric stream, one JSON document for each value        this module
the console's *Download as .csv*                         :mod:`pgdyno.advise.size.reading.console`
RDS Enhanced Monitoring, Performance Insights            :mod:`pgdyno.advise.size.reading.rds_os`
``az monitor metrics list``, the portal's table          :mod:`pgdyno.advise.size.reading.azure`
=======================================================  ===========================================

Traps that are taken care of: the newest value comes first; a page may not be the last one; operations and bytes of EBS are sums of
a period, those of RDS are per second.

Names and units: Amazon EC2 User Guide (awsdocs/amazon-ec2-user-guide e3707c43, using_cloudwatch_ebs.md, 15 June 2023),
Amazon RDS User Guide (awsdocs/amazon-rds-user-guide f2e9ed35, rds-metrics.md, June 2023); the form of the answer: Amazon
CloudWatch API, GetMetricData and GetMetricStatistics; of a stream: CloudWatch User Guide, *metric streams in JSON format*.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from ....base.errors import InputError
from ..measured import DeviceSamples
from . import azure, console, names, rds_os
from .points import by_time, shown
from .series import AVERAGE, ONE_VALUE, SUM, MetricSeries, volumes

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
            remedy=names.VOLUME.remedy,
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
    elif any(rds_os.is_of_system(document) for document in documents):
        yield from rds_os.of_documents(documents, path)
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
    series = console.series(text, path) or azure.of_table(text, path)
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
        result = names.find(label) or names.find(identifier)
        if result is None:
            labels.append(label or identifier)
            continue
        known = True
        metric, family, place = result
        points = by_time(pairs, f"{path}: {label or identifier}")
        owner = names.owner(label, place if place.string is label else None)
        yield MetricSeries(owner, metric, family, statistic, points, note)
    if labels and not known:
        listed = ", ".join(labels[:LABELS_MAX])
        raise InputError(
            f"{path} has no metric of a volume that is known here: it has {listed}",
            remedy=names.remedy_for(labels),
            code="size.metrics.aurora" if any(names.is_aurora(label) for label in labels) else "size.metrics.none",
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
    result = names.find(label)
    fitting = SUM if result is not None and result[0].kind == SUM else AVERAGE
    present = [statistic for statistic in (SUM, AVERAGE) if any(statistic in point for point in points)]
    for statistic in [fitting] if fitting in present else present:
        pairs = [(point.get("Timestamp"), point[statistic]) for point in points if statistic in point]
        yield label, "", statistic, pairs, ""
    if points and not present:
        others = sorted({key for point in points for key in point} - {"Timestamp", "Unit"})
        raise InputError(
            f"{path}: {label} has {', '.join(others) or 'no statistic'}, from which no rate follows",
            remedy=result[1].remedy if result is not None else names.VOLUME.remedy,
            code="size.metrics.statistic",
            data={"metric": label, "statistic": ", ".join(others)},
        )


def _of_stream(documents: list[dict[str, Any]], path: str) -> Iterator[MetricSeries]:
    """A metric stream: a value for each minute, with its sum and its count."""
    for document in documents:
        name, value, dimensions = str(document["metric_name"]), document["value"], document.get("dimensions")
        result = names.find(name)
        if result is None or not isinstance(value, dict):
            continue
        metric, family, _ = result
        total, count = value.get("sum"), value.get("count")
        if metric.kind != SUM and isinstance(total, int | float) and isinstance(count, int | float) and count:
            total = total / count
        owner = names.owner_of(dimensions if isinstance(dimensions, dict) else {})
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
