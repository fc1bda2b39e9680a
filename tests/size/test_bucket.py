"""When credits are used up: the formula against a bucket that is filled and drained step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.advise.size.demand import first_empty_s
from pgdyno.base.specification import Rate

REPETITIONS = 2000


def step_by_step(rate: Rate, load: list[float], seconds: list[float]) -> float | None:
    """The same bucket, interval by interval, over so many repetitions that it is empty by then or never."""
    missing = now = 0.0
    for _ in range(REPETITIONS):
        for value, length in zip(load, seconds, strict=True):
            net = min(rate.sustained - min(value, rate.maximum), rate.refill_max)
            if net < 0 and missing - net * length > rate.capacity:
                return now + (rate.capacity - missing) / -net
            missing = max(0.0, missing - net * length)
            now += length
    return None


@given(
    load=st.lists(
        st.tuples(st.sampled_from([0.0, 50.0, 100.0, 200.0, 400.0]), st.sampled_from([1.0, 2.0, 60.0])),
        min_size=1,
        max_size=9,
    ),
    capacity=st.sampled_from([10.0, 500.0, 7000.0]),
    refill_max=st.sampled_from([math.inf, 30.0, 4.0]),
)
def test_it_is_empty_when_a_bucket_of_steps_is(
    load: list[tuple[float, float]], capacity: float, refill_max: float
) -> None:
    rate = Rate(100.0, 300.0, capacity, refill_max)
    rates, seconds = [value for value, _ in load], [length for _, length in load]
    expected = step_by_step(rate, rates, seconds)
    value = first_empty_s(rate, np.array(rates), np.array(seconds))
    assert (value is None) == (expected is None)
    assert value is None or value == pytest.approx(expected, rel=1e-9)


def test_gp2_of_100_gib_lasts_2000_s_at_its_burst() -> None:
    """5,400,000 credits / (3,000 - 300): Amazon EC2 User Guide, general-purpose.md, 15 June 2023."""
    gp2 = Rate(300.0, 3000.0, 5.4e6)
    assert first_empty_s(gp2, np.array([3000.0]), np.array([60.0])) == pytest.approx(2000)
    assert gp2.steady_seconds == pytest.approx(2000)
    assert first_empty_s(gp2, np.array([9000.0]), np.array([60.0])) == pytest.approx(2000)  # no more is delivered
    assert first_empty_s(gp2, np.array([300.0]), np.array([60.0])) is None


def test_an_hour_of_burst_a_day_is_earned_back_and_two_hours_are_not() -> None:
    """Of 700 GiB: 2,100 IOPS for ever, and credits for 6,000 s of 3,000."""
    gp2 = Rate(2100.0, 3000.0, 5.4e6)
    seconds = np.full(24, 3600.0)
    for hours, empty in ((1, None), (2, 6000.0)):
        load = np.array([3000.0] * hours + [1000.0] * (24 - hours))
        assert first_empty_s(gp2, load, seconds) == (empty and pytest.approx(empty))


def test_a_bucket_that_loses_a_little_each_time_is_empty_after_many() -> None:
    """51 are taken in one second and 50 come back in the next; 9,950 times that leaves 50, gone in 50/51 of a second."""
    rate = Rate(100.0, 200.0, 10_000.0)
    assert first_empty_s(rate, np.array([151.0, 50.0]), np.ones(2)) == pytest.approx(9950 * 2 + 50 / 51)


def test_without_credits_it_holds_or_it_does_not() -> None:
    flat = Rate(100.0, 100.0)
    assert first_empty_s(flat, np.array([100.0, 20.0]), np.ones(2)) is None
    assert first_empty_s(flat, np.array([101.0, 20.0]), np.ones(2)) == 0.0
    assert not flat.bursts and math.isinf(flat.steady_seconds)
