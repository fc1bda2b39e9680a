"""The experiments of the live A/A bench, its claims and its page; `make bench` measures it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.base.errors import HostError, PgdynoError
from pgdyno.experiment import Experiment
from pgdyno.world.resolved import emulated_arms
from tests.analysis.synthetic import GP3, Plan, make_experiment
from tools.aa import __main__ as command
from tools.aa import page
from tools.aa.claims import judge
from tools.aa.measure import measure, told
from tools.aa.record import Record, Result, pooled
from tools.aa.trials import CHANGE, DIFFERENT, EQUAL, KINDS, REPLICATES, digest, trials

if TYPE_CHECKING:
    from pathlib import Path

ALL = trials(command.SEED)


def test_every_kind_is_there_as_often_and_those_that_differ_come_first() -> None:
    assert [trial.change for trial in ALL] == [CHANGE] * DIFFERENT + [0.0] * EQUAL
    kinds = [trial.kind for trial in ALL[DIFFERENT:]]
    assert {kind.name: kinds.count(kind.name) for kind in KINDS} == {kind.name: EQUAL // len(KINDS) for kind in KINDS}
    assert len({trial.key for trial in ALL}) == len({trial.document["seed"] for trial in ALL}) == len(ALL)
    assert digest(ALL) == digest(trials(command.SEED)) != digest(trials(command.SEED + 1))


@pytest.mark.parametrize("trial", ALL[: DIFFERENT + len(KINDS)], ids=lambda item: item.key)
def test_every_experiment_can_be_run(trial: Any) -> None:
    experiment = Experiment.of(trial.document)
    first, second = emulated_arms(experiment, to_run=False)
    assert len(experiment.cells) == 2 * REPLICATES
    rates = [arm.volumes["data"].document["limits"]["iops"] for arm in (first, second)]
    assert rates[1] / rates[0] - 1 == pytest.approx(trial.change)
    assert first.instance == second.instance


def result(number: int, ratio: float = 1.0, half: float = 0.01, change: float = 0.0, **more: Any) -> Result:
    """An experiment that nobody made."""
    result = Result(
        key=f"{number:03d}", kind=KINDS[0].name, volumes=("gp3", "gp3"), change=change, workload="tpcb-like",
        tps=((1010.0, 1000.0), (990.0, 1000.0), (1000.0, 1000.0)), ratio=ratio, low=ratio - half, high=ratio + half,
        distinguishable=abs(ratio - 1) > half, detectable=1.5 * half, replicates_needed=2,
    )  # fmt: skip
    return result.model_copy(update=more)


def record(*results: Result) -> Record:
    """A record of a bench."""
    return Record(seed=1, asked="a", build_hash="5c0ffee", kernel="6.18", cores=2, results=list(results))


def found_difference(**more: Any) -> Result:
    """A true difference that was found."""
    return result(99, 1.031, change=CHANGE, **more)


@pytest.mark.parametrize(("alarms", "holds"), [(0, True), (2, True), (3, False)])
def test_two_alarms_of_twenty_are_chance_and_three_are_not(alarms: int, holds: bool) -> None:
    equal = [result(number, 1.02 if number < alarms else 1.0) for number in range(EQUAL)]
    answer = record(*equal, found_difference())
    judged = judge(answer)
    assert [claim.holds for claim in judged] == [True, holds, True]
    text = page.render(answer, judged)
    assert f"| {alarms} of {EQUAL} " in text
    assert text.count("1.0200 (1.0100 to 1.0300)") == alarms


def test_too_few_experiments_and_one_that_broke_do_not_hold() -> None:
    broken = result(0, broke="the server ended")
    answer = record(broken, *(result(number) for number in range(1, EQUAL)))
    assert [claim.holds for claim in judge(answer)] == [False, True, False]
    assert judge(answer)[0].faults == ("000: the server ended",)
    assert answer.whole == answer.results[1:]
    assert [claim.holds for claim in judge(record())] == [False, False, False]


@pytest.mark.parametrize(
    ("one", "outcome", "holds"),
    [
        (found_difference(), "found", True),
        (result(1, 1.03, 0.05, CHANGE), "too small for the budget", True),
        (result(1, 1.005, 0.01, CHANGE), "missed", False),
        (result(1, 0.97, 0.01, CHANGE), "wrong", False),
        (found_difference(invalid="a: replicate 1: late"), "no verdict", False),
        (found_difference().model_copy(update={"ratio": None}), "no verdict", False),
    ],
)
def test_a_true_difference_is_found_or_called_too_small(one: Result, outcome: str, holds: bool) -> None:
    answer = record(one)
    assert one.outcome == outcome
    assert judge(answer)[2].holds is holds
    assert f"| {outcome} |" in page.render(answer, judge(answer))


def test_a_missed_difference_is_not_made_good_by_another_one() -> None:
    assert not judge(record(found_difference(), result(1, 1.005, 0.01, CHANGE)))[2].holds
    assert judge(record(found_difference(), found_difference(invalid="late")))[2].holds


def test_the_scatter_is_that_of_the_logarithms_of_a_block() -> None:
    assert result(0).scatter == pytest.approx(0.01, rel=0.01)
    assert pooled([result(0), result(1)]) == pytest.approx(result(0).scatter)
    assert result(0, tps=((1.0, 1.0),)).scatter is None
    assert pooled([]) is None


def test_a_record_goes_on_where_the_same_was_asked(tmp_path: Path) -> None:
    first = record(result(0))
    first.save(tmp_path / "results" / "record.json")
    assert Record.load(tmp_path / "results" / "record.json") == first
    assert Record.load(tmp_path / "none.json") is None
    with pytest.raises(PgdynoError, match="no record was measured yet"):
        Record.require(tmp_path / "none.json", "aa")
    assert first.goes_on(record())
    assert not first.goes_on(record().model_copy(update={"asked": "b"}))


def test_what_is_kept_is_what_a_report_says(tmp_path: Path) -> None:
    faster = replace(GP3, tps=1.1 * GP3.tps)
    comparison = summarise(make_experiment(tmp_path, Plan(arms=(GP3, faster), measure_s=20)))
    kept = told(ALL[0], comparison)
    estimate = comparison.ratios[0].estimate
    assert estimate is not None
    assert (kept.ratio, kept.low, kept.high) == (estimate.mean, estimate.low, estimate.high)
    assert kept.distinguishable and kept.outcome == "found" and not kept.alarm
    assert len(kept.tps) == Plan().replicates
    assert all(over / under == pytest.approx(1.1, rel=0.1) for over, under in kept.tps)
    late = replace(GP3, late_share=0.2, late_by_us=20_000.0)
    invalid = told(ALL[0], summarise(make_experiment(tmp_path / "late", Plan(arms=(GP3, late), measure_s=20))))
    assert invalid.invalid is not None and "lateness" in invalid.invalid


def test_an_experiment_that_breaks_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def broken(experiment: Experiment, **_: object) -> Path:
        calls.append(experiment.seed)
        if len(calls) == 1:
            raise HostError("the server cannot be sampled", remedy="look at its log")
        return make_experiment(tmp_path / str(len(calls)), Plan(arms=(GP3, GP3), measure_s=20))

    monkeypatch.setattr("tools.aa.measure.run_experiment", broken)
    monkeypatch.setattr(Record, "here", classmethod(lambda cls, seed: record()))
    monkeypatch.setattr("tools.aa.__main__.preflight.require_root", lambda _: None)
    monkeypatch.setattr("tools.aa.__main__.preflight.require_fuse", lambda: None)
    path = tmp_path / "record.json"
    wanted = ALL[DIFFERENT : DIFFERENT + 2]
    first = command.collect(wanted, path, 1)
    assert [result.broke is None for result in first.results] == [False, True]
    again = command.collect(wanted, path, 1)
    assert calls == [wanted[0].document["seed"], wanted[1].document["seed"], wanted[0].document["seed"]]
    assert [result.broke for result in again.results] == [None, None]
    assert Record.load(path) == again
    assert measure(wanted[0], tmp_path).alarm is again.results[1].alarm


@pytest.mark.bench
@pytest.mark.needs_fuse
def test_equal_volumes_are_not_told_apart() -> None:
    result = command.collect(ALL, command.RESULTS, command.SEED)
    assert [str(claim) for claim in command.write(result) if not claim.holds] == []
