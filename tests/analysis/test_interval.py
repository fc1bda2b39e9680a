"""Intervals: known values, and how often they cover the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.analysis.statistics import (
    Estimate,
    detectable_difference,
    distinguishable,
    ratio_interval,
    t_interval,
    t_quantile,
)

SERIES = 4000
"""Simulated experiments: the standard error of a coverage of 95 % is then 0.34 %."""


@pytest.mark.parametrize(("degrees", "expected"), [(1, 12.7062), (2, 4.3027), (9, 2.2622), (99, 1.9842)])
def test_quantile_is_the_tabled_one(degrees: int, expected: float) -> None:
    assert t_quantile(degrees) == pytest.approx(expected, abs=1e-4)


def test_interval_of_three_known_values() -> None:
    estimate = t_interval([10.0, 12.0, 14.0])
    half = 4.302653 * 2.0 / math.sqrt(3)
    assert estimate.mean == 12.0
    assert estimate.low == pytest.approx(12 - half)
    assert estimate.high == pytest.approx(12 + half)
    assert estimate.n == 3


def test_one_replicate_has_no_interval_and_distinguishes_nothing() -> None:
    assert t_interval([5.0]) == Estimate(5.0, None, None, 1)
    ratio = ratio_interval([(3000.0, 1.0)])
    assert ratio.mean == pytest.approx(3000.0)
    assert not distinguishable(ratio)
    assert detectable_difference(ratio) is None


def test_no_value_and_values_that_are_not_positive_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        t_interval([])
    with pytest.raises(ValueError, match="positive"):
        ratio_interval([(1.0, 0.0)])


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=2, max_size=10))
def test_a_ratio_and_its_inverse_agree(pairs: list[tuple[float, float]]) -> None:
    forward, backward = ratio_interval(pairs), ratio_interval([(under, over) for over, under in pairs])
    assert forward.low is not None
    assert backward.high is not None
    assert forward.mean == pytest.approx(1 / backward.mean)
    assert math.log(forward.low) == pytest.approx(-math.log(backward.high), abs=1e-9)


def test_pairing_takes_out_what_blocks_share() -> None:
    blocks = [(3.01 * host, 1.0 * host) for host in (700.0, 1000.0, 1400.0)]
    ratio = ratio_interval(blocks)
    assert ratio.mean == pytest.approx(3.01)
    assert detectable_difference(ratio) == pytest.approx(0.0, abs=1e-9)


def _coverage(n: int, sigma: float, seed: int) -> float:
    """Share of series of ``n`` lognormal replicates whose interval holds their true mean, with the real function."""
    draws = np.random.default_rng(seed).lognormal(0.0, sigma, (SERIES, n))
    truth = math.exp(sigma**2 / 2)
    covered = 0
    for values in draws.tolist():
        estimate = t_interval(values)
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= truth <= estimate.high
    return covered / SERIES


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("sigma", [0.02, 0.10, 0.20])
def test_interval_of_the_mean_is_calibrated(n: int, sigma: float) -> None:
    """Replicates of a benchmark scatter by 1 to 10 %; at 20 % the skew still does not spoil the interval."""
    assert 0.93 <= _coverage(n, sigma, seed=20261121) <= 0.97


@pytest.mark.parametrize("n", [3, 5, 10])
def test_interval_of_the_ratio_is_calibrated(n: int) -> None:
    rng = np.random.default_rng(20261122)
    host = rng.lognormal(0.0, 0.3, (SERIES, n))
    over, under = (factor * host * rng.lognormal(0.0, 0.08, (SERIES, n)) for factor in (3.0, 1.0))
    covered = 0
    for a, b in zip(over.tolist(), under.tolist(), strict=True):
        ratio = ratio_interval(list(zip(a, b, strict=True)))
        assert ratio.low is not None
        assert ratio.high is not None
        covered += ratio.low <= 3.0 <= ratio.high
    assert 0.93 <= covered / SERIES <= 0.97


def test_equal_arms_are_told_apart_in_one_of_twenty() -> None:
    rng = np.random.default_rng(20261123)
    draws = rng.lognormal(0.0, 0.05, (SERIES, 3, 2))
    false = sum(distinguishable(ratio_interval([(a, b) for a, b in pairs])) for pairs in draws.tolist())
    assert 0.03 <= false / SERIES <= 0.07
