"""The rules of published documents, applied to seconds that are known: what each says, and whether it agrees with the verdict."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from pgdyno.diagnose.alongside import Grid
from pgdyno.diagnose.bought import purchase_of
from pgdyno.diagnose.diagnosis import diagnose_files
from pgdyno.diagnose.published import Finding, findings_of, iops_needed
from pgdyno.diagnose.source import sources_of
from pgdyno.diagnose.statements import Slow, Statement, top_of
from pgdyno.diagnose.words import lines

from ..size import formats

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.diagnose.diagnosis import Diagnosis

QUEUE_RULE = "VolumeQueueLength, 1 for each 1,000 IOPS"


def metrics(path: Path, load: formats.Interval, **further: list[float]) -> Path:
    """CloudWatch's answer of an hour of minutes with one load, and further metrics of the same volume, the newest value first."""
    count = 60
    answer = json.loads(formats.cloudwatch([load] * count, 60))
    times = answer["MetricDataResults"][0]["Timestamps"]
    for result in answer["MetricDataResults"]:
        if result["Label"].split()[1] in further:
            result["Values"] = further.pop(result["Label"].split()[1])
    for name, values in further.items():
        answer["MetricDataResults"].append(
            {"Id": name.lower(), "Label": f"vol-0a1b2c3d {name}", "Timestamps": times, "Values": values}
        )
    path.write_text(json.dumps(answer))
    return path


def judged(file: Path, bought: str) -> Diagnosis:
    return diagnose_files(sources_of({"--cloudwatch": [str(file)]}), purchase_of([bought], None))


def rule(found: Diagnosis, name: str) -> Finding:
    return next(one for one in found.findings if one.rule == name)


def test_a_queue_at_a_limit_agrees_and_is_no_rate(tmp_path: Path) -> None:
    load = formats.Interval(1800, 1190, 14_400, 9_520)
    busy = [1800 * 60 * 0.0094] * 60, [1190 * 60 * 0.0094] * 60
    file = metrics(tmp_path / "a", load, VolumeQueueLength=[28.1] * 60, VolumeTotalReadTime=busy[0], VolumeTotalWriteTime=busy[1],
                   VolumeIOPSExceededCheck=[1.0] * 60)  # fmt: skip
    found = judged(file, "gp3")
    assert found.binding.verdict.limit == "volume_iops"
    queue = rule(found, QUEUE_RULE)
    assert (queue.figure, queue.agrees) == ("28.1 requests in flight, against 3.00", True)
    post = rule(found, "IOPS and disk queue length added up")
    assert post.source == "post"
    assert post.figure == "2,990 + 28.1 = 3,018 IOPS"
    assert not post.agrees, "in a minute of which all wanted more, at least twice as much was wanted"
    assert "a queue is not a rate" in post.why
    assert rule(found, "IOPS and throughput below the provisioned").agrees
    assert any("rules     VolumeQueueLength" in line for line in lines(found))


def test_a_long_queue_below_the_limit_is_latency(tmp_path: Path) -> None:
    file = metrics(tmp_path / "a", formats.Interval(500, 400, 4_000, 3_200), VolumeQueueLength=[9.0] * 60)
    found = judged(file, "gp3")
    queue = rule(found, QUEUE_RULE)
    assert found.binding.verdict.limit is None
    assert not queue.agrees
    assert "the rule supposes 1 ms" in queue.why


def test_the_posts_arithmetic_against_littles_law() -> None:
    """750 IOPS and a queue of 2,048 made 2,750 there, so 4,400 were bought."""
    low, high = iops_needed(750, 2048, request_ms=2048 / 0.750, usual_ms=1.0)
    assert [low, high] == pytest.approx([204_800, 2_048_000])
    assert not low <= 750 + 2048 <= high
    assert list(iops_needed(3000, 28.2, request_ms=9.4, usual_ms=0.66)) == pytest.approx([3000, 28_200 / 0.66])
    least, _ = iops_needed(3000, 28.2, request_ms=9.4, usual_ms=0.66, exceeded=0.5)
    assert least == pytest.approx(4500), "cap x (1 + share of the time in which more was wanted)"


def test_a_balance_that_falls_says_when_it_ends(tmp_path: Path) -> None:
    falling = [60.0 + minute * 0.5 for minute in range(60)]
    file = metrics(tmp_path / "a", formats.Interval(500, 400, 4_000, 3_200), BurstBalance=falling)
    balance = rule(judged(file, "gp2:size=100GiB"), "BurstBalance")
    assert balance.figure == "60 % left, and at this rate it ends in 120 min"
    assert balance.agrees
    assert not [one for one in judged(file, "gp2:size=100GiB").findings if one.rule == "burst duration"], (
        "the balance tells more"
    )


def test_without_a_balance_the_burst_duration_is_from_a_full_bucket(tmp_path: Path) -> None:
    file = metrics(tmp_path / "a", formats.Interval(500, 400, 4_000, 3_200))
    burst = rule(judged(file, "gp2:size=100GiB"), "burst duration")
    whole = timedelta(seconds=5_400_000 / (900 - 300))
    assert burst.figure.startswith(
        f"a full bucket lasts {whole.total_seconds() / 3600:.0f} h at 900 IOPS; 300 are earned"
    )
    assert "0 credits" not in burst.figure


def test_statements_are_named_once_by_what_they_move_most() -> None:
    made = tuple(
        Statement(number, 10, 1.0, read, wal, 0)
        for number, read, wal in ((1, 100, 0), (2, 0, 50), (3, 60, 60), (4, 0, 0))
    )
    assert [one.queryid for one in top_of(made)] == [1, 2, 3]
    assert Slow(1000.0, on=False, statements=0, calls=0).on is False


@pytest.mark.parametrize(
    ("kind", "figure", "agrees"),
    [
        ("m5.large", "may take 10 GiB of 8 GiB", False),
        ("m5.xlarge", "may take 10 GiB of 16 GiB", True),
    ],
)
def test_an_instance_with_too_little_memory_for_the_connections_is_named(
    tmp_path: Path, kind: str, figure: str, *, agrees: bool
) -> None:
    """The volume is idle: no read misses the memory that sessions may take, so the rule does not agree with the verdict."""
    file = metrics(tmp_path / "a", formats.Interval(5, 4, 40, 32))
    found = judged(file, "gp3")
    settings = {"shared_buffers": str((2 << 30) // 8192), "max_connections": "500", "work_mem": "16777"}
    instance = purchase_of([], kind).instance
    said = findings_of(found.binding, {}, (), Grid(0.0, 1.0, 1), None, instance, settings)
    (memory,) = [one for one in said if one.rule == "memory for sorts, hashes and connections"]
    assert memory.figure.endswith(figure)
    assert memory.agrees is agrees
