"""`pgdyno report` as it is typed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pgdyno.cli.main import run
from pgdyno.errors import EXIT_USAGE

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_table_page_and_figure(experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "made.html"
    assert run(["report", str(experiment), "--output", str(output)]) == 0
    said = capsys.readouterr()
    assert f"report: {output}" in said.out
    assert said.err == ""
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
    one = next((experiment / "runs").iterdir())
    assert run(["report", str(one)]) == EXIT_USAGE
    assert f"remedy: pgdyno report {experiment}" in capsys.readouterr().err


def test_a_page_that_its_figure_would_overwrite_is_refused(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(experiment), "--output", str(tmp_path / "made.png")]) == EXIT_USAGE
    assert "--format png" in capsys.readouterr().err.partition("remedy:")[2]
    assert not list(tmp_path.iterdir())
