"""``pgdyno metrics`` over recorded runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.advise.metrics.cloudwatch import METRICS
from pgdyno.advise.size.reading import cloudwatch
from pgdyno.analysis.figures import volume_counters
from pgdyno.base.errors import EXIT_OK, EXIT_USAGE
from pgdyno.cli.main import run
from pgdyno.results import open_experiment
from tests.analysis.synthetic import make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.results import StoredRun


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """gp3 against io2bx, 60 s each, sampled once a second."""
    return make_experiment(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def gp3(experiment: Path) -> StoredRun:
    """Its first run on gp3."""
    return next(run for run in open_experiment(experiment).runs if run.record.arm_index == 0)


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What a command prints with ``--json``."""
    assert run(["metrics", *words, "--json"]) == EXIT_OK
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def values(document: dict[str, Any], label: str) -> list[float]:
    (result,) = [
        MetricDataResult["Values"]
        for MetricDataResult in document["MetricDataResults"]
        if MetricDataResult["Label"] == label
    ]
    return [float(value) for value in result]


def test_a_run_has_the_operations_that_it_counted(gp3: StoredRun, capsys: pytest.CaptureFixture[str]) -> None:
    counters = volume_counters(gp3)
    document = answer(capsys, "cloudwatch", str(gp3.path))
    for label, counter in (("VolumeReadOps", "read_ops"), ("VolumeWriteBytes", "write_bytes")):
        grown = counters.columns[counter][-1] - counters.columns[counter][0]
        assert sum(values(document, label)) == pytest.approx(grown)


def test_the_measure_phase_is_one_whole_minute(gp3: StoredRun, capsys: pytest.CaptureFixture[str]) -> None:
    measure = gp3.record.measure
    document = answer(capsys, "cloudwatch", str(gp3.path), "--measured", "--volume", "data")
    grown = volume_counters(gp3).delta("read_ops", measure.begin_ns, measure.end_ns)
    assert measure.seconds == 60
    assert values(document, "VolumeReadOps") == [pytest.approx(grown, abs=1)], "whole operations"
    assert document["Messages"] == []


def test_the_table_has_a_line_for_each_minute_and_the_rules_of_thumb(
    gp3: StoredRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["metrics", "cloudwatch", str(gp3.path), "--measured"]) == EXIT_OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("MINUTE (UTC)")
    assert lines[1].endswith("IOPS"), "the synthetic gp3 waits for its IOPS most of the time"
    assert any("one for every 1,000 of 3,000 IOPS) in 1 of 1 minutes" in line for line in lines)
    assert any(line.endswith("IOPS bind first") for line in lines)


def test_chosen_metrics_are_listed_with_their_units(gp3: StoredRun, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--metric", "VolumeQueueLength", "--stat", "Maximum", "--period", "300"]
    assert run(["metrics", "cloudwatch", str(gp3.path), *words]) == EXIT_OK
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["VOLUME", "METRIC", "STATISTIC", "UNIT", "PERIOD", "(UTC)", "VALUE"]
    assert all(row.split()[:4] == ["data", "VolumeQueueLength", "Maximum", "Count"] for row in rows)
    assert rows


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--volume", "wal"], "has no volume `wal`"),
        (["--period", "90"], "is not a valid period"),
        (["--metric", "VolumeReadOp"], "VolumeReadOps"),
    ],
)
def test_what_a_run_does_not_have_is_refused(
    gp3: StoredRun, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["metrics", "cloudwatch", str(gp3.path), *words]) == EXIT_USAGE
    assert said in capsys.readouterr().err


def test_what_it_prints_is_what_sizing_reads(
    gp3: StoredRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`pgdyno size --cloudwatch` takes the document for CloudWatch's own."""
    assert run(["metrics", "cloudwatch", str(gp3.path), "--json"]) == EXIT_OK
    text = capsys.readouterr().out
    (measured,) = cloudwatch.read(text, "metrics.json", interval_s=60).values()
    counters = volume_counters(gp3)
    grown = counters.columns["read_ops"][-1] - counters.columns["read_ops"][0]
    assert sum(sample.read_ops_per_s * 60 for sample in measured.samples) == pytest.approx(grown)


def test_an_experiment_is_none_of_its_runs(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["metrics", "cloudwatch", str(experiment)]) == EXIT_USAGE
    assert "name one of its runs" in capsys.readouterr().err


def test_what_is_neither_a_run_nor_a_volume_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["metrics", "cloudwatch", "nothing-1"]) == EXIT_USAGE
    assert "no volume is called `nothing-1`" in capsys.readouterr().err
    assert run(["metrics", "cloudwatch", "nothing-1", "--measured"]) == EXIT_USAGE
    assert "apply to runs" in capsys.readouterr().err


def test_every_metric_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    listed = answer(capsys, "names")
    assert [metric["name"] for metric in listed["metrics"]] == [metric.name for metric in METRICS]
    assert run(["metrics", "names"]) == EXIT_OK
    assert "BurstBalance" in capsys.readouterr().out


def test_without_volumes_the_exposition_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["metrics", "serve", "--once"]) == EXIT_OK
    assert capsys.readouterr().out == "# EOF\n"
    assert run(["metrics", "serve", "--listen", "0.0.0.0:0"]) == EXIT_USAGE
