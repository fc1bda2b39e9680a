"""What is kept of results gives the verdicts that the results give."""

from __future__ import annotations

import json
import shutil
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base.errors import InputError
from pgdyno.published.experiments import find_results
from pgdyno.published.judge import judge_document
from pgdyno.results.record import Check
from tests.analysis.synthetic import GP3
from tests.analysis.test_loads import write_load
from tools.published.__main__ import main, write

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.published.judge import DocumentResult
    from tests.reproduce.conftest import Shelf


def _judge(shelf: Shelf, folder: Path) -> DocumentResult:
    library = shelf.write()
    [document] = library.documents
    return judge_document(document, find_results(folder, [library.experiment(run) for run in document.run]), None)


def _record(shelf: Shelf, name: str = "trial", **plan: Any) -> None:
    """Record runs that know what was asked for, as real ones do."""
    document = tomllib.loads((shelf.root / "experiments" / f"{name}.toml").read_text())
    settings = {table: document[table] for table in ("world", "workload", "factors")}
    file = shelf.record(name, **plan) / "experiment.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"file_schema_version": 1, "settings": settings}))


def test_the_verdicts_are_those_of_the_run_directories(shelf: Shelf, tmp_path: Path) -> None:
    _record(shelf)
    _record(shelf, "larger", tps=1500)
    assert write(shelf.write(), shelf.results, tmp_path / "kept") == ["trial", "larger"]
    [whole], [kept] = _judge(shelf, shelf.results).comparisons, _judge(shelf, tmp_path / "kept").comparisons
    assert kept == whole
    assert kept.ratio is not None
    assert kept.reach is not None


def test_an_experiment_recorded_in_parts_is_kept_whole(shelf: Shelf, tmp_path: Path) -> None:
    """The second part ran in an hour in which everything was twice as fast: the ratio is that within each part."""
    _record(shelf)
    kept = tmp_path / "kept"
    write(shelf.write(), shelf.results, kept)
    [first] = _judge(shelf, kept).comparisons
    shutil.rmtree(shelf.results)
    _record(shelf, tps=6000, low=replace(GP3, tps=2 * GP3.tps), seed=8)
    write(shelf.write(), shelf.results, kept, add=True)
    [both] = _judge(shelf, kept).comparisons
    assert first.ratio is not None
    assert both.ratio is not None
    assert (first.ratio.n, both.ratio.n) == (3, 6)
    assert both.ratio.mean == pytest.approx(first.ratio.mean, rel=0.02)
    write(shelf.write(), shelf.results, kept, add=True)
    [again] = _judge(shelf, kept).comparisons
    assert again == both, "runs that are kept already are not kept twice"


def test_the_figures_beside_a_ratio_are_those_of_the_blocks_that_have_both(shelf: Shelf, tmp_path: Path) -> None:
    _record(shelf)
    kept = tmp_path / "kept"
    write(shelf.write(), shelf.results, kept)
    file = kept / "trial.json"
    document = json.loads(file.read_text())
    [before] = _judge(shelf, kept).comparisons
    low = next(arm for arm in document["arms"] if "gp3" in arm["label"])
    run = low["runs"][0]
    figures = {name: 100 * value for name, value in run["figures"].items()}
    low["runs"].append(run | {"block": ["another", 1], "figures": figures})
    file.write_text(json.dumps(document))
    [after] = _judge(shelf, kept).comparisons
    assert after.here == before.here


def test_parts_with_other_settings_are_not_put_together(shelf: Shelf, tmp_path: Path) -> None:
    _record(shelf)
    write(shelf.write(), shelf.results, tmp_path / "kept")
    before = (tmp_path / "kept" / "trial.json").read_text()
    shutil.rmtree(shelf.results)
    file = shelf.root / "experiments" / "trial.toml"
    file.write_text(file.read_text().replace("clients = 64", "clients = 32"))
    _record(shelf)
    with pytest.raises(InputError, match=r"trial was recorded with another workload\.clients"):
        write(shelf.write(), shelf.results, tmp_path / "kept", add=True)
    assert (tmp_path / "kept" / "trial.json").read_text() == before


def test_a_kept_run_that_is_invalid_gives_no_verdict(shelf: Shelf, tmp_path: Path) -> None:
    _record(shelf, low=replace(GP3, checks=(Check(name="balances", ok=False, detail="sum to 1"),)))
    write(shelf.write(), shelf.results, tmp_path / "kept")
    [result] = _judge(shelf, tmp_path / "kept").comparisons
    assert result.invalid
    assert result.judgement.because.startswith("runs are invalid: ")


def test_the_loads_of_both_arms_are_compared_round_by_round(shelf: Shelf, tmp_path: Path) -> None:
    """Three loads of each data set: the writes of gp3 take ten times as long, whatever a round does to both."""
    arms = {"gp3:size=100GiB": 10, "io2bx:size=100GiB,iops=16000": 1}
    directory = shelf.record()
    result = tomllib.loads((shelf.root / "experiments" / "trial.toml").read_text())
    settings = {table: result[table] for table in ("world", "workload", "factors")}
    file = directory / "experiment.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"file_schema_version": 1, "settings": settings}))
    for slower in (1.0, 1.1, 1.3):
        for volume, times in arms.items():
            write_load(directory, volume=volume, write_ms=times * slower)
    low, high = ('"world.volume" = "gp3:size=100GiB"', '"world.volume" = "io2bx:size=100GiB,iops=16000"')
    changes = (
        ('metric = "tps"', 'metric = "load_write_ms_mean"'),
        (f"high = {{ {high} }}", f"high = {{ {low} }}"),
        (f"low = {{ {low} }}", f"low = {{ {high} }}"),
    )
    library = shelf.write(*changes)
    [document] = library.documents
    write(library, shelf.results, tmp_path / "kept")
    for folder in (shelf.results, tmp_path / "kept"):
        [comparison_result] = judge_document(
            document, find_results(folder, [library.experiment(run) for run in document.run]), None
        ).comparisons
        assert (comparison_result.title, comparison_result.unit) == ("load: writes, mean, ms", "ms")
        assert comparison_result.ratio is not None
        assert (comparison_result.ratio.n, comparison_result.ratio.mean) == (3, pytest.approx(10.0))
        assert comparison_result.ratio.low == pytest.approx(10.0)


def test_without_repeated_loads_there_is_no_ratio_of_them(shelf: Shelf) -> None:
    shelf.record()
    library = shelf.write(('metric = "tps"', 'metric = "load_write_ms_mean"'))
    [document] = library.documents
    [result] = judge_document(
        document, find_results(shelf.results, [library.experiment(run) for run in document.run]), None
    ).comparisons
    assert "the results have no repeated loads of both arms" in result.judgement.because


def test_a_file_that_changed_since_is_said(shelf: Shelf, tmp_path: Path) -> None:
    _record(shelf)
    write(shelf.write(), shelf.results, tmp_path / "kept")
    assert _judge(shelf, tmp_path / "kept").results[0].changed == ()
    file = shelf.root / "experiments" / "trial.toml"
    file.write_text(file.read_text().replace("clients = 64", "clients = 32"))
    assert _judge(shelf, tmp_path / "kept").results[0].changed == ("workload.clients 64 instead of 32",)


def test_another_json_file_is_refused(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "trial.json").write_text(json.dumps({"name": "trial"}))
    with pytest.raises(InputError, match="is not a file of stored results: day: Field required"):
        _judge(shelf, tmp_path / "kept")


def test_results_that_are_not_there_are_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--add"]) == 2
    assert main([str(tmp_path / "none")]) == 1
    assert "is not a folder of results" in capsys.readouterr().err
