"""The one recommendation for a set of arms: what is chosen, and when nothing is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.base.goal import parse_goal
from pgdyno.report import document, table
from pgdyno.report.export import markdown
from pgdyno.report.page import html
from pgdyno.results.work_record import ReplayRecord, TimeDistribution

from .synthetic import GP3, IO2BX, REAL, Arm, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

GP3_8000 = replace(GP3, spec="gp3:iops=8000", tps=2260.0, iops_limit=8000, usd_per_month=33.0, spread=0.004)
IO2BX_8000 = replace(IO2BX, spec="io2bx:iops=8000", tps=2250.0, iops_limit=8000, usd_per_month=532.5, spread=0.012)
SLOW = replace(GP3, spec="gp3", tps=840.0)
LATE = {"late_share": 0.2, "late_by_us": 50_000.0}
"""What makes an arm invalid."""


def compared(root: Path, *arms: Arm, goal: str | None = None, **changes: Any) -> Comparison:
    """A comparison of arms that nobody ran."""
    plan = replace(Plan(arms=arms, measure_s=20), **changes)
    return summarise(make_experiment(root, plan), goal=None if goal is None else parse_goal(goal, "--goal"))


def chosen(comparison: Comparison) -> tuple[str, str | None]:
    """What is recommended."""
    return comparison.recommendation.action, comparison.recommendation.label


def swept(root: Path, name: str, levels: dict[str, float], base: Arm = GP3, **of_all: Any) -> Comparison:
    """Levels of one factor that is no volume, each with its TPS."""
    arms = tuple(
        replace(base, name=level, factors=((name, level),), tps=tps, spread=0.004, **of_all)
        for level, tps in levels.items()
    )
    return compared(root, *arms, factors=((name, tuple(levels)),))


def replayed(took_s: float, mean_ms: float) -> ReplayRecord:
    """A replay that was to take 60 s."""
    times = TimeDistribution(count=1000, mean_ms=mean_ms, p50_ms=mean_ms, p99_ms=4 * mean_ms, max_ms=9 * mean_ms)
    return ReplayRecord(
        statements=1000, executed=1000, failed_as_recorded=0, newly_failed=0, no_longer_failed=0, left_out={}, not_begun=0,
        not_asked=0, recorded_s=10.0, left_out_s=0.0, captured_s=60.0, due_s=60.0, took_s=took_s, sessions=1, lanes=1,
        connections_lost=0, response=times, service=times, recorded=times, behind=times,
    )  # fmt: skip


def test_the_cheapest_that_is_nearly_as_fast_is_bought_and_what_dearer_ones_buy_is_said(tmp_path: Path) -> None:
    comparison = compared(tmp_path, SLOW, GP3_8000, IO2BX_8000)
    recommendation = comparison.recommendation
    assert chosen(comparison) == ("buy", "gp3:iops=8000")
    assert recommendation.usd_per_month == 33.0
    assert [comparison.arms[index].label for index in recommendation.alike] == ["io2bx:iops=8000"]
    assert recommendation.lead.startswith("Buy gp3:iops=8000: it does 2,1")
    assert "$33 a month" in recommendation.lead
    assert "cannot be told apart from io2bx:iops=8000 at $532.50" in recommendation.details
    assert "$499.50 more buys is durability" in recommendation.details


def test_it_is_the_first_line_of_every_report_and_the_first_key_of_the_json(tmp_path: Path) -> None:
    comparison = compared(tmp_path, SLOW, GP3_8000, IO2BX_8000)
    lead = comparison.recommendation.lead
    assert table(comparison, width=400).splitlines()[0].startswith(lead[:60])
    assert markdown(comparison).splitlines()[0] == f"# {lead}"
    assert f"<h1>{lead}</h1>" in html(comparison)
    made = document(comparison).model_dump()
    assert next(iter(made)) == "recommendation"
    assert made["recommendation"]["sentence"] == comparison.recommendation.sentence
    assert made["recommendation"]["volume"] == "gp3:iops=8000"
    assert next(iter(made["recommendation"])) == "sentence"


def test_every_pair_is_compared(tmp_path: Path) -> None:
    comparison = compared(tmp_path, SLOW, GP3_8000, IO2BX_8000)
    assert [(ratio.index, ratio.to_index) for ratio in comparison.pairs] == [(1, 0), (2, 0), (2, 1)]
    assert [(pair.volume, pair.to) for pair in document(comparison).pairs][-1] == ("io2bx:iops=8000", "gp3:iops=8000")
    assert "io2bx:iops=8000 and gp3:iops=8000 are not distinguishable" in comparison.verdict


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("tps>=800", ("buy", "gp3")),
        ("tps>=2000", ("buy", "gp3:iops=8000")),
        ("tps>=2000, p99<=45ms", ("buy", "gp3:iops=8000")),
        ("tps>=2000, price<=$20", ("none", None)),
        ("p99<=1ms", ("none", None)),
        ("tps>=100000", ("none", None)),
    ],
)
def test_the_cheapest_arm_that_meets_the_goal_is_bought(tmp_path: Path, goal: str, expected: Any) -> None:
    comparison = compared(tmp_path, SLOW, GP3_8000, IO2BX_8000, goal=goal)
    assert chosen(comparison) == expected
    met = comparison.recommendation.goal
    assert len(met) == goal.count(",") + 1
    assert all(other.met for other in met) is (expected[0] == "buy")
    assert comparison.recommendation.lead.startswith("Buy ") is (expected[0] == "buy")


def test_a_goal_inside_of_the_interval_is_met_and_not_sure(tmp_path: Path) -> None:
    scattered = replace(GP3_8000, spread=0.1)
    mean = compared(tmp_path / "plain", scattered).arms[0].headline
    assert mean.low is not None
    assert mean.low < mean.mean * 0.98
    comparison = compared(tmp_path / "goal", SLOW, scattered, goal=f"tps>={mean.mean * 0.98:.0f}")
    assert chosen(comparison) == ("buy", "gp3:iops=8000")
    assert [(met.met, met.sure) for met in comparison.recommendation.goal] == [(True, False)]


@pytest.mark.parametrize(
    ("goal", "invalid", "expected"),
    [
        (None, 0, None),
        (None, 2, None),  # it may be the fastest
        ("tps>=2000", 0, None),  # it is cheaper
        ("tps>=2000", 2, "gp3:iops=8000"),  # it is dearer, so it cannot change the answer
        ("tps>=800", 1, "gp3"),
    ],
)
def test_nothing_is_bought_where_an_invalid_arm_may_be_the_answer(
    tmp_path: Path, goal: str | None, invalid: int, expected: str | None
) -> None:
    arms = [SLOW, GP3_8000, IO2BX_8000]
    arms[invalid] = replace(arms[invalid], **LATE)
    comparison = compared(tmp_path, *arms, goal=goal)
    assert comparison.recommendation.label == expected
    assert (comparison.recommendation.action == "none") is (expected is None)


def test_of_invalid_arms_alone_nothing_is_recommended(tmp_path: Path) -> None:
    comparison = compared(tmp_path, *(replace(arm, **LATE) for arm in (SLOW, IO2BX_8000)), goal="tps>=1")
    assert chosen(comparison) == ("none", None)
    assert comparison.recommendation.steps == ()
    assert comparison.recommendation.lead.startswith("No recommendation")


def test_an_arm_without_a_finished_run_may_be_the_fastest(tmp_path: Path) -> None:
    missing = frozenset((block, 2) for block in (1, 2, 3))
    assert chosen(compared(tmp_path, SLOW, GP3_8000, IO2BX_8000, missing=missing)) == ("none", None)


def test_single_runs_are_recommended_by_their_means_and_said_to_have_no_interval(tmp_path: Path) -> None:
    comparison = compared(tmp_path, SLOW, GP3_8000, replicates=1)
    assert chosen(comparison) == ("buy", "gp3:iops=8000")
    assert comparison.recommendation.alike == ()
    assert "-n 3" in comparison.recommendation.details
    for text in (comparison.verdict, table(comparison), html(comparison), markdown(comparison)):
        assert "distinguishable" not in text.replace("not distinguishable from it", "")
    assert "single run" in comparison.verdict


def test_steps_name_measured_arms_before_anything_that_was_not_measured(tmp_path: Path) -> None:
    comparison = compared(tmp_path, IO2BX_8000, SLOW, GP3_8000)
    steps = comparison.recommendation.steps
    measured = [step for step in steps if step.arm is not None]
    assert [step.label for step in measured] == ["gp3", "gp3:iops=8000"]
    assert steps[: len(measured)] == tuple(measured)
    assert len(steps) - len(measured) <= 1
    assert table(comparison).count("remedy: ") == 0


def test_a_setting_is_used_and_not_bought(tmp_path: Path) -> None:
    comparison = swept(tmp_path, "postgres.parameters.wal_compression", {"off": 900.0, "lz4": 1200.0})
    assert chosen(comparison) == ("use", "wal_compression lz4")


def test_of_a_sweep_the_least_that_is_nearly_as_good_is_used(tmp_path: Path) -> None:
    comparison = swept(tmp_path, "workload.clients", {"4": 500.0, "16": 990.0, "64": 1000.0, "256": 700.0})
    assert chosen(comparison) == ("use", "clients 16")
    assert "on the front" not in table(comparison)
    assert "cost front" not in html(comparison)


def test_arms_that_are_asked_for_other_work_are_no_alternatives(tmp_path: Path) -> None:
    comparison = swept(tmp_path, "workload.scale", {"10": 2000.0, "100": 900.0, "1000": 300.0})
    assert chosen(comparison) == ("none", None)


def test_a_volume_is_bought_by_the_work_that_it_does_worst(tmp_path: Path) -> None:
    scales, volumes = ("10", "1000"), {"gp3": {"10": 1000.0, "1000": 300.0}, "io2bx": {"10": 1010.0, "1000": 900.0}}
    arms = tuple(
        replace(
            GP3 if volume == "gp3" else IO2BX,
            spec=volume,
            name=f"{volume} · scale {scale}",
            factors=(("world.volume", volume), ("workload.scale", scale)),
            tps=tps[scale],
            spread=0.004,
        )
        for volume, tps in volumes.items()
        for scale in scales
    )
    factors = (("world.volume", tuple(volumes)), ("workload.scale", scales))
    assert chosen(compared(tmp_path / "plain", *arms, factors=factors)) == ("buy", "io2bx")
    assert chosen(compared(tmp_path / "goal", *arms, factors=factors, goal="tps>=250")) == ("buy", "gp3")


def test_volumes_without_prices_are_used_by_their_speed(tmp_path: Path) -> None:
    arms = [replace(arm, usd_per_month=None) for arm in (SLOW, GP3_8000, IO2BX_8000)]
    action, label = chosen(compared(tmp_path, *arms))
    assert action == "use"
    assert label in ("gp3:iops=8000", "io2bx:iops=8000")


def test_a_server_that_stands_alone_is_held_against_a_goal(tmp_path: Path) -> None:
    assert chosen(compared(tmp_path / "plain", REAL)) == ("none", None)
    assert chosen(compared(tmp_path / "met", REAL, goal="tps>=2000")) == ("use", "service=bank")
    assert chosen(compared(tmp_path / "missed", REAL, goal="tps>=9000")) == ("none", None)


def test_in_an_open_loop_the_cheapest_that_serves_all_is_bought_and_what_answers_sooner_is_named(
    tmp_path: Path,
) -> None:
    arms = [
        replace(arm, tps=500.0, rate_per_s=500.0, service_share=0.5, spread=0.002)
        for arm in (SLOW, replace(IO2BX_8000, clients=4))
    ]
    comparison = compared(tmp_path, *arms)
    assert chosen(comparison) == ("buy", "gp3")
    assert "of the 500 transactions per second that arrive" in comparison.recommendation.lead


def test_a_replay_is_judged_by_whether_it_kept_up(tmp_path: Path) -> None:
    slow = replace(SLOW, replay=replayed(190.0, 1478.0))
    fast = replace(IO2BX_8000, replay=replayed(60.2, 5.4))
    comparison = compared(tmp_path / "one", slow, fast, replicates=1)
    assert chosen(comparison) == ("buy", "io2bx:iops=8000")
    assert comparison.recommendation.lead.startswith("Buy io2bx:iops=8000: it kept up with the captured load")
    assert comparison.verdict.startswith(
        "io2bx:iops=8000 kept up with the captured load; gp3 fell behind: it took 130 s longer than"
    )
    assert "distinguishable" not in comparison.verdict
    assert "274 times" in comparison.verdict
    both = compared(tmp_path / "none", slow, replace(fast, replay=replayed(75.0, 700.0)))
    assert chosen(both) == ("none", None)
    late = compared(tmp_path / "late", slow, replace(fast, replay=replayed(75.0, 700.0)), goal="late<=30s")
    assert chosen(late) == ("buy", "io2bx:iops=8000")


def test_the_goal_of_the_experiment_file_is_judged_unless_another_one_is_given(tmp_path: Path) -> None:
    import json

    directory = make_experiment(tmp_path, Plan(arms=(SLOW, GP3_8000, IO2BX_8000), measure_s=20))
    record = json.loads((directory / "experiment.json").read_text())
    record["settings"]["goal"] = "tps>=800"
    (directory / "experiment.json").write_text(json.dumps(record))
    assert chosen(summarise(directory)) == ("buy", "gp3")
    assert chosen(summarise(directory, goal=parse_goal("tps>=2000", "--goal"))) == ("buy", "gp3:iops=8000")


def test_a_verdict_and_the_table_have_one_name_for_an_arm(tmp_path: Path) -> None:
    comparison = compared(tmp_path, SLOW, IO2BX_8000)
    assert [arm.label for arm in comparison.arms] == ["gp3", "io2bx:iops=8000"]
    assert comparison.verdict.startswith("io2bx:iops=8000 does ")


def test_an_arm_that_gave_up_durability_is_not_recommended_beside_one_that_did_not(tmp_path: Path) -> None:
    import json

    directory = make_experiment(tmp_path, Plan(arms=(SLOW, GP3_8000), measure_s=20))
    for record in directory.glob("runs/*/run.json"):
        run = json.loads(record.read_text())
        if run["arm"] == "gp3:iops=8000":
            run["postgres"]["given_up"] = ["fsync"]
            record.write_text(json.dumps(run))
    comparison = summarise(directory)
    assert [arm.given_up for arm in comparison.arms] == [(), ("fsync",)]
    assert chosen(comparison) == ("buy", "gp3")
    assert "gp3:iops=8000" not in comparison.recommendation.lead
    assert "gp3:iops=8000" in comparison.recommendation.details
