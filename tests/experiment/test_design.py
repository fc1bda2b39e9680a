"""Which arms a design has, and which runs follow while a budget lasts."""

from __future__ import annotations

import math
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.experiment.factors import combinations
from pgdyno.flow import run as flow
from pgdyno.flow.resume import recorded, require_same
from pgdyno.flow.schedule import Allowance, allowance, further
from pgdyno.results import open_experiment
from pgdyno.results.record import (
    Account,
    Anchor,
    ExperimentRecord,
    HostRecord,
    PostgresRecord,
    RunPhase,
    RunRecord,
    Validity,
    WorldRecord,
)
from pgdyno.results.writer import RunWriter, write_experiment
from pgdyno.world.fake import Fake
from tests.experiment.documents import FILE, experiment, written

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.experiment import Cell, Experiment

SECOND_NS = 1_000_000_000
RUN_S = 10.0
"""What a made-up run took."""


def test_one_at_a_time_changes_one_factor_against_the_first_levels() -> None:
    factors = {"workload.clients": [4, 8, 16], "workload.scale": [1, 2]}
    full, single = (experiment(factors=factors, design=design) for design in ("full", "one-at-a-time"))
    assert len(full.arms) == 6
    assert [arm.label for arm in single.arms] == [
        "clients 4 · scale 1", "clients 8 · scale 1", "clients 16 · scale 1", "clients 4 · scale 2",
    ]  # fmt: skip
    assert full.identity() != single.identity()


@given(st.lists(st.integers(1, 5), min_size=0, max_size=4))
def test_designs_have_the_arms_that_their_names_promise(counts: list[int]) -> None:
    factors = {f"workload.f{place}": list(range(count)) for place, count in enumerate(counts)}
    full, single = list(combinations(factors)), list(combinations(factors, "one-at-a-time"))
    assert len(full) == len(set(full)) == math.prod(counts)
    assert len(single) == len(set(single)) == 1 + sum(count - 1 for count in counts)
    assert set(single) <= set(full)
    assert all(sum(level > 0 for level in levels) <= 1 for levels in single)


def test_an_unknown_design_and_a_budget_without_a_unit_are_refused(tmp_path: Path) -> None:
    for line, item in (
        ('design = "half"', "trial.toml:3: design: "),
        ("budget = 40", "trial.toml:3: budget: 40 has no"),
    ):
        text = FILE.replace("replicates = 2\n", f"replicates = 2\n{line}\n")
        with pytest.raises(InputError) as caught:
            written(tmp_path, text)
        assert caught.value.message.startswith(f"{tmp_path}/{item}"), caught.value


def test_a_budget_changes_no_result_and_is_recorded(tmp_path: Path) -> None:
    plain, limited = experiment(), experiment(budget="40min", design="full")
    assert limited.file.budget_s == 2400
    assert plain.identity() == limited.identity()
    again = recorded(directory(tmp_path, limited))
    assert again.file.budget_s == 2400
    assert again.whole() == limited.whole()


def test_an_experiment_is_not_continued_with_its_factors_in_another_order(tmp_path: Path) -> None:
    """Nothing else has changed, but its arms have other numbers: runs that are there would count for other arms."""
    levels = {"workload.clients": [4, 8], "workload.scale": [1, 2]}
    path = directory(tmp_path, experiment(factors=levels))
    require_same(path, experiment(factors=levels), {})
    with pytest.raises(InputError, match="in another order") as caught:
        require_same(path, experiment(factors=dict(reversed(levels.items()))), {})
    assert "workload.clients, workload.scale" in caught.value.remedy


def test_blocks_go_on_where_the_planned_ones_end() -> None:
    result = experiment(replicates=2, factors={"workload.scale": [1, 2, 3]})
    blocks = list(islice(result.blocks(), 5))
    assert tuple(cell for block in blocks[:2] for cell in block) == result.cells
    assert [cell.position for block in blocks for cell in block] == list(range(15))
    assert all(sorted(cell.arm.index for cell in block) == [0, 1, 2] for block in blocks)


def directory(root: Path, experiment: Experiment) -> Path:
    """Where its runs would lie."""
    return write_experiment(
        root,
        ExperimentRecord(
            experiment_id="20261121T124500Z-run-000000", experiment_hash="5c0ffee0" * 8, kind="run", created_unix_ns=0,
            command=("pgdyno", "run"), seed=experiment.seed, arms=tuple(arm.label for arm in experiment.arms),
            factors=experiment.factors, replicates=experiment.replicates, file_schema_version=1, name=experiment.file.name,
            settings=experiment.settings(),
        ),
    )  # fmt: skip


def make(path: Path, cell: Cell, tps: float) -> None:
    """Leave what a run of that cell leaves, without its tables."""
    name = f"{cell.position:02d}-arm-r{cell.block}"
    begin = 1000 * SECOND_NS
    done = round(tps * 10)
    RunWriter(path.parent, path.name, name).finish(
        RunRecord(
            run_id=name, experiment_id=path.name, experiment_hash="5c0ffee0" * 8, command=("pgdyno", "run"),
            arm=cell.arm.label, arm_index=cell.arm.index, factors=cell.arm.levels, block=cell.block,
            position=cell.position, seed=1, anchor=Anchor(monotonic_ns=0, unix_ns=0),
            world=WorldRecord(kind="real", host=HostRecord(cores=2, kernel="6", memory_bytes=1)), workload={},
            postgres=PostgresRecord(version="18", source="a test"),
            phases=(RunPhase(name="measure", begin_ns=begin, end_ns=begin + 10 * SECOND_NS),),
            account=Account(scheduled=done, skipped=0, succeeded=done, failed=0), validity=Validity(valid=True),
            seconds={"start": 1.0, "measure": 9.0},
        )
    )  # fmt: skip


def tps_of(cell: Cell) -> float:
    """The arm with the largest scale is the one that scatters."""
    return 1000 * (1 + (0.2 if cell.arm.index == 2 else 0.001) * math.sin(7 * cell.position))


def go_on(path: Path, experiment: Experiment, budget_s: float, stop_after: int = 10**6) -> list[Cell]:
    """Make further runs as long as ``budget_s`` allows, each taking :data:`RUN_S`."""
    made: list[Cell] = []
    for cell in further(experiment, path, lambda: budget_s - RUN_S * len(made), lambda _cell: RUN_S):
        make(path, cell, tps_of(cell))
        made.append(cell)
        if len(made) == stop_after:
            break
    return made


@pytest.fixture
def asked() -> Experiment:
    return experiment(replicates=2, budget="10min", factors={"workload.scale": [1, 2, 3]})


def begun(root: Path, experiment: Experiment) -> Path:
    """Its planned runs are made."""
    path = directory(root, experiment)
    for cell in experiment.cells:
        make(path, cell, tps_of(cell))
    return path


def test_what_is_left_goes_to_the_arm_that_scatters_and_its_reference(tmp_path: Path, asked: Experiment) -> None:
    path = begun(tmp_path, asked)
    made = go_on(path, asked, 100.0)
    assert len(made) == 10
    runs = [sum(cell.arm.index == arm for cell in made) for arm in range(3)]
    assert runs[0] == 5
    assert runs[2] > runs[1]
    assert all(first.position < second.position for first, second in pairwise(made))
    assert [cell.block for cell in made] == [
        3,
        3,
        4,
        4,
        5,
        5,
        6,
        6,
        7,
        7,
    ]  # half of what could be run, and the reference


def test_an_interrupted_block_is_ended_as_if_nothing_had_happened(tmp_path: Path, asked: Experiment) -> None:
    whole = begun(tmp_path / "whole", asked)
    parts = begun(tmp_path / "parts", asked)
    uninterrupted = go_on(whole, asked, 90.0)
    before = go_on(parts, asked, 90.0, stop_after=3)
    after = go_on(parts, asked, 90.0 - RUN_S * len(before))
    assert [cell.position for cell in (*before, *after)] == [cell.position for cell in uninterrupted]


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_what_an_interrupted_block_has_is_not_paid_for_twice(
    tmp_path: Path, asked: Experiment, stop_after: int
) -> None:
    """The budget has room for two blocks of two runs: of what is left, the runs that are there need nothing."""
    whole = begun(tmp_path / "whole", asked)
    parts = begun(tmp_path / "parts", asked)
    uninterrupted = go_on(whole, asked, 4 * RUN_S)
    assert len(uninterrupted) == 4
    before = go_on(parts, asked, 4 * RUN_S, stop_after=stop_after)
    after = go_on(parts, asked, 4 * RUN_S - RUN_S * len(before))
    assert [cell.position for cell in (*before, *after)] == [cell.position for cell in uninterrupted]


@pytest.mark.parametrize("is_resumed", [True, False])
def test_an_experiment_whose_time_ends_before_its_first_run_stays_only_if_it_was_resumed(
    tmp_path: Path, asked: Experiment, is_resumed: bool
) -> None:
    """It was killed in its first run, and resumed or begun anew; then the time was over before a run was begun."""
    path = directory(tmp_path, asked)
    (path / "runs" / "00-scale-1-r1.partial" / "logs").mkdir(parents=True)
    world = Fake.open(asked, to_run=False, yes_create=False)
    planned = flow.ExperimentPlan(world, (), directory=path if is_resumed else None)
    allowed = Allowance(in_all_s=600.0)
    with pytest.raises(PgdynoError) as caught:
        flow._make(planned, path, open_experiment(path).record, allowed, flow.Listener())
    assert caught.value.code == "run.budget.no_run"
    assert caught.value.remedy.count("--resume") == is_resumed
    assert (path / "experiment.json").exists() == is_resumed
    assert is_resumed or list(tmp_path.iterdir()) == []


def test_nothing_is_begun_that_does_not_fit(tmp_path: Path, asked: Experiment) -> None:
    path = begun(tmp_path, asked)
    assert go_on(path, asked, RUN_S) == []
    assert allowance(asked, path, None).spent_s == RUN_S * len(asked.cells)
    assert allowance(asked, path, None).left_s < 600 - RUN_S * len(asked.cells) + 1
    assert Allowance(at_once_s=5.0, in_all_s=100.0, spent_s=98.0).left_s < 2.1
