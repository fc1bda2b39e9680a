"""Quantile tables keep the mean and the body of what was measured, and are what the model accepts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgdyno.advise.twin.fio import PROBABILITIES_PPM, LatencyDistribution, probabilities_ppm, table_mean_ns, table_ns
from tests.twin.synthetic import bins

counts = st.dictionaries(st.integers(1, 10**9), st.integers(1, 1000), min_size=1, max_size=60)


@settings(max_examples=100)
@given(found=counts, less_ns=st.floats(0, 10**9))
def test_a_table_never_descends_and_is_never_negative(found: dict[int, int], less_ns: float) -> None:
    distribution = LatencyDistribution.of_bins({str(value): count for value, count in found.items()})
    ppm = probabilities_ppm(distribution.total)
    table = table_ns(distribution, less_ns, ppm)
    assert len(table) == len(ppm) and table == sorted(table) and table[0] >= 0
    assert ppm[0] == 0 and ppm[-1] == 1_000_000 and list(ppm) == sorted(set(ppm))


@pytest.mark.parametrize("spread", [0.2, 0.5, 1.0])
def test_a_table_has_the_mean_of_a_long_tailed_law(spread: float) -> None:
    times = np.random.default_rng(1).lognormal(np.log(300_000), spread, 20_000)
    distribution = bins(times)
    table = table_ns(distribution, 0, probabilities_ppm(distribution.total))
    # Straight lines between points of a convex tail lie above it; with these points by 4 % at the widest law, whose 99th
    # percentile is ten times its median.
    assert table_mean_ns(table, PROBABILITIES_PPM) == pytest.approx(times.mean(), rel=0.05)
    for share in (0.1, 0.5, 0.9):
        at = table[PROBABILITIES_PPM.index(round(share * 1e6))]
        assert at == pytest.approx(np.quantile(times, share), rel=0.03)


def test_one_stall_does_not_stretch_the_last_percent() -> None:
    """A line from the 99th percentile to the largest value would put 0.5 % of half a second into every mean."""
    bins = LatencyDistribution.of_bins({"100000": 9_999, "500000000": 1})
    table = table_ns(bins, 0, probabilities_ppm(bins.total))
    assert table_mean_ns(table, probabilities_ppm(bins.total)) == pytest.approx(bins.mean_ns, rel=0.02)


def test_few_samples_say_nothing_of_rare_times() -> None:
    assert probabilities_ppm(100)[-2:] == (950_000, 1_000_000)
    assert probabilities_ppm(10_000) == PROBABILITIES_PPM


@settings(max_examples=50)
@given(counts, counts)
def test_the_sum_of_two_times_has_the_sum_of_their_means(one: dict[int, int], other: dict[int, int]) -> None:
    first, second = (LatencyDistribution.of_bins({str(v): c for v, c in each.items()}) for each in (one, other))
    both = first.plus(second)
    assert both.mean_ns == pytest.approx(first.mean_ns + second.mean_ns, rel=1e-9)
    assert both.total == pytest.approx(first.total, abs=1)
