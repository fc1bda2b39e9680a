"""Main effects: known values, calibrated intervals, and hints of dependence that are seldom false."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.analysis.factors import main_effects
from pgdyno.analysis.statistics import distinguishable, ratio_interval, stratified_ratio

from .synthetic import factorial, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

SERIES = 1500
"""Simulated experiments: the standard error of a coverage of 95 % is then 0.56 %."""


def arms_of(tps: np.ndarray[Any, Any]) -> list[Any]:
    """Arms of a factorial as the effects read them: an axis for each factor, the last one for the blocks."""
    return [
        SimpleNamespace(
            levels=levels,
            by_block={("one", block): float(value) for block, value in enumerate(tps[levels], start=1) if value > 0},
        )
        for levels in np.ndindex(*tps.shape[:-1])
    ]


def factors_of(*counts: int) -> list[Any]:
    """Factors with so many levels."""
    return [SimpleNamespace(levels=tuple(map(str, range(count)))) for count in counts]


def test_effects_are_the_ratios_that_were_made_up() -> None:
    tps = np.full((2, 3, 2), 100.0)
    tps[1] *= 2.0
    tps[:, 1] *= 1.5
    tps[:, 2] *= 0.5
    tps[..., 1] *= 0.7  # a block in which the host was slow: paired away
    effects = main_effects(factors_of(2, 3), arms_of(tps))
    assert [(effect.factor, effect.level, effect.combinations) for effect in effects] == [
        (0, 1, 3),
        (1, 1, 2),
        (1, 2, 2),
    ]
    assert [effect.estimate.mean for effect in effects if effect.estimate] == pytest.approx([2.0, 1.5, 0.5])
    assert all(effect.within == () for effect in effects)


def test_one_factor_has_no_effects_but_its_ratios() -> None:
    assert main_effects(factors_of(3), arms_of(np.full((3, 2), 100.0))) == ()


def test_one_replicate_distinguishes_nothing() -> None:
    (effect, _) = main_effects(factors_of(2, 2), arms_of(np.array([[[1.0], [1.0]], [[9.0], [9.0]]])))
    assert effect.estimate is not None
    assert (effect.estimate.low, effect.estimate.high) == (None, None)
    assert not effect.distinguishable


def test_a_run_that_is_missing_takes_its_pair_with_it() -> None:
    tps = np.full((2, 2, 3), 100.0)
    tps[1] = 300.0
    tps[1, 1, 2] = math.nan
    effect = main_effects(factors_of(2, 2), arms_of(tps))[0]
    assert effect.estimate is not None
    assert effect.estimate.n == 5
    assert effect.estimate.mean == pytest.approx(3.0)


def test_levels_that_never_meet_have_no_effect() -> None:
    tps = np.full((2, 2, 2), 100.0)
    tps[1] = math.nan
    effect = main_effects(factors_of(2, 2), arms_of(tps))[0]
    assert effect.estimate is None
    assert not effect.distinguishable


def test_one_stratum_is_the_paired_ratio() -> None:
    pairs = [(3.1, 1.0), (2.9, 1.1), (3.3, 0.9)]
    paired, strata = ratio_interval(pairs), stratified_ratio([[math.log(over / under) for over, under in pairs]])
    assert (strata.mean, strata.low, strata.high) == pytest.approx((paired.mean, paired.low, paired.high))


def test_nothing_to_take_a_ratio_of_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        stratified_ratio([[], []])


def test_strata_without_spread_are_not_told_apart_by_rounding() -> None:
    estimate = stratified_ratio([[0.0, 0.0], [0.0, 0.0]])
    assert (estimate.mean, estimate.low, estimate.high) == pytest.approx((1.0, 1.0, 1.0))
    assert not distinguishable(estimate)


@pytest.mark.parametrize("replicates", [2, 3, 5])
@pytest.mark.parametrize("combinations", [2, 8])
def test_interval_is_calibrated_though_strata_scatter_differently(replicates: int, combinations: int) -> None:
    """Spreads from 1 to 8 %: a saturated volume scatters less than a busy CPU. It may be a little wide, never narrow."""
    rng = np.random.default_rng(20261124)
    sigma = np.geomspace(0.01, 0.08, combinations)[:, None]
    truth = rng.normal(0.3, 0.5, (combinations, 1))
    covered = 0
    for draws in rng.normal(0.0, 1.0, (SERIES, combinations, replicates)):
        estimate = stratified_ratio((truth + sigma * draws).tolist())
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= math.exp(truth.mean()) <= estimate.high
    assert 0.935 <= covered / SERIES <= 0.995


def test_strata_of_a_single_value_add_no_degrees_of_freedom() -> None:
    """A budget that ended within a block leaves one combination with two runs and nine with one each."""
    estimate = stratified_ratio([[0.01, -0.01], *[[0.0]] * 9])
    assert estimate.degrees == pytest.approx(1.0)
    assert stratified_ratio([[0.01, -0.01], [0.01, -0.01], [0.0], [0.0]]).degrees == pytest.approx(2.0)
    rng = np.random.default_rng(20261129)
    covered = 0
    for draws in rng.normal(0.0, 0.05, (SERIES, 11)).tolist():
        result = stratified_ratio([draws[:2], *([value] for value in draws[2:])])
        assert result.low is not None
        assert result.high is not None
        covered += result.low <= 1 <= result.high
    assert 0.93 <= covered / SERIES <= 0.97  # exact here: 3.5 standard errors either way


def test_a_hint_of_dependence_is_false_in_one_experiment_of_twenty() -> None:
    rng = np.random.default_rng(20261125)
    base = np.exp(
        rng.normal(0, 0.4, (2, 1, 1, 1)) + rng.normal(0, 0.4, (1, 2, 1, 1)) + rng.normal(0, 0.4, (1, 1, 2, 1))
    )
    false = 0
    for _ in range(400):
        tps = 1000 * base * rng.lognormal(0, 0.03, (2, 2, 2, 3))
        false += any(effect.within for effect in main_effects(factors_of(2, 2, 2), arms_of(tps)))
    assert false / 400 <= 0.09  # 5 % and three standard errors


def test_a_run_that_hardly_did_anything_hints_at_nothing() -> None:
    """Of 49 questions each is asked so strictly that the interval of two such replicates ends beyond any number."""
    tps = np.full((8, 8, 2), 1000.0)
    tps[1, 1, 1] = 1.0
    effects = main_effects(factors_of(8, 8), arms_of(tps))
    assert len(effects) == 14
    assert not any(effect.within for effect in effects)
    wide = stratified_ratio([[0.0, 7.0]], 0.999)
    assert (wide.low, wide.high) == (0.0, math.inf)


def test_a_dependence_is_seen_and_shown_at_each_level() -> None:
    rng = np.random.default_rng(20261126)
    tps = np.full((2, 2, 3), 1000.0) * rng.lognormal(0, 0.02, (2, 2, 3))
    tps[0, 1] *= 1.5
    effects = main_effects(factors_of(2, 2), arms_of(tps))
    assert [[(within.factor, within.level) for within in effect.within] for effect in effects] == [
        [(1, 0), (1, 1)],
        [(0, 0), (0, 1)],
    ]
    of_second = effects[1].within
    assert of_second[0].estimate.mean == pytest.approx(1.5, rel=0.05)
    assert of_second[1].estimate.mean == pytest.approx(1.0, rel=0.05)


@pytest.fixture(scope="module")
def sixteen(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Four factors of two levels."""
    return summarise(make_experiment(tmp_path_factory.mktemp("sixteen"), factorial(measure_s=20)))


def test_experiment_of_four_factors(sixteen: Comparison) -> None:
    assert len(sixteen.arms) == 16
    assert sixteen.arms[0].label == "gp3 · no wal volume · PG 18.6 · ext4"
    assert [factor.title for factor in sixteen.factors] == ["volume", "wal volume", "PostgreSQL", "file system"]
    volume, wal, version, file_system = sixteen.effects
    assert volume.estimate is not None
    assert volume.estimate.n == 24
    assert version.estimate is not None
    assert version.estimate.mean == pytest.approx(0.9, rel=0.03)
    assert not file_system.distinguishable
    assert [within.factor for within in wal.within] == [0, 0]
    assert version.within == ()


def test_verdict_tells_factors_and_not_arms(sixteen: Comparison) -> None:
    verdict = sixteen.verdict
    assert verdict.startswith("io2bx does 2.")
    assert "which depends on the wal volume." in verdict
    assert "PG 15.18 does 0.8" in verdict or "PG 15.18 does 0.9" in verdict
    assert verdict.endswith("Not distinguishable: xfs and ext4.")


def test_invalid_runs_leave_no_verdict_on_any_factor(tmp_path: Path) -> None:
    plan = factorial(measure_s=20, replicates=2)
    late = (replace(plan.arms[0], late_share=0.5, late_by_us=50_000.0), *plan.arms[1:])
    comparison = summarise(make_experiment(tmp_path, replace(plan, arms=late)))
    assert comparison.verdict.startswith("No verdict: gp3 · no wal volume · PG 18.6 · ext4 is invalid")


def test_an_arm_without_a_finished_run_is_named(tmp_path: Path) -> None:
    plan = factorial(measure_s=20, replicates=1, missing=frozenset({(1, 3)}))
    comparison = summarise(make_experiment(tmp_path, plan))
    assert comparison.absent == (plan.arms[3].name,)
    assert [effect.estimate.n for effect in comparison.effects if effect.estimate] == [7, 7, 7, 7]
