"""A goal in an experiment file and on the command line: read before anything is run, judged after it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from pgdyno.experiment.model import Experiment
from pgdyno.experiment.origin import Origin
from tests.support.commands import pgdyno

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
schema_version = 1
{goal}
replicates = 1

[world]
kind = "fake"

[workload]
kind = "pgbench"
duration = "20s"
clients = 4

[factors]
"world.volume" = ["gp3", "io2bx:size=100GiB,iops=8000"]
"""


def written(folder: Path, goal: str = "") -> Path:
    """An experiment file, with a goal."""
    file = folder / "trial.toml"
    file.write_text(FILE.format(goal=f"goal = {json.dumps(goal)}" if goal else ""))
    return file


def test_a_bad_goal_of_a_file_is_refused_with_its_line_and_its_part(tmp_path: Path) -> None:
    refused = pgdyno("run", written(tmp_path, "tps>=2000, p99<=20"), "--dry-run", code=2).error
    assert refused is not None
    assert refused.code == "goal.unit.missing"
    assert (refused.data["key"], refused.data["line"], refused.data["part"]) == ("goal", 3, "p99<=20")


@pytest.mark.parametrize(
    "command", [("run", "{file}", "--dry-run"), ("compare", "gp3", "io2bx"), ("report", "{result}")]
)
def test_a_bad_goal_of_a_flag_is_refused_with_the_flag(tmp_path: Path, command: tuple[str, ...]) -> None:
    from tests.analysis.synthetic import Plan, make_experiment

    result = make_experiment(tmp_path, Plan(measure_s=5, replicates=1)) if command[0] == "report" else ""
    words = [word.format(file=written(tmp_path), result=result) for word in command]
    refused = pgdyno(*words, "--goal", "tps<=2000", code=2).error
    assert refused is not None
    assert refused.code == "goal.direction.wrong"
    assert refused.message.startswith("--goal: ")
    assert refused.data["part"] == "tps<=2000"


def test_a_goal_about_what_the_workload_does_not_measure_is_refused_before_the_runs(tmp_path: Path) -> None:
    refused = pgdyno("run", written(tmp_path, "nopm>=100"), "--dry-run", code=2).error
    assert refused is not None
    assert refused.code == "goal.figure.unmeasured"


def test_a_goal_changes_nothing_that_is_measured() -> None:
    document = {"schema_version": 1, "world": {"kind": "fake", "volume": "gp3"}, "workload": {"duration": "20s"}}
    plain = Experiment.of(document, Origin())
    aimed = Experiment.of(document | {"goal": "tps>=1"}, Origin())
    assert plain.identity() == aimed.identity()
    assert plain.whole() == aimed.whole()
    assert aimed.settings()["goal"] == "tps>=1"
    with pytest.raises(InputError):
        Experiment.of(document | {"goal": ""}, Origin())


def test_a_run_is_judged_by_its_goal_and_a_report_by_another(engine: Path, tmp_path: Path) -> None:
    ran = pgdyno("run", written(tmp_path, "price<=$20"), "--results", tmp_path, "--keep-invalid", "--json", code=0)
    made = json.loads(ran.out)
    assert next(iter(made)) == "recommendation"
    assert [item["condition"] for item in made["recommendation"]["goal"]] == ["price <= $20 a month"]
    result = next(tmp_path.glob("*-trial-*"))
    other = pgdyno("report", result, "--goal", "tps>=1000000000", "--json", code=0)
    recommendation = json.loads(other.out)["recommendation"]
    assert recommendation["action"] == "none"
    assert [item["condition"] for item in recommendation["goal"]] == ["tps >= 1000000000"]
    text = pgdyno("report", result, "--goal", "tps>=1000000000", code=0).out
    assert not text.startswith("Buy ")
    assert pgdyno("report", result, "--goal", "tps>=1", "--summary", code=2).error is not None
