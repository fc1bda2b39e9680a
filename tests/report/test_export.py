"""The report as Markdown, CSV, JSON and pictures, and one result against another."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pgdyno.analysis.compare import Comparison, against, differences, flat, summarise
from pgdyno.analysis.statistics import unpaired_ratio
from pgdyno.base.errors import EXIT_USAGE, HostError
from pgdyno.cli.main import run
from pgdyno.report.against import html, verdict
from pgdyno.report.export import markdown, pictures, runs_csv

from ..analysis.synthetic import CREATED_UNIX_NS, GP3, IO2BX, Plan, make_experiment
from .sweeps import swept
from .test_page import outline

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.drawn


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same volumes a day later: gp3 is twice as fast, io2bx as it was."""
    arms = (replace(GP3, tps=2000.0), IO2BX)
    plan = Plan(arms=arms, measure_s=20, seed=8, created_unix_ns=CREATED_UNIX_NS + 86_400 * 10**9 + 1)
    return make_experiment(tmp_path_factory.mktemp("other"), plan)


def test_markdown_has_the_verdict_and_a_row_for_each_arm(comparison: Comparison) -> None:
    text = markdown(comparison)
    assert text.startswith("# Buy io2bx: it does ")
    rows = [line for line in text.splitlines() if line.startswith(("| gp3", "| io2bx"))]
    assert len(rows) == 4  # of the figures and of the cost
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert all(len({line.count(" | ") for line in table.splitlines()}) == 1 for table in tables)
    assert "$ pgdyno compare" in text


def test_markdown_of_a_sweep_has_its_raw_tables(tmp_path: Path) -> None:
    text = markdown(swept(tmp_path, clients=(1, 2, 4, 8), counts=(10, 20, 30)))
    assert "## The sweep" in text
    assert "#### gp3" in text
    assert "| clients \\\\ transactions | 10 | 20 | 30 |" in text
    assert text.count("contention") == 2


def test_csv_has_a_row_for_each_run(comparison: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(runs_csv(comparison))))
    assert len(rows) == 6
    assert {row["world.volume"] for row in rows} == {arm.volume for arm in comparison.arms}
    assert float(rows[0]["tps"]) == pytest.approx(comparison.arms[0].replicates[0].headline, rel=1e-5)
    assert all(float(row["latency_ms_p99"]) > float(row["latency_ms_p50"]) > 0 for row in rows)
    assert {row["valid"] for row in rows} == {"yes"}


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_every_figure_is_a_picture(comparison: Comparison, tmp_path: Path, kind: str) -> None:
    made = pictures(comparison, tmp_path / "figures", kind)
    assert [path.stem for path in made] == ["tps", "response", "timeline", "requests-data", "cpu"]
    for path in made:
        if kind == "png":
            assert path.read_bytes().startswith(b"\x89PNG")
        else:
            drawn = ET.fromstring(path.read_text())
            assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
            assert drawn.attrib["aria-label"]
            assert "var(--" not in path.read_text()


def test_pictures_that_cannot_be_written_are_refused(comparison: Comparison, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="cannot be made"):
        pictures(comparison, tmp_path / "file" / "figures", "svg")


def test_the_command_prints_or_writes(experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(experiment), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"] is None
    assert run(["report", str(experiment), "--format", "csv", "--output", str(tmp_path / "runs.csv")]) == 0
    assert capsys.readouterr().out == f"report: {tmp_path / 'runs.csv'}\n"
    assert (tmp_path / "runs.csv").read_text().startswith("experiment,run,arm,replicate,position,world.volume,tps,")
    assert run(["report", str(experiment), "--format", "md", "--against", str(experiment)]) == EXIT_USAGE
    assert "--against writes an HTML page only" in capsys.readouterr().err
    assert run(["report", str(experiment), "--format", "csv", "--json"]) == EXIT_USAGE
    readouterr = capsys.readouterr()
    assert (readouterr.out, "--json and --format csv are two documents" in readouterr.err) == ("", True)


def test_one_result_against_another(
    experiment: Path, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "against.html"
    assert run(["report", str(other), "--against", str(experiment), "--output", str(output)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"gp3:size=100GiB does (1\.9\d|2\.\d+) times the transactions here", out)
    assert "io2bx here and there are not distinguishable" in out
    text = output.read_text()
    outline(text)
    assert "measure_s" in text  # what the two differ in
    assert "ran at different times" in text
    assert not re.search(r"\b(?:nan|NaN|None|undefined)\b", re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL))


def test_results_without_a_common_arm_say_so(comparison: Comparison, tmp_path: Path) -> None:
    plan = Plan(arms=(replace(GP3, spec="gp3:iops=6000"), replace(IO2BX, spec="io2:iops=100")), measure_s=20)
    result = against(comparison, summarise(make_experiment(tmp_path, plan)))
    assert result.pairs == ()
    assert len(result.alone) == len(result.alone_of_other) == 2
    assert verdict(result) == "The two results have no arm in common."
    outline(html(result))


def test_the_same_volume_twice_is_held_against_both_in_their_order(tmp_path: Path) -> None:
    arms = (GP3, replace(GP3, tps=1500.0))
    comparison = summarise(make_experiment(tmp_path, Plan(arms=arms, measure_s=20)))
    later = Plan(arms=arms, measure_s=20, created_unix_ns=CREATED_UNIX_NS + 1)
    result = against(comparison, summarise(make_experiment(tmp_path, later)))
    assert [(pair.arm.index, pair.other.index) for pair in result.pairs] == [(0, 0), (1, 1)]
    assert result.alone == result.alone_of_other == ()
    fewer = against(comparison, summarise(make_experiment(tmp_path, replace(later, arms=(GP3,), seed=9))))
    assert [(pair.arm.index, pair.other.index) for pair in fewer.pairs] == [(0, 0)]
    assert [arm.index for arm in fewer.alone] == [1]


def test_an_unpaired_ratio_covers_the_truth() -> None:
    """Of 2,000 pairs of experiments the interval misses one in twenty; three and five runs of unequal spread."""
    rng = np.random.default_rng(11)
    missed = 0
    for _ in range(2000):
        over, under = 200 * rng.lognormal(0, 0.03, 3), 100 * rng.lognormal(0, 0.10, 5)
        ratio = unpaired_ratio(over.tolist(), under.tolist())
        assert ratio.low is not None
        assert ratio.high is not None
        missed += not ratio.low <= 2.0 <= ratio.high
    assert 0.035 <= missed / 2000 <= 0.065  # three standard errors of 5 %


def test_an_unpaired_ratio_of_one_run_has_no_interval_and_of_none_is_refused() -> None:
    assert unpaired_ratio([200.0], [100.0, 100.0]).low is None
    assert unpaired_ratio([200.0], [100.0, 100.0]).mean == pytest.approx(2.0)
    with pytest.raises(ValueError, match="positive"):
        unpaired_ratio([], [1.0])
    with pytest.raises(ValueError, match="positive"):
        unpaired_ratio([1.0], [0.0])


def test_differences_name_the_place() -> None:
    old = {"world": {"volume": "gp3", "mount_options": ""}, "seed": 1, "list": [1, 2]}
    new = {"world": {"volume": "io2"}, "seed": 1, "list": [1, 3]}
    assert [(difference.place, difference.old, difference.new) for difference in differences(old, new)] == [
        (("world", "volume"), "gp3", "io2"), (("world", "mount_options"), "", None), (("list", 1), 2, 3),
    ]  # fmt: skip
    assert differences(old, old) == []
    assert flat({}) == {(): {}}
