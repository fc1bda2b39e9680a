"""The interval of a mean of values that hang together; how often it holds is asked in tests/calibration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.analysis.statistics import series_mean, t_interval


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9))
def test_of_few_values_it_is_student_s_interval(values: list[float]) -> None:
    mean, wanted = series_mean(np.array(values)), t_interval(values)
    assert wanted.low is not None
    assert wanted.high is not None
    scale = max(1.0, *map(abs, values))
    assert mean.mean == pytest.approx(wanted.mean, abs=1e-9 * scale)
    assert mean.low == pytest.approx(wanted.low, abs=1e-6 * scale)
    assert mean.high == pytest.approx(wanted.high, abs=1e-6 * scale)


@given(shift=st.floats(-1e4, 1e4), factor=st.floats(0.01, 100))
def test_it_follows_the_unit(shift: float, factor: float) -> None:
    values = np.sin(np.arange(50.0)) + np.arange(50) % 7
    mean, other = series_mean(values), series_mean(values * factor + shift)
    assert other.high - other.low == pytest.approx((mean.high - mean.low) * factor, rel=1e-6)
    assert other.n_effective == pytest.approx(mean.n_effective, rel=1e-4)


def test_independent_values_are_worth_themselves_and_alike_ones_less() -> None:
    rng = np.random.default_rng(20261125)
    alone, alike = [], []
    for _ in range(200):
        noise = rng.normal(size=400)
        smooth = np.convolve(noise, np.ones(10) / 10, mode="valid")
        alone.append(series_mean(noise).long_run_variance)
        alike.append(series_mean(smooth).n_effective)
    assert float(np.mean(alone)) == pytest.approx(1.0, abs=0.1)  # eight terms in 200 series: 3.5 %
    assert 25 < float(np.median(alike)) < 60  # ten neighbours share what they are made of: 39 are left of 391


def test_a_constant_has_no_spread_and_one_value_no_interval() -> None:
    mean = series_mean(np.full(30, 7.0))
    assert (mean.mean, mean.low, mean.high, mean.n_effective) == (7.0, 7.0, 7.0, 30.0)
    with pytest.raises(ValueError, match="two values"):
        series_mean(np.array([1.0]))
