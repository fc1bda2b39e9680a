"""Steady, not steady, too short: single series with a known answer, and whole runs. How often it errs: tests/calibration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.steady import CYCLES_MIN, SECONDS_MIN, Steady, steadiness, steady_state

from .synthetic import GP3, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path


def noise(n: int, seed: int = 1, deviation: float = 20.0) -> np.ndarray:
    """A thousand transactions a second, and independent noise."""
    return np.random.default_rng(seed).normal(1000.0, deviation, n)


def test_a_level_is_steady_from_its_first_second() -> None:
    steady = steady_state(noise(300))
    assert (steady.state, steady.begin_s, steady.end_s, steady.warm_up_s) == ("steady", 0, 300, 0)
    assert steady.tps is not None
    assert steady.tps.mean == pytest.approx(1000, abs=5)  # four standard errors
    assert 1 < steady.tps.high - steady.tps.mean < 6


def test_warm_up_is_cut_off_and_said() -> None:
    values = noise(300)
    values -= 600 * np.exp(-np.arange(300) / 12)
    steady = steady_state(values)
    assert steady.state == "steady"
    assert 20 <= steady.warm_up_s <= 90
    assert steady.begin_s == steady.warm_up_s
    assert steady.tps is not None
    assert steady.tps.mean == pytest.approx(1000, abs=6)
    finding = steadiness(steady, float(values.mean()))
    assert finding.level == "warn"
    assert finding.figure.startswith(f"the first {steady.warm_up_s} of 300 s were still warm-up")
    assert finding.figure.endswith("% fewer than those of the rest")


@pytest.mark.parametrize(
    "course",
    [np.linspace(-100, 100, 300), np.where(np.arange(300) < 210, 0, -200), 150 * np.sin(np.arange(300) / 60)],
    ids=["drift", "a step in the second half", "slow swing"],
)
def test_what_goes_on_changing_is_not_steady(course: np.ndarray) -> None:
    steady = steady_state(noise(300) + course)
    assert (steady.state, steady.tps) == ("not steady", None)
    finding = steadiness(steady, 1000.0)
    assert finding.level == "warn"
    assert finding.figure.startswith("none: ")


def test_too_few_seconds_say_nothing() -> None:
    assert steady_state(noise(SECONDS_MIN)).state != "too short"
    steady = steady_state(noise(SECONDS_MIN - 1))
    assert steady.state == "too short"
    assert steadiness(steady, 1000.0).level == "unknown"


def sawtooth(cycle_s: int, n: int, first: int) -> tuple[np.ndarray, list[int]]:
    """A checkpoint's full pages cost a third, which wears off over the cycle; and the seconds at which they begin."""
    phase = ((np.arange(n) - first) % cycle_s) / cycle_s
    return noise(n, deviation=5.0) * (2 / 3 + phase / 3), list(range(first, n, cycle_s))


def test_checkpoint_cycles_are_counted_whole() -> None:
    values, begins = sawtooth(60, 386, first=25)
    steady = steady_state(values, begins)
    assert (steady.state, steady.cycles, steady.begin_s, steady.end_s) == ("steady", 6, 25, 385)
    assert steady.tps is not None
    truth = 1000 * (2 / 3 + (59 / 60) / 2 / 3)
    assert steady.tps.mean == pytest.approx(truth, rel=0.002)
    assert abs(float(values.mean()) - truth) > 3 * (steady.tps.high - steady.tps.mean)
    assert "6 whole checkpoint cycles" in steadiness(steady, truth).figure


def test_cycles_of_unequal_length_weigh_what_they_last() -> None:
    lengths = [50, 70, 40, 80, 60]
    begins = [0, *np.cumsum(lengths).tolist()]
    rates = [1000.0, 900.0, 1050.0, 880.0, 950.0]
    values = np.concatenate([np.full(length, rate) for length, rate in zip(lengths, rates, strict=True)] + [[1.0]])
    steady = steady_state(values, begins)
    assert steady.tps is not None
    assert steady.tps.mean == pytest.approx(float(values[:-1].mean()))
    assert steady.cycles == len(lengths)


def test_too_few_whole_cycles_say_nothing() -> None:
    values, begins = sawtooth(60, 60 * CYCLES_MIN + 10, first=20)
    steady = steady_state(values, begins)
    assert steady.state == "too short"
    assert steady.why == f"{len(values)} s hold {CYCLES_MIN - 1} whole checkpoint cycles, and {CYCLES_MIN} are needed"


@settings(max_examples=40)
@given(
    values=st.lists(st.floats(0, 1e6), min_size=0, max_size=120),
    begins=st.lists(st.integers(-10, 130), max_size=12),
)
def test_every_series_has_an_answer(values: list[float], begins: list[int]) -> None:
    steady = steady_state(np.array(values), begins)
    assert isinstance(steady, Steady)
    assert (steady.tps is not None) == (steady.state == "steady")
    assert 0 <= steady.begin_s <= steady.end_s <= len(values)
    assert steadiness(steady, 1.0).figure


def test_the_same_series_has_the_same_answer() -> None:
    assert steady_state(noise(100)) == steady_state(noise(100))


def test_a_long_run_is_judged_by_its_whole_cycles(tmp_path: Path) -> None:
    """A checkpoint every 30 s from the 12th on: in 300 s nine whole cycles."""
    comparison = summarise(make_experiment(tmp_path, Plan(arms=(GP3,), replicates=1, measure_s=300)))
    run = comparison.arms[0].replicates[0].figures
    assert (run.steady.state, run.steady.cycles, run.steady.begin_s) == ("steady", 9, 13)
    assert run.steady.tps is not None
    assert run.steady.tps.mean == pytest.approx(run.work_per_s, rel=0.03)


def test_a_run_without_a_transaction_has_an_answer_too(tmp_path: Path) -> None:
    comparison = summarise(make_experiment(tmp_path, Plan(arms=(replace(GP3, tps=0.0),), replicates=1, measure_s=300)))
    assert comparison.arms[0].replicates[0].figures.steady.state == "steady"
