"""Which arms get another run: those whose mean is the least certain for its time."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.analysis.statistics import Scatter, chosen, groups_of, moderated_variances


def scatter(*spreads: float, runs: int = 3, seconds: float = 20.0) -> dict[int, Scatter]:
    """Arms whose runs lie so far around the same mean."""
    return {
        arm: Scatter(tuple(spread * (place - (runs - 1) / 2) for place in range(runs)), seconds, runs)
        for arm, spread in enumerate(spreads)
    }


def test_the_arm_that_scatters_most_is_first() -> None:
    groups = groups_of([("a",), ("b",), ("c",), ("d",)], paired_with_first=True)
    assert groups == [frozenset({0, 1}), frozenset({0, 2}), frozenset({0, 3})]
    assert chosen(scatter(0.01, 0.01, 0.10, 0.03), groups) == [frozenset({0, 2}), frozenset({0, 3})]


def test_of_two_that_scatter_alike_the_shorter_one_is_first() -> None:
    scatters = scatter(0.05, 0.05, 0.05)
    scatters[1] = Scatter(scatters[1].logs, seconds=200.0, runs=scatters[1].runs)
    assert chosen(scatters, groups_of([(0,), (1,), (2,)], paired_with_first=True)) == [frozenset({0, 2})]


def test_of_two_that_scatter_alike_the_one_with_fewer_runs_is_first() -> None:
    document = {
        0: scatter(0.05)[0],
        1: Scatter(scatter(0.05, runs=3)[0].logs * 3, 20.0, 9),
        2: scatter(0.05, runs=3)[0],
    }
    assert chosen(document, groups_of([(0,), (1,), (2,)], paired_with_first=True)) == [frozenset({0, 2})]


def test_an_arm_of_a_single_run_has_no_spread_and_gets_another() -> None:
    scatters = scatter(0.01, 0.20, 0.02) | {3: Scatter((1.0,), 20.0, 1)}
    wanted = chosen(scatters, groups_of([(0,), (1,), (2,), (3,), (4,)], paired_with_first=True))
    assert wanted == [frozenset({0, 3}), frozenset({0, 4})]


def test_arms_that_differ_in_the_first_factor_alone_are_run_together() -> None:
    levels = [("gp3", 16), ("gp3", 32), ("io2", 16), ("io2", 32)]
    groups = groups_of(levels, paired_with_first=False)
    assert groups == [frozenset({0, 2}), frozenset({1, 3})]
    assert chosen(scatter(0.01, 0.01, 0.01, 0.30), groups) == [frozenset({1, 3})]


def test_a_single_arm_gets_whatever_is_left() -> None:
    groups = groups_of([()], paired_with_first=True)
    assert chosen(scatter(0.02), groups) == groups == [frozenset({0})]


def test_a_variance_of_two_runs_is_drawn_towards_that_of_all() -> None:
    own = moderated_variances(scatter(0.0, 0.1, 0.1, 0.1, runs=2))
    assert 0 < own[0] < own[1]
    much = moderated_variances(scatter(0.0, 0.1, 0.1, 0.1, runs=40))
    assert much[0] / much[1] < own[0] / own[1]


@given(st.dictionaries(st.integers(0, 9), st.lists(st.floats(-9, 9), max_size=6), max_size=10), st.booleans())
def test_no_more_than_half_unless_they_have_no_spread(logs: dict[int, list[float]], star: bool) -> None:
    scatters = {arm: Scatter(tuple(values), 10.0, len(values)) for arm, values in logs.items()}
    groups = groups_of([(arm % 2, arm // 2) for arm in range(10)], paired_with_first=star)
    wanted = chosen(scatters, groups)
    single = [group for group in groups if any(len(logs.get(arm, ())) < 2 for arm in group)]
    assert len(wanted) == len(set(wanted)) == max(len(single), math.ceil(len(groups) / 2))
    assert set(single) <= set(wanted) <= set(groups)


def test_time_spent_where_runs_scatter_makes_the_worst_interval_narrower() -> None:
    """Against the same number of runs spread evenly: the largest standard error of a mean is smaller."""
    draw = random.Random(4)
    true = (0.01, 0.01, 0.02, 0.12)
    groups = groups_of([(arm,) for arm in range(4)], paired_with_first=True)
    logs = {arm: [draw.gauss(0, true[arm]) for _ in range(3)] for arm in range(4)}
    spent = 0
    while spent < 60:
        arms = set().union(*chosen({arm: Scatter(tuple(each), 10.0, len(each)) for arm, each in logs.items()}, groups))
        for arm in arms:
            logs[arm].append(draw.gauss(0, true[arm]))
        spent += len(arms)
    counts = {arm: len(each) for arm, each in logs.items()}
    worst = max(true[arm] / math.sqrt(counts[arm]) for arm in range(4))
    evenly = max(true) / math.sqrt(3 + spent / 4)
    assert counts[3] > counts[1]
    assert worst < evenly


def test_an_arm_whose_runs_had_no_transactions_takes_no_time_from_the_others() -> None:
    """It has no ratio to anything, however often it is run; it was taken for an arm of a single run for ever."""
    scatters = scatter(0.01, 0.05, 0.02) | {3: Scatter((), 20.0, 3)}
    groups = groups_of([(0,), (1,), (2,), (3,)], paired_with_first=True)
    assert chosen(scatters, groups) == [frozenset({0, 1}), frozenset({0, 2})]
    never = {arm: Scatter((), 20.0, 2) for arm in range(2)}
    assert chosen(never, groups_of([(0,), (1,)], paired_with_first=True)) == []
