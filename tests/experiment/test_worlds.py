"""The flow of an experiment on worlds that need no server: a made-up one, and one that a test adds."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.base.errors import HostError, Interrupted, PgdynoError
from pgdyno.experiment import tables
from pgdyno.experiment.file import read_experiment
from pgdyno.flow import run
from pgdyno.flow.cell import Listener
from pgdyno.flow.resume import finished, recorded
from pgdyno.flow.run import execute, plan
from pgdyno.flow.schedule import allowance
from pgdyno.report.page import html
from pgdyno.results import open_experiment
from pgdyno.results.writer import held, write_experiment
from pgdyno.world import registry, resolved
from pgdyno.world.fake import Fake
from tests.experiment.documents import FAKE
from tests.support.commands import pgdyno

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from pgdyno.experiment import Cell
    from pgdyno.flow.cell import ProgressStep
    from pgdyno.world import PlannedRun, PreparedWorld, RunOutcome

pytestmark = pytest.mark.usefixtures("engine")


def test_arms_with_the_same_programs_and_settings_ask_them_once(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    for function in (resolved.find_binaries, resolved.require_accepted):

        def noted(*arguments: Any, function: Callable[..., Any] = function) -> Any:
            texts.append(function.__name__)
            return function(*arguments)

        monkeypatch.setattr(resolved, function.__name__, noted)
    trial.write_text(FAKE.replace("fake", "emulated") + '"workload.clients" = [4, 8]\n')
    arms = resolved.emulated_arms(read_experiment(trial), to_run=False)
    assert len(arms) == 4
    assert sorted(texts) == ["find_binaries", "require_accepted"]


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    path = tmp_path / "trial.toml"
    path.write_text(FAKE)
    return path


def only_result(root: Path) -> Path:
    (only_result,) = (path for path in root.iterdir() if (path / "experiment.json").is_file())
    return only_result


def test_an_experiment_on_a_made_up_world_is_whole_and_says_what_it_is(trial: Path, tmp_path: Path) -> None:
    document = json.loads(pgdyno("run", trial, "--results", tmp_path, "--json", code=0).out)
    assert [arm["tps"]["n"] for arm in document["arms"]] == [2, 2]
    comparison = summarise(only_result(tmp_path))
    assert comparison.valid
    page = html(comparison)
    assert "the figures of a fake world are made up" in page
    assert "fake volumes" in page


def test_made_up_figures_follow_from_the_seed(trial: Path, tmp_path: Path) -> None:
    def rates(name: str, seed: int) -> list[int]:
        experiment = read_experiment(trial, [f"seed={seed}"])
        directory = execute(plan(experiment), root=tmp_path / name, command=())
        return [run.record.account.succeeded for run in open_experiment(directory).runs]

    assert rates("a", 1) == rates("b", 1) != rates("c", 2)


def test_an_experiment_in_parts_ends_as_a_whole_one(trial: Path, tmp_path: Path) -> None:
    experiment = read_experiment(trial)
    directory = execute(plan(experiment, only=[1]), root=tmp_path, command=())
    assert {run.record.arm for run in open_experiment(directory).runs} == {"io2bx"}
    resumed = plan(recorded(directory), resume=directory)
    assert execute(resumed, root=tmp_path, command=()) == directory
    stored_experiment = open_experiment(directory)
    assert [run.record.position for run in stored_experiment.runs] == [0, 1, 2, 3]
    assert [(run.record.block, run.record.arm_index) for run in stored_experiment.runs] == list(
        stored_experiment.record.order
    )
    with pytest.raises(PgdynoError, match=r"was a different experiment: .*workload.clients is 5, was 4"):
        plan(read_experiment(trial, ["workload.clients=5"]), resume=directory)


def test_an_example_is_run_in_parts_by_the_command(state_dir: Path, tmp_path: Path, repository: Path) -> None:
    """Arm by arm, refused as another experiment, continued: the end is that of one uninterrupted experiment."""
    example = (repository / "experiments" / "compare-gp3-io2bx.toml", "--set", "world.kind=fake")
    pgdyno("run", *example, "--set", "replicates=2", "--results", tmp_path, "--only", "2", "--budget", "10min", code=0)
    directory = only_result(tmp_path)
    first = open_experiment(directory)
    assert {run.record.arm for run in first.runs} == {"io2bx:iops=8000"}
    began = {run.path.name: run.record.anchor.unix_ns for run in first.runs}

    other = (*example, "--set", "replicates=2", "--set", "workload.clients=5", "--resume", directory)
    assert pgdyno("run", *other, "--dry-run", code=2).err.count("was a different experiment") == 1
    assert "workload.clients is 5, was 16" in pgdyno("run", *other, code=2).err
    refused = pgdyno("run", "--resume", directory, "--seed", "2", code=2)
    assert "options cannot be changed when resuming" in refused.err

    document = json.loads(pgdyno("run", "--resume", directory, "--json", code=0).out)
    whole = open_experiment(directory)
    assert [run.record.position for run in whole.runs] == [0, 1, 2, 3]
    assert began.items() <= {run.path.name: run.record.anchor.unix_ns for run in whole.runs}.items()
    assert {run.record.experiment_hash for run in whole.runs} == {whole.record.experiment_hash}
    assert whole.record.factors == {"world.volume": ("gp3", "io2bx:iops=8000")}
    assert all(run.record.factors == {"world.volume": run.record.arm} for run in whole.runs)
    assert document["arms"][0]["tps"]["n"] == 2
    assert "run 1 of" not in pgdyno("run", "--resume", directory, code=0).err, "nothing is left"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), HostError("another run has set the kernel's dirty limits")])
def test_what_ends_a_resumed_experiment_before_its_first_run_leaves_it(
    error: BaseException, trial: Path, tmp_path: Path
) -> None:
    killed = write_experiment(tmp_path, run.record_of(plan(read_experiment(trial)), ()))
    kept = (killed / "experiment.json").read_bytes()

    def broken(_step: ProgressStep) -> None:
        raise error

    with pytest.raises((Interrupted, HostError)) as caught:
        execute(plan(recorded(killed), resume=killed), root=tmp_path, command=(), tell=Listener(step=broken))
    assert f"`pgdyno run --resume {killed}`" in caught.value.remedy
    assert (killed / "experiment.json").read_bytes() == kept
    assert finished(killed) == set()
    assert execute(plan(recorded(killed), resume=killed), root=tmp_path, command=()) == killed
    assert finished(killed) == {0, 1, 2, 3}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), HostError("another run has set the kernel's dirty limits")])
def test_what_ends_a_new_experiment_before_its_first_run_leaves_nothing(
    error: BaseException, trial: Path, tmp_path: Path
) -> None:
    def broken(_step: ProgressStep) -> None:
        raise error

    with pytest.raises((KeyboardInterrupt, HostError)):
        execute(plan(read_experiment(trial)), root=tmp_path / "results", command=(), tell=Listener(step=broken))
    assert not any((tmp_path / "results").iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), PgdynoError("the world broke", remedy="fix it")])
def test_what_ends_it_leaves_the_finished_runs_and_says_how_to_resume(
    error: BaseException, trial: Path, tmp_path: Path
) -> None:
    def broken(cell: Cell, _path: Path) -> None:
        if cell.position == 1:
            raise error

    with pytest.raises((Interrupted, PgdynoError)) as caught:
        execute(plan(read_experiment(trial)), root=tmp_path, command=(), tell=Listener(run=broken))
    directory = only_result(tmp_path)
    assert finished(directory) == {0, 1}
    assert f"`pgdyno run --resume {directory}`" in caught.value.remedy
    execute(plan(recorded(directory), resume=directory), root=tmp_path, command=())
    assert finished(directory) == {0, 1, 2, 3}


def test_a_budget_ends_it_and_a_longer_one_makes_more_runs(trial: Path, tmp_path: Path) -> None:
    """A run is said to take 12 s and takes milliseconds, so that all that is above is time for further ones: two seconds each time."""
    experiment = read_experiment(trial, ["budget=14s"])
    planned = plan(experiment)
    assert planned.load_s == 1.0
    assert [round(planned.world.run_s(cell)) for cell in planned.cells] == [12, 12, 12, 12]
    directory = execute(planned, root=tmp_path, command=())
    before = finished(directory)
    assert len(before) >= 2
    spent_s = allowance(experiment, directory, None).spent_s
    longer = plan(read_experiment(trial, [f"budget={spent_s + 14:.0f}s"]), resume=directory)
    assert execute(longer, root=tmp_path, command=()) == directory
    assert finished(directory) > before, "what is left of the budget goes to further runs"


def test_an_experiment_that_is_held_is_refused(trial: Path, tmp_path: Path) -> None:
    directory = execute(plan(read_experiment(trial), only=[0]), root=tmp_path, command=())
    with held(directory), pytest.raises(PgdynoError, match="another pgdyno"):
        execute(plan(recorded(directory), resume=directory), root=tmp_path, command=())
    assert len(finished(directory)) == 2


class Toy(Fake):
    """A world that a test adds: one class, one entry in each registry."""

    kind = "toy"
    closed = False

    @contextlib.contextmanager
    def prepared(self, *arguments: Any) -> Iterator[PreparedWorld]:
        try:
            with super().prepared(*arguments) as ready:

                def slower(run: PlannedRun) -> RunOutcome:
                    measured = ready(run)
                    return replace(measured, reasons=("toys break",))

                yield slower
        finally:
            type(self).closed = True


def test_a_world_is_added_by_one_class_and_its_registration(
    trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.WORLDS, "toy", f"{__name__}:Toy")
    monkeypatch.setitem(tables.WORLD_KINDS, "toy", tables.EMULATED)
    assert __name__ in sys.modules
    trial.write_text(FAKE.replace('"fake"', '"toy"'))
    directory = execute(plan(read_experiment(trial)), root=tmp_path, command=())
    assert Toy.closed
    assert not summarise(directory).valid
    runs = open_experiment(directory).runs
    assert len(runs) == 4
    assert all(run.record.validity.reasons == ("toys break",) for run in runs)


def test_a_world_that_does_not_exist_is_refused_by_name(trial: Path, tmp_path: Path) -> None:
    trial.write_text(FAKE.replace('"fake"', '"dream"'))
    err = pgdyno("run", trial, code=2).err
    assert "there is no world `dream`; there are emulated, real" in err
    assert "fake" not in err
