"""The exposition is what the format asks for, says what the daemon said, and is what the dashboard asks for."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.advise.metrics.open_metrics import FAMILIES, VolumeScrape, full_name, text
from pgdyno.advise.metrics.samples import histogram, statistics

from .exposition import parse

DASHBOARD = Path(__file__).parents[2] / "dashboards" / "grafana-volumes.json"
SPEC = {"type": "gp3", "spec": "gp3:size=100GiB", "limits": {"iops": 3000, "throughput_mib_per_s": 125}}
BINS = 28
INSTANCE = {"instance_exceeded_iops_ns": 10**9, "instance_iops_balance_ppm": 250_000}


def said(**changes: Any) -> dict[str, Any]:
    """What a daemon says: 700 reads of 300 us or so, 300 writes of 1.1 ms."""
    counters = {
        "read_ops": 700,
        "write_ops": 300,
        "read_bytes": 700 * 8192,
        "write_bytes": 300 * 16384,
        "flush_ops": 12,
        "io_units": 1000,
        "read_time_ns": 210_000_000,
        "write_time_ns": 330_000_000,
        "queue_length": 4,
        "queue_time_ns": 540_000_000,
        "busy_ns": 500_000_000,
        "exceeded_iops_ns": 250_000_000,
        "exceeded_throughput_ns": 0,
        "late_read_ops": 1,
        "late_write_ops": 2,
        "overrun_ops": 3,
        "refused_ops": 0,
        "failed_ops": 4,
        "daemon_cpu_ns": 90_000_000,
    }
    reads, writes = [0] * BINS, [0] * BINS
    reads[9], writes[11] = 700, 300
    histograms = {"read_latency_us_log2": reads, "write_latency_us_log2": writes}
    return {"t_ns": 1, "dilation": 8, "counters": counters | changes, "histograms": histograms}


def test_the_text_says_what_the_daemon_said() -> None:
    restored = {"initialized_ppm": 250_000, "first_touch_ns": 1_500_000_000, "degraded_ns": 7_000_000_000}
    families = parse(text([VolumeScrape("gp3-1", SPEC, said(burst_balance_ppm=400_000, **restored, **INSTANCE))]))
    name = "pgdyno_volume"
    assert families[f"{name}_operations"].value("_total", operation="read") == 700
    assert families[f"{name}_transferred_bytes"].value("_total", operation="write") == 300 * 16384
    assert families[f"{name}_queue_seconds"].value("_total") == 0.54
    assert families[f"{name}_failed_operations"].value("_total") == 4
    assert families[f"{name}_exceeded_seconds"].value("_total", limit="iops") == 0.25
    assert families[f"{name}_exceeded_seconds"].value("_total", limit="instance_iops") == 1
    assert families[f"{name}_burst_balance_ratio"].value() == 0.4
    assert families[f"{name}_initialized_ratio"].value() == 0.25
    assert families[f"{name}_first_touch_seconds"].value("_total") == 1.5
    assert families[f"{name}_degraded_seconds"].value("_total") == 7
    assert families[f"{name}_provisioned_bytes_per_second"].value() == 125 * 2**20
    assert families[f"{name}_latency_seconds"].value("_sum", operation="read") == 0.21
    below_512_us = families[f"{name}_latency_seconds"].value("_bucket", operation="read", le="0.000512")
    assert (below_512_us, families[f"{name}_latency_seconds"].value("_count", operation="write")) == (700, 300)
    assert families[name].value("_info", type="gp3", spec="gp3:size=100GiB") == 1
    assert families[f"{name}_dilation"].value() == 8
    assert set(families) == {full_name(family) for family in FAMILIES}


def test_a_volume_whose_daemon_is_silent_is_down_and_hides_nobody() -> None:
    families = parse(text([VolumeScrape("a", SPEC, None), VolumeScrape("b", SPEC, said())]))
    up = families["pgdyno_volume_up"]
    assert (up.value(volume="a"), up.value(volume="b")) == (0, 1)
    assert {labels["volume"] for _, labels, _ in families["pgdyno_volume_operations"].samples} == {"b"}


def test_no_volume_is_an_empty_text() -> None:
    assert text([]) == "# EOF\n"


@given(spec=st.text(), name=st.text(min_size=1))
def test_any_text_survives_in_a_label(spec: str, name: str) -> None:
    families = parse(text([VolumeScrape(name, {"type": "gp3", "spec": spec}, None)]))
    (_, labels, _) = families["pgdyno_volume"].samples[0]
    assert (labels["volume"], labels["spec"]) == (name, spec)


@given(reads=st.lists(st.integers(0, 2**40), min_size=BINS, max_size=BINS))
def test_buckets_count_every_operation_once(reads: list[int]) -> None:
    document = said(read_ops=sum(reads))
    document["histograms"]["read_latency_us_log2"] = reads
    latency = parse(text([VolumeScrape("v", SPEC, document)]))["pgdyno_volume_latency_seconds"]
    assert latency.value("_count", operation="read") == sum(reads)
    for place in range(BINS - 1):
        assert latency.value("_bucket", operation="read", le=repr(2**place / 1e6)) == sum(reads[: place + 1])


def test_the_nvme_page_has_the_keys_and_units_of_ebsnvme() -> None:
    page = statistics(said())
    assert page["total_read_ops"] == 700
    assert page["total_write_time"] == 330_000, "microseconds"
    assert page["ebs_volume_performance_exceeded_iops"] == 250_000
    assert page["ec2_instance_ebs_performance_exceeded_tp"] == 0, "no instance, no limit of one"
    assert page["volume_queue_length"] == 4
    assert list(page)[-2:] == ["read_io_latency_histogram", "write_io_latency_histogram"]
    read = page["read_io_latency_histogram"]
    assert read["num_bins"] == BINS
    assert [other for other in read["bins"] if other["count"]] == [{"lower": 256, "upper": 512, "count": 700}]


def test_bins_meet_without_a_gap() -> None:
    bins = histogram([0] * BINS)["bins"]
    assert bins[0]["lower"] == 0
    assert all(other["upper"] == following["lower"] for other, following in pairwise(bins))


def _expressions(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [
            *([node["expr"]] if "expr" in node else []),
            *(e for child in node.values() for e in _expressions(child)),
        ]
    return [e for child in node for e in _expressions(child)] if isinstance(node, list) else []


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return document


def test_the_dashboard_asks_for_series_that_are_served(dashboard: dict[str, Any]) -> None:
    families = parse(text([VolumeScrape("v", SPEC, said(burst_balance_ppm=1, **INSTANCE))]))
    served = {family.name + suffix for family in families.values() for suffix, _, _ in family.samples}
    results = {name for expression in _expressions(dashboard) for name in re.findall(r"pgdyno_volume\w*", expression)}
    assert results <= served
    assert {"pgdyno_volume_operations_total", "pgdyno_volume_latency_seconds_bucket"} <= results


def test_what_the_dashboard_shows_for_a_second_is_for_one_of_the_volume(dashboard: dict[str, Any]) -> None:
    """Prometheus divides by the seconds of its own clock; beside them stand limits for a second of the volume."""
    counted = r"pgdyno_volume_(operations|transferred_bytes|queue_seconds|exceeded_seconds|busy_seconds)_total"
    rates = [
        expression
        for expression in _expressions(dashboard)
        if re.search(counted, expression) and "/ sum" not in expression
    ]
    assert len(rates) == 5
    assert all("* on (volume) group_left () max by (volume) (pgdyno_volume_dilation" in rate for rate in rates)


def test_the_dashboards_panels_have_places_of_their_own(dashboard: dict[str, Any]) -> None:
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)), "no two panels overlap"
    assert all(0 <= x < 24 for x, _ in cells), "Grafana's grid has 24 columns"
    assert all(panel["description"] and panel["targets"] for panel in panels)
