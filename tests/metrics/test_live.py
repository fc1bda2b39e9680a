"""Metrics of an attached volume: its daemon's counters, whoever says them."""

from __future__ import annotations

import json
import mmap
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.advise.metrics import cloudwatch, open_metrics, samples
from pgdyno.cli.main import run
from pgdyno.machine import volume
from pgdyno.machine.clean import clean

from .exposition import parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITES, BLOCK_BYTES = 400, 8192


@pytest.fixture
def attached(tmp_path: Path) -> Iterator[volume.AttachedVolume]:
    """A gp3 volume on which 400 blocks were written, one after the other, past the page cache."""
    document = volume.attach("gp3", mount=None, name="m", seed=3)
    try:
        device = os.open(document.block_device, os.O_WRONLY | os.O_DIRECT)
        try:
            block = mmap.mmap(-1, BLOCK_BYTES)
            for place in range(WRITES):
                os.pwrite(device, block, place * BLOCK_BYTES)
        finally:
            os.close(device)
        yield document
    finally:
        document.detach()
        clean(document.state_dir)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run(["metrics", *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.needs_fuse
def test_every_dialect_says_the_same_of_a_volume(
    attached: volume.AttachedVolume, capsys: pytest.CaptureFixture[str]
) -> None:
    counters = attached.stats()["counters"]
    assert counters["write_ops"] >= WRITES
    assert counters["write_bytes"] >= WRITES * BLOCK_BYTES
    assert 0 < counters["busy_ns"] <= counters["queue_time_ns"] + counters["busy_ns"]

    page = printed(capsys, "nvme", "m")
    assert page["total_write_ops"] == counters["write_ops"]
    assert page["total_write_time"] == counters["write_time_ns"] // 1000
    bins = page["write_io_latency_histogram"]["bins"]
    assert sum(other["count"] for other in bins) == counters["write_ops"]
    slowest = max(other["upper"] for other in bins if other["count"])
    assert slowest > 512, "a write of gp3 takes longer"

    document = printed(capsys, "cloudwatch", "m")
    total = {
        MetricDataResult["Label"]: sum(MetricDataResult["Values"]) for MetricDataResult in document["MetricDataResults"]
    }
    assert total["VolumeWriteOps"] == counters["write_ops"]
    assert total["VolumeTotalWriteTime"] == pytest.approx(counters["write_time_ns"] / 1e9)
    assert total["VolumeIdleTime"] > 0

    families = parse(open_metrics.attached_exposition(["m"]))
    assert families["pgdyno_volume_operations"].value("_total", operation="write") == counters["write_ops"]
    assert families["pgdyno_volume_latency_seconds"].value("_count", operation="write") == counters["write_ops"]

    assert run(["metrics", "nvme", "m"]) == 0
    assert "WRITE LATENCY us" in capsys.readouterr().out


@pytest.mark.needs_fuse
def test_idle_time_and_busy_time_are_all_the_time(attached: volume.AttachedVolume) -> None:
    live = samples.of_volume(attached)
    minutes = cloudwatch.minutes(live)
    assert live.begin_ns < live.end_ns
    assert sum(minute.seconds for minute in minutes) == pytest.approx((live.end_ns - live.begin_ns) / 1e9)
    busy_ns = live.delta("busy_ns", live.begin_ns, live.end_ns)
    queue_ns = live.delta("queue_time_ns", live.begin_ns, live.end_ns)
    assert busy_ns is not None and queue_ns is not None
    assert busy_ns == pytest.approx(queue_ns, rel=0.2), "one request at a time, but for those of the attach"


@pytest.mark.needs_fuse
def test_credits_that_are_left_are_the_burst_balance(capsys: pytest.CaptureFixture[str]) -> None:
    """gp2 of 100 GiB with 40,000 of 5.4 million credits: it earns 300 a second, and nobody spends them."""
    with volume.attached("gp2:size=100GiB,credits=40000", mount=None, name="c") as answer:
        before = answer.stats()["counters"]
        (result,) = printed(capsys, "cloudwatch", "c", "--metric", "BurstBalance")["MetricDataResults"]
        after = answer.stats()["counters"]
        assert before["burst_balance_ppm"] / 1e4 <= result["Values"][0] <= after["burst_balance_ppm"] / 1e4
        assert before["io_credits"] >= 40_000 - 100, "what attaching it took"
        assert run(["metrics", "cloudwatch", "c"]) == 0
        table = capsys.readouterr().out
        assert "of 5,400,000, " in table
        assert "s at full burst" in table
        page = parse(open_metrics.attached_exposition(["c"]))["pgdyno_volume_burst_balance_ratio"].value()
        assert page >= after["burst_balance_ppm"] / 1e6
    clean(answer.state_dir)


@pytest.mark.needs_fuse
def test_a_dilated_volume_has_the_minutes_of_its_own_time() -> None:
    with volume.attached("gp3", mount=None, name="m", dilation=8) as result:
        begin_ns = result.facts["started_monotonic_ns"]
        live = samples.of_volume(result)
        assert live.begin_ns < live.end_ns < begin_ns + (time.monotonic_ns() - begin_ns) / 8
    clean(result.state_dir)
