"""`pgdyno report` as it is typed."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from pgdyno.base.errors import EXIT_USAGE
from pgdyno.cli.main import run

from ..analysis.synthetic import GP3, IO2BX, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_table_page_and_figure(experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "made.html"
    assert run(["report", str(experiment), "--output", str(output)]) == 0
    readouterr = capsys.readouterr()
    assert f"report: {output}" in readouterr.out
    assert readouterr.err == ""
    assert output.is_file()
    assert output.with_suffix(".png").is_file()


def test_json_alone_is_on_standard_output(
    experiment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PGDYNO_RESULTS", str(experiment.parent))
    assert run(["report", experiment.name, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["report"] == str(experiment / "report.html")
    assert (experiment / "report.html").is_file()


def test_what_is_no_experiment_is_refused(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "absent"]) == EXIT_USAGE
    assert "absent is not an experiment" in capsys.readouterr().err
    assert run(["report", "a" * 300]) == EXIT_USAGE  # of no file system
    assert "this is a bug" not in capsys.readouterr().err
    path = next((experiment / "runs").iterdir())
    assert run(["report", str(path)]) == EXIT_USAGE
    assert f"remedy: pgdyno report {experiment}" in capsys.readouterr().err


def test_a_page_that_its_figure_would_overwrite_is_refused(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(experiment), "--output", str(tmp_path / "made.png")]) == EXIT_USAGE
    assert "--format png" in capsys.readouterr().err.partition("remedy:")[2]
    assert not list(tmp_path.iterdir())


def test_a_run_is_valid_by_one_verdict_wherever_it_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a run knew when it ended is only a part of the verdict: this one knew of nothing."""
    busy = replace(GP3, other_share=0.60)
    directory = make_experiment(tmp_path, Plan(replicates=2, measure_s=20).with_arms(busy, IO2BX))
    reason = "host: other processes and the kernel took 60 % of its CPU, with 2.1 % idle"

    def said(*words: str) -> str:
        assert run([*words, "--results", str(tmp_path)]) == 0
        return capsys.readouterr().out

    of_report = {
        row["run"]: row["valid"] == "yes"
        for row in csv.DictReader(io.StringIO(said("report", str(directory), "--format", "csv")))
    }
    assert sorted(of_report.values()) == [False, False, True, True]
    (listed,) = json.loads(said("runs", "--json"))["experiments"]
    assert {run["run_id"]: run["valid"] for run in listed["runs"]} == of_report
    assert [run["why_invalid"] for run in listed["runs"] if not run["valid"]] == [[reason]] * 2
    of_experiment = (listed["valid"], listed["why_invalid"], listed["runs_valid"])
    assert of_experiment == (False, ["2 of 4 finished runs are invalid"], 2)
    lines = said("runs").splitlines()
    assert "4 of 4 runs finished, 2 valid" in lines[0]
    assert sum(line.endswith(f"invalid: {reason}") for line in lines) == 2
    queried = json.loads(said("query", "SELECT run_id, valid, why_invalid FROM runs", "--json"))
    assert {item["run_id"]: item["valid"] for item in queried} == of_report
    assert {item["why_invalid"] for item in queried} == {reason, None}
    averaged = said("query", "SELECT arm, avg(tps) AS tps FROM runs WHERE valid GROUP BY arm")
    assert "io2bx" in averaged
    assert "gp3" not in averaged


def test_a_run_whose_tables_cannot_be_read_is_invalid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make_experiment(tmp_path, Plan(replicates=1, measure_s=20))
    (file,) = directory.glob("runs/00-*/probe/cpu.parquet")
    file.write_bytes(b"no Parquet")
    assert run(["runs", "--json", "--results", str(tmp_path)]) == 0
    first, second = json.loads(capsys.readouterr().out)["experiments"][0]["runs"]
    assert first["why_invalid"][0].startswith(f"{file} cannot be read: ")
    assert second["valid"] is True
    assert run(["report", str(directory)]) == EXIT_USAGE
    assert f"error: {file} cannot be read: " in capsys.readouterr().err


def test_different_experiments_with_the_same_arms_are_summed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = make_experiment(tmp_path, Plan(arms=(GP3, replace(IO2BX, tps=1600)), measure_s=20))
    other = make_experiment(tmp_path, Plan(arms=(GP3, replace(IO2BX, tps=3200)), measure_s=20, seed=8))
    assert run(["report", str(experiment), str(other), "--summary"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"compared with {GP3.written}:\n")
    assert "transactions per second" in out
    assert run(["report", str(experiment), str(other), "--summary", "--json"]) == EXIT_USAGE
    assert "--summary prints a table" in capsys.readouterr().err
