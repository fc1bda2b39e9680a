"""The documents' formulas, with the documents' own examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.advise.metrics import cloudwatch

positive = st.floats(min_value=1e-3, max_value=1e12)


def test_the_whitepapers_volume_of_100_gb_bursts_for_2000_seconds() -> None:
    """5.4 million credits, a burst of 3,000 and a baseline of 300: its own example, and the guide's table."""
    assert cloudwatch.burst_duration_s(5_400_000, 3_000, 300) == 2_000


@pytest.mark.parametrize(
    ("size_gib", "burst_s", "refill_s"),
    [(33, 1_862, 54_000), (100, 2_000, 18_000), (334, 2_703, 5_389), (750, 7_200, 2_400)],
)
def test_the_guides_table_of_gp2(size_gib: int, burst_s: int, refill_s: int) -> None:
    """The guide rounds to seconds (and 33.33 GiB, its first row, to 100 IOPS)."""
    baseline = max(100, 3 * size_gib)
    assert cloudwatch.burst_duration_s(5_400_000, 3_000, baseline) == pytest.approx(burst_s, abs=0.5)
    assert cloudwatch.refill_duration_s(5_400_000, baseline) == pytest.approx(refill_s, abs=0.5)


def test_a_volume_whose_baseline_is_its_burst_spends_no_credits() -> None:
    assert cloudwatch.burst_duration_s(5_400_000, 3_000, 3_000) is None


def test_bandwidth_and_averages_are_those_of_the_console() -> None:
    assert cloudwatch.bandwidth_kib_per_s(61_440_000, 60) == 1000
    assert cloudwatch.average_latency_ms(total_time_s=30, operations=60_000) == 0.5
    assert cloudwatch.average_size_kib(8192 * 7, 7) == 8
    assert cloudwatch.iops(180_000, 60) == 3_000
    assert cloudwatch.throughput_bytes_per_s(2_000, 256 * 1024) == 500 * 2**20
    assert cloudwatch.utilisation_percent(idle_time_s=15, period_s=60) == 75
    assert cloudwatch.provisioned_percent(8_000, 16_000) == 50


def test_no_operations_have_no_latency_and_no_size() -> None:
    assert cloudwatch.average_latency_ms(0.0, 0) is None
    assert cloudwatch.average_size_kib(0, 0) is None
    assert cloudwatch.iops(0, 0) is None


def test_a_queue_is_too_long_above_one_for_every_1000_iops() -> None:
    assert cloudwatch.queue_length_wanted(3_000) == 3
    assert not cloudwatch.is_queue_too_long(3.0, 3_000)
    assert cloudwatch.is_queue_too_long(3.01, 3_000)


def test_credits_that_grow_are_not_spent() -> None:
    assert cloudwatch.credits_last_s(50, 49, 60) is None
    assert cloudwatch.credits_last_s(50, 50, 60) is None


@given(balance=positive, spent=positive, period_s=positive)
def test_credits_last_as_long_as_their_spending_says(balance: float, spent: float, period_s: float) -> None:
    lasts_s = cloudwatch.credits_last_s(balance, balance + spent, period_s)
    before = balance + spent
    if before > balance:  # a balance of 1e12 does not notice a thousandth
        assert lasts_s is not None
        assert lasts_s * (before - balance) == pytest.approx(balance * period_s)


@given(balance=positive, burst=st.integers(1, 3000), baseline=st.integers(1, 3000))
def test_credits_are_gone_when_the_duration_is_over(balance: float, burst: int, baseline: int) -> None:
    duration_s = cloudwatch.burst_duration_s(balance, burst, baseline)
    if duration_s is None:
        assert baseline >= burst
    else:
        assert balance - (burst - baseline) * duration_s == pytest.approx(0, abs=balance * 1e-9)


@given(operations=st.integers(1, 10**9), latency_ms=st.floats(0.01, 1e4), period_s=st.floats(1, 3600))
def test_the_queue_is_what_littles_law_says(operations: int, latency_ms: float, period_s: float) -> None:
    """Total time over the period is the mean queue: the formulas agree with each other."""
    total_s = operations * latency_ms / 1e3
    per_second = cloudwatch.iops(operations, period_s)
    mean_ms = cloudwatch.average_latency_ms(total_s, operations)
    assert per_second is not None and mean_ms is not None
    assert per_second * mean_ms / 1e3 == pytest.approx(total_s / period_s)
