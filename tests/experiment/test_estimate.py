"""How long an experiment is said to take before it is run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from pgdyno.base.errors import HostError, InputError
from pgdyno.base.quantity import duration_words, parse_seconds
from pgdyno.cli.main import run as pgdyno
from pgdyno.cli.terminal import Display
from pgdyno.experiment.file import read_experiment
from pgdyno.flow import run as flow
from pgdyno.flow.cell import Listener, ProgressStep
from pgdyno.flow.plan import plan
from pgdyno.flow.resume import command_to_resume, finished
from pgdyno.flow.run import _due, execute
from pgdyno.flow.schedule import Allowance
from pgdyno.kinds.registry import workload_of
from pgdyno.workload.clients import REQUESTS_PER_TRANSACTION
from pgdyno.world.base import OVERHEAD_S, longest_s
from pgdyno.world.existing import Real
from pgdyno.world.resolved import SAMPLES_MIN, emulated_arms
from tests.analysis.synthetic import Plan as Made
from tests.analysis.synthetic import make_experiment
from tests.experiment.documents import FILE, experiment
from tests.experiment.test_design import begun

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.flow.plan import ExperimentPlan
    from pgdyno.world.resolved import ResolvedArm

pytestmark = pytest.mark.usefixtures("engine")


def planned(clients: int = 10, dilation: int = 1, volume: str = "gp3", **workload: object) -> ExperimentPlan:
    """One run on a volume; it lasts a minute unless it ends before."""
    document = {"scale": 2, "clients": clients, "warmup": "0s", "duration": "60s", **workload}
    return plan(experiment(world={"volume": volume, "dilation": dilation}, workload=document), to_run=False)


def seconds(plan: ExperimentPlan) -> float:
    """What the only run of a replicate is said to take."""
    return plan.world.run_s(plan.cells[0])


def test_a_run_of_some_time_takes_that_time() -> None:
    assert seconds(planned()) == longest_s(planned().cells[0]) == 60 + OVERHEAD_S
    assert planned().cells_s == 3 * (60 + OVERHEAD_S)
    assert seconds(planned(dilation=4)) == 240 + OVERHEAD_S


@pytest.mark.parametrize(("volume", "iops"), [("gp3", 3000), ("io1:iops=500", 500), ("gp2:size=100GiB", 3000)])
def test_a_run_of_so_many_transactions_takes_what_its_volume_needs_for_them(volume: str, iops: int) -> None:
    plan = planned(transactions=100, volume=volume)
    assert seconds(plan) == pytest.approx(10 * 100 * REQUESTS_PER_TRANSACTION / iops + OVERHEAD_S)
    assert longest_s(plan.cells[0]) == 60 + OVERHEAD_S
    assert seconds(planned(transactions=100, volume=volume, dilation=2)) > seconds(plan)


def test_it_takes_no_longer_than_it_may() -> None:
    plan = planned(transactions=1_000_000)
    assert seconds(plan) == longest_s(plan.cells[0])


def interval_ms(dilation: int = 1, volume: str = "gp3", **workload: object) -> int:
    """How often the probes would sample."""
    return planned(dilation=dilation, volume=volume, **workload).arms[0].sample_interval_ms


def test_a_short_run_of_so_many_transactions_is_sampled_more_often() -> None:
    assert interval_ms() == interval_ms(duration="2s") == interval_ms(transactions=10_000) == 1000
    assert interval_ms(dilation=4) == interval_ms(dilation=4, transactions=10_000) == 4000
    assert interval_ms(transactions=400) == 4000 // SAMPLES_MIN
    assert interval_ms(transactions=400, dilation=4) == 4 * 4000 // SAMPLES_MIN
    assert interval_ms(transactions=10) == 100, "and not more often than that"
    assert interval_ms(transactions=10, volume="null") == 1000, "nobody can tell how long it takes"


def test_queries_in_slowed_time_take_less_of_it_as_the_cpu_is_not_slowed() -> None:
    workload = workload_of(seed=1, kind="tpch", scale_factor=0.2, clients=10)
    assert workload.work_s(80_000, 8) == pytest.approx(workload.work_s(80_000) / 8)
    # What volumes limit takes the same number of slowed seconds.
    assert workload.work_s(100, 8) == workload.work_s(100, 4) > 0.2 * 10 * 60_000 / 100


def test_queries_that_a_volume_limits_take_as_long_as_their_requests_or_their_bytes() -> None:
    workload = workload_of(seed=1, kind="tpch", scale_factor=0.5, clients=2, queries=[9, 13, 16, 18, 21])
    assert workload.work_s(3000, 1, 125.0) == pytest.approx(97.0), "runs of temp-volume.toml on gp3 took 90 to 111 s"
    assert workload.work_s(6000, 1, 1000.0) == pytest.approx(97.0 / 2)
    of_bytes = workload.work_s(16_000, 1, 125.0)
    assert of_bytes == workload.work_s(32_000, 1, 125.0) == pytest.approx(2 * workload.work_s(16_000, 1, 250.0))


def test_a_dry_run_says_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trial.toml"
    file.write_text(
        'schema_version = 1\nreplicates = 1\n[world]\nvolume = "gp3"\n'
        '[workload]\nscale = 2\nclients = 10\nwarmup = "0s"\nduration = "60s"\ntransactions = 100\n'
    )
    assert pgdyno(["run", str(file), "--dry-run"]) == 0
    assert "about 7 s, at most 1 min 06 s" in capsys.readouterr().out
    assert pgdyno(["run", str(file), "--dry-run", "--json"]) == 0
    (made,) = json.loads(capsys.readouterr().out)["runs"]
    assert (made["seconds"], made["seconds_max"]) == (pytest.approx(7.0), 66.0)


def test_a_dry_run_says_what_the_budget_leaves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trial.toml"
    file.write_text(FILE)
    dry = ["run", str(file), "--dry-run"]
    assert pgdyno(dry) == 0
    assert "within the budget" not in capsys.readouterr().out
    assert pgdyno([*dry, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["runs_within_budget"] == len(document["runs"]) == 4
    first_three = document["load_s"] + sum(run["seconds"] for run in document["runs"][:3])
    assert pgdyno([*dry, "--json", "--budget", f"{first_three + 1}s"]) == 0
    assert json.loads(capsys.readouterr().out)["runs_within_budget"] == 3
    assert pgdyno([*dry, "--budget", f"{first_three + 1}s"]) == 0
    assert "within the budget: 3 of these 4 runs" in capsys.readouterr().out
    assert pgdyno([*dry, "--budget", "1s"]) == 2
    assert "allow more time with --budget" in capsys.readouterr().err


def test_one_of_two_arms_with_one_label_is_made_by_its_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same level twice shows the noise, and both arms are called alike."""
    file = tmp_path / "noise.toml"
    file.write_text(FILE.replace('"io2bx"', '"gp3"'))
    assert pgdyno(["run", str(file), "--dry-run", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 4
    assert pgdyno(["run", str(file), "--dry-run", "--json", "--only", "2"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 2


def test_who_has_no_time_left_is_told_which_limit_to_raise(tmp_path: Path) -> None:
    """--budget is one limit and the file's budget another; the first does not lengthen the second."""
    limited = plan(experiment(budget="1s"), to_run=False)
    with pytest.raises(InputError, match="filling the data sets and the first run take about") as caught:
        execute(limited, root=tmp_path, command=())
    assert "--set budget=" in caught.value.remedy
    assert "--budget" not in caught.value.remedy
    with pytest.raises(InputError, match="filling the data sets and the first run take about") as caught:
        execute(planned(), root=tmp_path, command=(), budget_s=1.0)
    assert "--budget" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []

    texts: list[str] = []
    for allowed in (Allowance(at_once_s=1.0), Allowance(in_all_s=600.0, spent_s=599.0)):
        result = replace(limited, directory=tmp_path)
        assert list(_due(result, tmp_path, allowed, Listener(note=texts.append))) == []
    assert f"--resume {tmp_path}`" in texts[0]
    assert f"--resume {tmp_path} --set budget=" in texts[1]


@pytest.mark.usefixtures("state_dir")
def test_runs_that_were_made_before_the_lock_was_taken_are_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody continues an experiment whose last run is still being made, and ends before the lock is asked for."""
    directory = make_experiment(tmp_path, Made(missing=frozenset({(3, 1)}), measure_s=20))
    there = finished(directory)
    assert len(there) == 5
    before = plan(experiment(replicates=6), to_run=False)
    assert {cell.position for cell in before.cells} == set(range(6))
    made: list[ExperimentPlan] = []
    monkeypatch.setattr(flow, "_make", lambda planned, *_: made.append(planned))
    assert execute(replace(before, directory=directory), root=tmp_path, command=()) == directory
    assert [{cell.position for cell in plan.cells} for plan in made] == [set(range(6)) - there]


def test_data_are_not_loaded_where_loading_would_use_up_what_is_left_of_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All planned runs are there, and took a minute; no further one could follow the load."""
    monkeypatch.setattr("pgdyno.flow.plan.require_same", lambda *_: None)  # made by no engine
    for budget, loads in (("62s", 0), ("10min", 3)):
        result = experiment(replicates=2, budget=budget, factors={"workload.scale": [1, 2, 3]})
        again = plan(result, resume=begun(tmp_path / budget, result), to_run=False)
        assert again.cells == ()
        assert (again.further, len(again.preparation)) == (loads > 0, loads)


def test_the_way_on_names_the_flags_that_are_in_no_file(tmp_path: Path) -> None:
    file, directory = tmp_path / "a real.toml", tmp_path / "two words"
    file.write_text('schema_version = 1\n[world]\nkind = "real"\n')
    flags = {"seed": ("--seed", 7), "world.kind": ("--dsn", "real"), "world.dsn": ("--dsn", "host=db.example user=me")}
    experiment = read_experiment(file, ["workload.scale=1", "title=two words"], flags)
    unopened = tuple(cast("ResolvedArm", SimpleNamespace(arm=arm)) for arm in experiment.arms)
    text = command_to_resume(Real(experiment, unopened), directory)
    flagged = "--seed 7 --dsn DSN --set workload.scale=1 --set 'title=two words'"
    assert text == f"`pgdyno run '{file}' --resume '{directory}' {flagged}`"
    assert "db.example" not in text


def test_what_is_left_counts_the_data_sets_that_are_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    result = plan(experiment(factors={"workload.scale": [1, 2]}), to_run=False)
    first, second = (step.title for step in result.preparation)
    with Display(result) as display:
        for title in (first, second, "load", "load.sql, replicate 1 of 3"):
            display.step(ProgressStep(title, "", 0.0))
    left = re.findall(r"about (.+) left", capsys.readouterr().err)
    of_second = result.preparation[1].estimate_s
    loading = [result.load_s, of_second, 0.0, 0.0]
    assert left == [duration_words(result.cells_s + value) for value in loading]


def test_what_is_left_counts_each_run_by_its_own_length(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of four runs is short, and took twice as long as was estimated: so will the longer ones."""
    result = plan(experiment(factors={"workload.duration": ["5s", "600s"]}, replicates=2), to_run=False)
    cells = tuple(sorted(result.cells, key=result.world.run_s))
    first_s, *others_s = map(result.world.run_s, cells)
    assert others_s[-1] > 10 * first_s
    directory = make_experiment(tmp_path, Made(measure_s=20))
    path = next((directory / "runs").iterdir())
    clock = [1000.0]
    monkeypatch.setattr("pgdyno.cli.terminal.time.monotonic", lambda: clock[0])
    with Display(replace(result, cells=cells)) as display:
        display.step(ProgressStep("first", "", 0.0))
        clock[0] += 2 * first_s
        display.finished(cells[0], path)
        display.step(ProgressStep("second", "", 0.0))
    left = re.findall(r"about (.+) left", capsys.readouterr().err)
    assert left == [duration_words(first_s + sum(others_s)), duration_words(2 * sum(others_s))]


def test_arms_without_room_are_refused_or_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.machine.preflight.memory_available_bytes", lambda: 512 << 20)
    monkeypatch.setattr("pgdyno.world.emulated.emulated_arms", lambda item, **_: emulated_arms(item, to_run=False))
    result = experiment(factors={"instance.memory": ["128MiB", "1GiB"]}, replicates=1)
    with pytest.raises(HostError, match="an instance of 1024 MiB needs 1,024 MiB of memory, and 512 MiB are available"):
        plan(result)
    left = plan(result, leave_out=True)
    assert [cell.arm.label for cell in left.cells] == ["memory 128MiB"]
    assert list(left.refused) == [1]
    assert plan(result, only=[0]).refused == {}, "what is not run needs no room"
    with pytest.raises(HostError, match="an instance of 1024 MiB"):
        plan(result, only=[1], leave_out=True)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (59.6, "1 min 00 s"),
        (750, "12 min 30 s"),
        (3600, "1 h 00 min"),
        (86_399, "23 h 59 min"),
        (100_000, "1 d 03 h"),
        (366 * 86_400, "366 d 00 h"),
    ],
)
def test_a_duration_is_told_in_its_two_largest_units(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


def test_a_budget_bounds_what_is_said_to_be_left(capsys: pytest.CaptureFixture[str]) -> None:
    result = plan(experiment(replicates=100), to_run=False)
    with Display(result, left_s=600.0) as display:
        display.step(ProgressStep("gp3, replicate 1 of 100", "", 0.0))
    assert "(about 10 min 00 s left)" in capsys.readouterr().err
    with Display(replace(result, cells=result.cells[:1], further=True), left_s=600.0) as display:
        display.step(ProgressStep("gp3, replicate 1 of 100", "", 0.0))
    assert "(about 10 min 00 s left)" in capsys.readouterr().err, "further runs use up the budget"


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("90s", 90), ("5min", 300), ("10m", 600), ("1.5h", 5400)], ids=str
)
def test_a_duration_is_read_with_the_units_that_people_write(text: str, seconds: float) -> None:
    assert parse_seconds(text, "--duration") == seconds


@pytest.mark.parametrize(
    "workload",
    [
        'kind = "tpcc"\nprofile = "hammerdb"\nwarehouses = 20\nclients = 2\nwarmup = "0s"\nduration = "60s"\n',
        'kind = "tpch"\nprofile = "spec"\nscale_factor = 1.6\nclients = 2\nduration = "10min"\n',
    ],
    ids=["20 warehouses", "SF 1.6"],
)
def test_a_dry_run_says_what_memory_it_takes(
    workload: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data and a clone of them and the instance, which is told beside what is there; both fit into 24 GB."""
    file = tmp_path / "trial.toml"
    file.write_text(f'schema_version = 1\n[world]\nvolume = "gp3"\n[instance]\nmemory = "1GiB"\n[workload]\n{workload}')
    assert pgdyno(["run", str(file), "--dry-run", "--json"]) == 0
    needed_gib = json.loads(capsys.readouterr().out)["memory_bytes"] / 2**30
    assert 1.0 + 2 * 1.9 < needed_gib < 22.0
    for available_gib, refused in ((24, False), (2, True)):
        monkeypatch.setattr("pgdyno.machine.memory.memory_available_bytes", lambda gib=available_gib: gib << 30)
        assert pgdyno(["run", str(file), "--dry-run"]) == 0
        out = capsys.readouterr().out
        assert (
            f"up to {needed_gib:.1f} GiB of memory for data and a run, {available_gib}.0 GiB are available now" in out
        )
        assert ("filling will be refused" in out) == refused
