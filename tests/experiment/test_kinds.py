"""Kinds of workload in an experiment: one that a test adds, and several in one experiment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.base.errors import InputError
from pgdyno.cli.main import run as pgdyno
from pgdyno.experiment import Experiment
from pgdyno.flow.plan import plan
from pgdyno.flow.run import execute
from pgdyno.kinds import registry
from pgdyno.report.page import html
from pgdyno.results import open_experiment
from pgdyno.workload import native
from tests.experiment.documents import written
from tests.experiment.toy_kind import Queue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TRIAL = """\
schema_version = 1
replicates = 2

[world]
kind = "fake"
volume = "gp3"

[workload]
kind = "queue"
clients = 4
warmup = "1s"
duration = "5s"

[factors]
"workload.jobs" = [5, 20]
"""


@pytest.fixture
def queue() -> Iterator[None]:
    """A kind that is registered for the length of a test."""
    registry.register(Queue)
    yield
    del registry.KINDS["queue"]


@pytest.mark.usefixtures("engine", "queue")
def test_a_kind_of_one_file_is_run_from_the_file_to_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(TRIAL)
    assert pgdyno(["run", str(path), "--results", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(arm["label"], arm["tps"]["n"]) for arm in document["arms"]] == [("jobs 5", 2), ("jobs 20", 2)]
    (directory,) = (path for path in tmp_path.iterdir() if (path / "experiment.json").is_file())
    workloads = [run.record.workload for run in open_experiment(directory).runs]
    assert {(workload["kind"], workload["engine"], workload["jobs"], workload["closed"]) for workload in workloads} == {
        ("queue", "native", 5, True),
        ("queue", "native", 20, True),
    }
    assert {run.record.metric for run in open_experiment(directory).runs} == {"tps"}
    assert "queue" in html(summarise(directory))


@pytest.mark.usefixtures("queue")
def test_a_kinds_mistakes_are_named_with_their_line(tmp_path: Path) -> None:
    for old, new, item in (
        ('kind = "queue"', 'kind = "queue"\njob = 2', "trial.toml:10: workload.job: there is no such key; did you mean `jobs`?"),
        ('kind = "queue"', 'kind = "queue"\nscale = 2', 'trial.toml:10: workload.scale: it is for kind = "pgbench" or "script"'),
        ('kind = "queue"', 'kind = "idle"\nrate_per_s = 5', 'jobs"[1]: it is for kind = "queue", and this is kind = "idle"'),
        ('kind = "queue"', 'kind = "quue"', "trial.toml:9: workload.kind: it should be 'pgbench', 'script'"),
        ("clients = 4", 'protocol = "simple"', 'jobs"[1]: the simple protocol takes one job'),
        ("clients = 4", "clients = true", "trial.toml:10: workload.clients: it should be a number, not true"),
    ):  # fmt: skip
        with pytest.raises(InputError) as raises:
            written(tmp_path, TRIAL.replace(old, new))
        assert item in raises.value.message
    (first, _) = written(tmp_path, TRIAL, "workload.threads=2").arms
    assert native.document(first.workload, 0, 1000)["workload"] == {"queue": {"jobs": 5}}


KINDS = """\
schema_version = 1
[world]
kind = "fake"
volume = "gp3"
[workload]
script = "select-only"
tables = 3
rate_per_s = 50
options.range_size = 7
data_to_memory = 2.0
warmup = "1s"
duration = "2s"
[factors]
"workload.kind" = ["pgbench", "sysbench", "idle"]
"""
"""Its table has keys of two kinds."""


def test_the_kind_is_a_factor_and_each_arm_has_its_own_keys(tmp_path: Path) -> None:
    result = written(tmp_path, KINDS)
    assert [arm.workload.kind for arm in result.arms] == ["pgbench", "sysbench", "idle"]
    results = [arm.workload.seeded(1).record() for arm in result.arms]
    assert [set(result) & {"script", "tables", "range_size", "data_to_memory"} for result in results] == [
        {"script", "data_to_memory"},
        {"tables", "range_size", "data_to_memory"},
        set(),
    ]
    assert [result["rate_per_s"] for result in results] == [50, 50, 50]
    # A record repeats it, and a key of any of its kinds makes it another experiment.
    recorded = json.loads(json.dumps(result.settings()))
    assert Experiment.of({"schema_version": 1, "name": result.name, **recorded}).whole() == result.whole()
    assert written(tmp_path, KINDS.replace("tables = 3", "tables = 4")).whole() != result.whole()


@pytest.mark.usefixtures("engine")
def test_kinds_are_compared_in_one_experiment(tmp_path: Path) -> None:
    experiment = written(tmp_path, KINDS.replace("data_to_memory = 2.0", "scale = 2"))
    directory = execute(plan(experiment), root=tmp_path, command=())
    runs = open_experiment(directory).runs
    assert {run.record.workload["kind"] for run in runs} == {"pgbench", "sysbench", "idle"}
    assert {run.record.workload.get("scale") for run in runs} == {2, None}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tables = 3", "bulk.gzip = true", 'trial.toml:7: workload.bulk: it is for kind = "load"'),
        ("tables = 3", "scale = 2", "trial.toml:10: workload.data_to_memory: it sets the amount of data"),
        ("[factors]", '[factors]\n"workload.rows" = [5, 6]', 'rows"[1]: it is for kind = "sysbench"'),
        ('"idle"]', '"idel"]', 'kind"[3]: it should be'),
    ],
)
def test_keys_of_no_level_and_factors_of_one_kind_are_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(InputError) as raises:
        written(tmp_path, KINDS.replace(old, new))
    assert said in raises.value.message
