"""Differences of cumulative counters over the phase that counts."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.analysis.figures import EDGE_TOLERANCE_NS, CounterSamples

SECOND_NS = 1_000_000_000


def counters(times_s: list[float], values: list[int]) -> CounterSamples:
    """Samples of one counter."""
    return CounterSamples.of(pa.table({"t_ns": [round(t * SECOND_NS) for t in times_s], "ops": values}))


def test_edges_between_samples_are_interpolated() -> None:
    samples = counters([0, 1, 2, 3], [0, 10, 30, 60])
    assert samples.delta("ops", SECOND_NS // 2, 5 * SECOND_NS // 2) == pytest.approx(45 - 5)


def test_a_lost_sample_costs_nothing_inside_the_phase() -> None:
    whole = counters([0, 1, 2, 3, 4], [0, 100, 200, 350, 400])
    holed = counters([0, 1, 3, 4], [0, 100, 350, 400])
    span = (SECOND_NS, 4 * SECOND_NS)
    assert whole.delta("ops", *span) == holed.delta("ops", *span) == 300


def test_nothing_is_said_where_nothing_was_sampled() -> None:
    samples = counters([0, 1, 2], [0, 1, 2])
    late = 3 * SECOND_NS + EDGE_TOLERANCE_NS
    assert samples.delta("ops", 0, late) is None
    assert samples.mean_rate("ops", 0, late) is None
    assert samples.delta("absent", 0, SECOND_NS) is None
    assert counters([0], [7]).delta("ops", 0, 0) is None


def test_order_of_rows_does_not_matter() -> None:
    assert counters([2, 0, 1], [20, 0, 10]).delta("ops", 0, 2 * SECOND_NS) == 20


@given(st.integers(10**14, 10**17), st.lists(st.integers(0, 10**9), min_size=3, max_size=30))
def test_rate_is_exact_however_long_the_host_has_been_up(boot_ns: int, growth: list[int]) -> None:
    times = [boot_ns + second * SECOND_NS for second in range(len(growth))]
    total = [sum(growth[: place + 1]) for place in range(len(growth))]
    result = CounterSamples.of(pa.table({"t_ns": times, "ops": total}))
    expected = (total[-1] - total[0]) / (len(growth) - 1)
    assert result.mean_rate("ops", times[0], times[-1]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_statistics_that_begin_again_after_a_crash_continue() -> None:
    samples = pa.table({"t_end_ns": [t * SECOND_NS for t in range(5)], "wal_bytes": [100, 150, 20, 50, 50]})
    counter_samples = CounterSamples.of_server(samples)
    assert counter_samples.delta("wal_bytes", 0, 4 * SECOND_NS) == 50 + 20 + 30
    assert counter_samples.columns["wal_bytes"].tolist() == [100, 150, 170, 200, 200]
