"""Periods of several minutes, and the document of get-metric-data."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from pgdyno.advise.metrics import cloudwatch
from pgdyno.advise.metrics.cloudwatch import BY_NAME, STATISTICS, document, find_metrics, minutes, series
from pgdyno.base.errors import InputError

from .samples import ANCHOR, SECOND_NS, make_samples


def test_a_datapoint_is_stamped_with_the_begin_of_its_minute() -> None:
    samples = make_samples(180)
    answer = document([series(samples, minutes(samples), BY_NAME["VolumeReadOps"])])
    (result,) = answer["MetricDataResults"]
    assert result["Timestamps"] == [f"2026-11-21T12:{minute}:00+00:00" for minute in (59, 58, 57, 56)]
    assert result["Values"] == pytest.approx([11_000, 60_000, 60_000, 49_000])
    assert (result["Id"], result["Label"], result["StatusCode"]) == ("volumeReadOps", "VolumeReadOps", "Complete")
    assert answer["Messages"] == [
        {
            "Code": "PartialPeriod",
            "Value": "only a part of these periods was sampled: 2026-11-21T12:56:00+00:00, 2026-11-21T12:59:00+00:00",
        }
    ]


def test_the_oldest_comes_first_when_asked_for() -> None:
    samples = make_samples(180)
    result = document([series(samples, minutes(samples), BY_NAME["VolumeReadOps"])], "TimestampAscending")
    stamps = [dt.datetime.fromisoformat(text) for text in result["MetricDataResults"][0]["Timestamps"]]
    assert stamps == sorted(stamps)


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [("Sum", 300_000), ("Average", 60_000), ("Minimum", 60_000), ("Maximum", 60_000), ("SampleCount", 5)],
)
def test_five_minutes_are_summed_up_by_their_statistic(statistic: str, expected: float) -> None:
    """Twelve minutes from 12:56:11: the five of 13:00 are whole."""
    samples = make_samples(720)
    result = series(samples, minutes(samples), BY_NAME["VolumeReadOps"], period_s=300, statistic=statistic)
    whole = [point for point in result.points if point.whole]
    assert [dt.datetime.fromtimestamp(point.unix_s, dt.UTC).minute for point in result.points] == [55, 0, 5]
    assert [point.value for point in whole] == pytest.approx([expected])
    assert set(STATISTICS) == {"Sum", "Average", "Minimum", "Maximum", "SampleCount"}


def test_periods_of_a_phase_begin_with_it() -> None:
    samples = make_samples(720)
    begin_ns = ANCHOR.monotonic_ns + 7 * SECOND_NS
    first = (ANCHOR.unix_ns + 7 * SECOND_NS) // SECOND_NS
    result = minutes(samples, begin_ns=begin_ns)
    one = series(samples, result, BY_NAME["VolumeReadOps"], period_s=300, origin_s=result[0].unix_s)
    assert [point.unix_s - first for point in one.points] == [0, 300, 600]
    assert [point.whole for point in one.points] == [True, True, False]


def test_of_several_volumes_the_label_says_which() -> None:
    both = [make_samples(120, volume=name) for name in ("data", "tablespace.hot-1")]
    result = [series(samples, minutes(samples), BY_NAME["VolumeQueueLength"]) for samples in both]
    results = document(result)["MetricDataResults"]
    assert [result["Label"] for result in results] == ["data VolumeQueueLength", "tablespace.hot-1 VolumeQueueLength"]
    identifiers = [result["Id"] for result in results]
    assert len(set(identifiers)) == 2
    assert all(re.fullmatch(r"[a-z][A-Za-z0-9_]*", identifier) for identifier in identifiers), (
        "as CloudWatch allows them"
    )


def test_a_metric_that_the_volume_lacks_is_not_in_the_document() -> None:
    samples = make_samples(120)
    result = document([series(samples, minutes(samples), BY_NAME["BurstBalance"])])
    assert result == {"MetricDataResults": [], "Messages": []}


def test_an_unknown_metric_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError) as refused:
        find_metrics(["VolumeReadOp"])
    assert "VolumeReadOps" in refused.value.remedy
    with pytest.raises(InputError) as far:
        find_metrics(["xyz"])
    assert "pgdyno metrics names" in far.value.remedy
    assert [find_metric.name for find_metric in find_metrics(["BurstBalance"])] == ["BurstBalance"]
    assert find_metrics([]) == list(cloudwatch.METRICS)


def test_a_metric_of_the_instance_has_an_identifier_that_cloudwatch_allows() -> None:
    samples = make_samples(120, levels={"instance_iops_balance_ppm": (1_000_000.0, 1_000_000.0)})
    (result,) = document([series(samples, minutes(samples), BY_NAME["EBSIOBalance%"])])["MetricDataResults"]
    assert (result["Id"], result["Label"]) == ("eBSIOBalance_", "EBSIOBalance%")
    assert set(result["Values"]) == {100.0}
