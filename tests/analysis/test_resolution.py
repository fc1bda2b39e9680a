"""What replicates could have shown: against tables, against simulation, at its edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.analysis.statistics import (
    POWER,
    Estimate,
    detectable_difference,
    distinguishable,
    equivalent_within,
    ratio_interval,
    replicates_needed,
    t_quantile,
)

SERIES = 4000
"""Simulated experiments: the standard error of a share of 80 % is then 0.6 %, of one of 5 % 0.3 %."""


def estimate(log_mean: float, error: float, n: int) -> Estimate:
    """The ratio of ``n`` pairs with that standard error of the logarithm."""
    half = t_quantile(n - 1) * error
    return Estimate(math.exp(log_mean), math.exp(log_mean - half), math.exp(log_mean + half), n, n - 1)


def test_two_one_sided_tests_are_the_90_percent_interval() -> None:
    """Tabled: t of 4 degrees, one-sided 5 %, is 2.1318."""
    assert equivalent_within(estimate(0.0, 0.01, 5)) == pytest.approx(math.expm1(0.021318), rel=1e-4)
    assert equivalent_within(estimate(0.02, 0.01, 5)) == pytest.approx(math.expm1(0.041318), rel=1e-4)


@pytest.mark.parametrize(("n", "shift"), [(3, 5.65), (5, 3.76), (10, 3.16), (30, 2.90)])
def test_detectable_difference_is_the_noncentral_t_s(n: int, shift: float) -> None:
    """The shift in standard errors at 80 %, rounded, as a simulation of a million t statistics gives it."""
    value = detectable_difference(estimate(0.0, 0.01, n))
    assert value is not None
    assert math.log1p(value) / 0.01 == pytest.approx(shift, abs=0.1)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_detectable_difference_is_found_four_times_in_five(n: int) -> None:
    sigma = 0.02
    wanted = detectable_difference(estimate(0.0, sigma / math.sqrt(n), n))
    assert wanted is not None
    logs = np.random.default_rng(20261122).normal(math.log1p(wanted), sigma, (SERIES, n))
    number = sum(distinguishable(ratio_interval([(math.exp(item), 1.0) for item in row])) for row in logs.tolist())
    assert POWER - 0.025 <= number / SERIES <= POWER + 0.025


def test_a_difference_at_the_margin_is_called_equivalent_once_in_twenty() -> None:
    margin, n = 0.03, 5
    logs = np.random.default_rng(20261123).normal(math.log1p(margin), 0.008, (SERIES, n))
    called = [equivalent_within(ratio_interval([(math.exp(item), 1.0) for item in row])) for row in logs.tolist()]
    share = sum(within is not None and within <= margin for within in called) / SERIES
    assert 0.035 <= share <= 0.065


def test_replicates_needed_find_it_and_one_fewer_does_not() -> None:
    ratio = estimate(0.0, 0.02, 4)
    needed = replicates_needed(ratio, 0.03)
    assert needed is not None
    deviation = 0.02 * math.sqrt(4)
    enough, fewer = (detectable_difference(estimate(0.0, deviation / math.sqrt(n), n)) for n in (needed, needed - 1))
    assert enough is not None
    assert fewer is not None
    assert enough <= 0.03 < fewer


def test_replicates_without_any_spread_need_two() -> None:
    assert replicates_needed(estimate(0.0, 0.0, 3)) == 2


def test_one_replicate_says_nothing() -> None:
    ratio = ratio_interval([(3.0, 1.0)])
    assert (equivalent_within(ratio), detectable_difference(ratio), replicates_needed(ratio)) == (None, None, None)


@given(log_mean=st.floats(-0.5, 0.5), error=st.floats(1e-4, 0.2), n=st.integers(2, 30))
def test_a_ratio_and_its_inverse_are_equivalent_alike(log_mean: float, error: float, n: int) -> None:
    forward, backward = (equivalent_within(estimate(sign * log_mean, error, n)) for sign in (1, -1))
    assert forward == pytest.approx(backward)
    assert forward is not None
    assert forward >= math.expm1(abs(log_mean)) * (1 - 1e-9)
