"""The rules of published documents, applied to seconds that are known: what each says, and whether it agrees with the verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from pgdyno.advise.diagnose.activity import RunningStatements, Slow, StatementLoad, top_of
from pgdyno.advise.diagnose.diagnosis import diagnose_files
from pgdyno.advise.diagnose.files import TimeGrid, sources_of
from pgdyno.advise.diagnose.published import RuleFinding, findings_of, iops_needed
from pgdyno.advise.diagnose.remedies import purchase_of
from pgdyno.advise.diagnose.words import lines
from pgdyno.analysis.binding.rules import LIMITS
from pgdyno.analysis.binding.verdict import BindingVerdict

from ..size import formats

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.advise.diagnose.diagnosis import Diagnosis
    from pgdyno.analysis.binding.rules import Limit

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


def rule(diagnosis: Diagnosis, name: str) -> RuleFinding:
    return next(finding for finding in diagnosis.findings if finding.rule == name)


def test_a_queue_at_a_limit_agrees_and_is_no_rate(tmp_path: Path) -> None:
    load = formats.Interval(1800, 1190, 14_400, 9_520)
    busy = [1800 * 60 * 0.0094] * 60, [1190 * 60 * 0.0094] * 60
    file = metrics(tmp_path / "a", load, VolumeQueueLength=[28.1] * 60, VolumeTotalReadTime=busy[0], VolumeTotalWriteTime=busy[1],
                   VolumeIOPSExceededCheck=[1.0] * 60)  # fmt: skip
    diagnosis = judged(file, "gp3")
    assert diagnosis.binding.verdict.limit == "volume_iops"
    queue = rule(diagnosis, QUEUE_RULE)
    assert (queue.figure, queue.agrees) == ("28.1 requests in flight, against 3.00", True)
    post = rule(diagnosis, "IOPS and disk queue length added up")
    assert post.source == "post"
    assert post.figure == "2,990 + 28.1 = 3,018 IOPS"
    assert not post.agrees, "in a minute of which all wanted more, at least twice as much was wanted"
    assert "a queue is not a rate" in post.why
    assert rule(diagnosis, "IOPS and throughput below the provisioned").agrees
    assert any("rules     VolumeQueueLength" in line for line in lines(diagnosis))


def test_a_long_queue_below_the_limit_is_latency(tmp_path: Path) -> None:
    file = metrics(tmp_path / "a", formats.Interval(500, 400, 4_000, 3_200), VolumeQueueLength=[9.0] * 60)
    diagnosis = judged(file, "gp3")
    queue = rule(diagnosis, QUEUE_RULE)
    assert diagnosis.binding.verdict.limit is None
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
    assert not [finding for finding in judged(file, "gp2:size=100GiB").findings if finding.rule == "burst duration"], (
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
        StatementLoad(number, 10, 1.0, read, wal, 0)
        for number, read, wal in ((1, 100, 0), (2, 0, 50), (3, 60, 60), (4, 0, 0))
    )
    assert [load.queryid for load in top_of(made)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("slow", "figure"),
    [
        (Slow(1000.0, -1.0, 0, 0), "no statement took 1,000 ms or more on average (the setting is off)"),
        (Slow(1000.0, 0.0, 0, 0), "no statement took 1,000 ms or more on average (the setting logs all)"),
        (Slow(250.0, 250.0, 1, 1), "1 statement took 250 ms or more on average, in 1 call"),
        (
            Slow(1000.0, -1.0, 0, 0, RunningStatements(6, 14_000.0)),
            "no statement took 1,000 ms or more on average; 6 had not ended, after up to 14 s (the setting is off)",
        ),
        (Slow(1000.0, 1000.0, None, 0, RunningStatements(0, 3.0)), "no statement had run for 1,000 ms or more"),
    ],
)
def test_slow_statements_are_said_as_they_were_seen(tmp_path: Path, slow: Slow, figure: str) -> None:
    load = formats.Interval(1800, 1190, 14_400, 9_520)
    diagnosis = judged(metrics(tmp_path / "a", load, VolumeIOPSExceededCheck=[1.0] * 60), "gp3")
    (finding,) = [
        finding
        for finding in findings_of(diagnosis.binding, {}, (), TimeGrid(0.0, 1.0, 1), slow)
        if finding.rule.startswith("log_min")
    ]
    assert finding.figure == figure
    assert finding.agrees is slow.any, "the volume's IOPS bind"


@pytest.mark.parametrize("limit", [*LIMITS, None])
def test_no_rule_has_a_word_of_the_harness(tmp_path: Path, limit: Limit | None) -> None:
    diagnosis = judged(metrics(tmp_path / "a", formats.Interval(500, 400, 4_000, 3_200)), "gp3")
    shares = {} if limit is None else {limit: 1.0}
    binding = replace(diagnosis.binding, verdict=BindingVerdict(limit, None, "high" if limit else "unknown", shares))
    for slow in (Slow(1000.0, -1.0, 0, 0), Slow(1000.0, -1.0, 3, 5)):
        for finding in findings_of(binding, {}, (), TimeGrid(0.0, 1.0, 1), slow):
            assert "harness" not in finding.why
            assert ("nothing binds" in finding.why) <= (limit == "client")
            assert ("another thing binds" in finding.why) is False


def test_figures_that_nobody_gave_are_never_printed(tmp_path: Path) -> None:
    """CloudWatch with operations and bytes alone: no latency, and no queue."""
    load = formats.Interval(1800, 1190, 14_400, 9_520)
    named = ("VolumeReadOps", "VolumeWriteOps", "VolumeReadBytes", "VolumeWriteBytes", "VolumeIOPSExceededCheck")
    for count in (4, 5):
        file = metrics(tmp_path / "a", load, VolumeIOPSExceededCheck=[1.0] * 60)
        answer = json.loads(file.read_text())
        kept = [
            MetricDataResult
            for MetricDataResult in answer["MetricDataResults"]
            if MetricDataResult["Label"].split()[1] in named[:count]
        ]
        assert len(kept) == count
        file.write_text(json.dumps({**answer, "MetricDataResults": kept}))
        diagnosis = judged(file, "gp3")
        assert diagnosis.binding.verdict.limit == "volume_iops"
        text = " ".join(" ".join(lines(diagnosis)).split())
        assert " 0 ms" not in text, text
        assert "requests in flight" not in text
        assert "I/O latency averaged" not in text
        (device,) = {item.devices["data"] for item in diagnosis.binding.evidence.seconds}
        assert (device.request_ms, device.queue_length, device.reading) == (None, None, None)


@pytest.mark.parametrize(
    ("bought", "load", "seen", "unit"),
    [
        ("gp3", formats.Interval(18_000, 12_000, 144_000, 96_000), 30_000, "IOPS"),
        ("gp3:iops=16000,throughput=125", formats.Interval(1_000, 600, 400_000, 300_000), 684, "MiB/s"),
        ("gp2:size=100GiB", formats.Interval(3_000, 2_000, 24_000, 16_000), 5_000, "IOPS"),
    ],
)
def test_a_volume_that_does_far_more_than_was_bought_was_not_bought(
    tmp_path: Path, bought: str, load: formats.Interval, seen: float, unit: str
) -> None:
    diagnosis = judged(metrics(tmp_path / "a", load), bought)
    (wrong,) = diagnosis.wrong
    assert (wrong.flag, wrong.unit, wrong.role) == ("--bought", unit, "data")
    assert wrong.seen == pytest.approx(seen, rel=0.01)
    assert diagnosis.binding.verdict.limit is None
    assert diagnosis.findings == ()
    assert diagnosis.remedy is not None
    assert diagnosis.remedy.spec is None
    assert next(lines(diagnosis)).startswith("limit     --bought is wrong: ")


def test_a_moment_above_what_was_bought_contradicts_nothing(tmp_path: Path) -> None:
    """By the kernel's count requests in sequence are several, and a bucket of tokens lets more through for a second."""
    rows = [formats.Interval(1800, 1190, 14_400, 9_520)] * 56 + [formats.Interval(9000, 6000, 72_000, 48_000)] * 4
    (tmp_path / "a").write_text(formats.iostat_12_7(rows, 1))
    diagnosis = diagnose_files(
        sources_of({"--iostat": [str(tmp_path / "a")]}, [formats.DEVICE]), purchase_of(["gp3"], None)
    )
    assert diagnosis.wrong == ()


def test_a_volume_that_takes_seconds_for_a_request_is_the_verdict_and_nothing_is_bought(tmp_path: Path) -> None:
    busy = [10 * 60 * 5.0] * 60
    file = metrics(tmp_path / "a", formats.Interval(10, 10, 80, 80), VolumeTotalReadTime=busy, VolumeTotalWriteTime=busy,
                   VolumeQueueLength=[100.0] * 60)  # fmt: skip
    diagnosis = judged(file, "gp3")
    assert (diagnosis.binding.verdict.limit, diagnosis.binding.verdict.confidence) == ("volume_latency", "low")
    assert diagnosis.remedy is not None
    assert diagnosis.remedy.spec is None
    assert "sessions do not wait" not in " ".join(lines(diagnosis)), "they were not seen"


def test_a_share_that_the_provider_counted_is_the_verdicts_share(tmp_path: Path) -> None:
    load = formats.Interval(1800, 1190, 14_400, 9_520)
    diagnosis = judged(metrics(tmp_path / "a", load, VolumeIOPSExceededCheck=[0.75] * 60), "gp3")
    assert diagnosis.binding.verdict.limit == "volume_iops"
    assert diagnosis.binding.verdict.share == pytest.approx(0.75)


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
    diagnosis = judged(file, "gp3")
    settings = {"shared_buffers": str((2 << 30) // 8192), "max_connections": "500", "work_mem": "16777"}
    instance = purchase_of([], kind).instance
    findings = findings_of(diagnosis.binding, {}, (), TimeGrid(0.0, 1.0, 1), None, instance, settings)
    (memory,) = [finding for finding in findings if finding.rule == "memory for sorts, hashes and connections"]
    assert memory.figure.endswith(figure)
    assert memory.agrees is agrees
