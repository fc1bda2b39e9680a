"""The draw, its claims and its page; `make bench` measures it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.binding.rules import OF_RUNS, Confidence, Limit
from pgdyno.base.errors import HostError
from pgdyno.experiment import Experiment
from pgdyno.world.resolved import emulated_arms
from tools.attribution import __main__ as command
from tools.attribution import page
from tools.attribution.claims import judge
from tools.attribution.measure import document, measure
from tools.attribution.record import Record, Result, rules_digest
from tools.attribution.scenarios import Scenario, draw

if TYPE_CHECKING:
    from pathlib import Path


def test_a_draw_has_every_limit_as_often_and_comes_out_the_same() -> None:
    drawn = draw(command.SEED, command.COUNT)
    assert drawn == draw(command.SEED, command.COUNT)
    assert drawn != draw(command.SEED + 1, command.COUNT)
    assert {limit: sum(item.truth == limit for item in drawn) for limit in OF_RUNS} == dict.fromkeys(OF_RUNS, 7)
    assert len({str(item.document) for item in drawn}) == len(drawn)


@pytest.mark.parametrize("scenario", draw(command.SEED, command.COUNT), ids=lambda item: item.key)
def test_every_scenario_can_be_run(scenario: Scenario) -> None:
    arms = emulated_arms(Experiment.of(document(scenario)), to_run=False)
    assert len(arms) == (1 if scenario.control is None else 2)
    if scenario.truth == "instance_bandwidth":
        assert arms[0].instance.ebs["burst"] is False, "a reserve would outlast the run"


def result(
    number: int, truth: Limit, limit: Limit | None, confidence: Confidence = "high", refuted: str | None = None
) -> Result:
    """A run that nobody made."""
    return Result(
        key=f"{number:03d} {truth}", truth=truth, refuted=refuted, limit=limit, confidence=confidence, shares={},
        volume="data gp3", workload="tpcb-like, scale 20, 8 clients", tps=100.0,
    )  # fmt: skip


def record(*results: Result) -> Record:
    """A record of a draw."""
    return Record(seed=1, rules=rules_digest(), build_hash="5c0ffee", results=list(results))


def test_all_right_holds_and_refuted_runs_are_not_judged() -> None:
    right = [result(number, limit, limit) for number, limit in enumerate(OF_RUNS * 6)]
    refuted = result(99, "locks", "client", refuted="requests waited for another limit in 90 % of the time")
    answer = record(*right, refuted)
    judged = judge(answer)
    assert [claim.holds for claim in judged] == [True] * 4
    text = page.render(answer, judged)
    assert "| volume IOPS | 6 (6) |" in text
    assert "## Not judged" in text
    assert "## Wrong" not in text


@pytest.mark.parametrize(
    ("named", "confidence", "holds"),
    [
        ("client", "high", [True, True, True, False]),
        ("client", "low", [True, True, True, True]),
        (None, "unknown", [True, True, True, True]),
    ],
)
def test_one_of_66_may_be_wrong_but_not_with_confidence(
    named: Limit | None, confidence: Confidence, holds: list[bool]
) -> None:
    right = [result(number, limit, limit) for number, limit in enumerate(OF_RUNS * 6)]
    answer = record(*right, result(66, "locks", named, confidence))
    judged = judge(answer)
    assert [claim.holds for claim in judged] == holds
    assert "## Wrong" in page.render(answer, judged)


def test_too_few_and_too_often_wrong_do_not_hold() -> None:
    assert [claim.holds for claim in judge(record())] == [False, False, False, True]
    wrong = [
        result(number, limit, None if number % 10 == 0 else limit, "low") for number, limit in enumerate(OF_RUNS * 6)
    ]
    assert [claim.holds for claim in judge(record(*wrong))] == [True, True, False, True]


def test_a_record_goes_on_with_the_same_rules_alone(tmp_path: Path) -> None:
    first = record(result(0, "locks", "locks"))
    first.save(tmp_path / "record.json")
    assert Record.load(tmp_path / "record.json") == first
    assert Record.load(tmp_path / "none.json") is None
    assert first.goes_on(record())
    assert not first.goes_on(record().model_copy(update={"rules": "other"}))


def test_a_run_that_breaks_is_not_judged_and_does_not_end_the_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> Path:
        raise HostError("the server cannot be sampled", remedy="look at its log")

    monkeypatch.setattr("tools.attribution.measure.run_experiment", broken)
    (first, *_) = draw(command.SEED, 1)
    result = measure(first, tmp_path)
    assert result.refuted == "the run ended: the server cannot be sampled"
    assert (result.limit, result.confidence) == (None, "unknown")
    assert record(result).judged == []


@pytest.mark.bench
@pytest.mark.needs_fuse
def test_the_limit_that_binds_is_named() -> None:
    result = command.collect(draw(command.SEED, command.COUNT), command.RESULTS, command.SEED)
    assert [str(claim) for claim in command.write(result) if not claim.holds] == []


def test_the_digest_of_the_rules_changes_with_a_threshold_and_not_with_its_explanation(tmp_path: Path) -> None:
    def digest(text: str) -> str:
        (tmp_path / "rules.py").write_text(text)
        return rules_digest(tmp_path)

    first = digest('SHARE = 0.6\n"""Of the seconds."""\n\n\nclass Rule:\n    """One."""\n')
    assert (
        digest('# said better\nSHARE = 0.6\n"""Share of the seconds."""\n\n\nclass Rule:\n    """A rule."""\n') == first
    )
    assert digest('SHARE = 0.7\n"""Of the seconds."""\n\n\nclass Rule:\n    """One."""\n') != first
    assert digest('SHARE = 0.6\n"""Of the seconds."""\nNAME = "a text that is used"\n') != first
