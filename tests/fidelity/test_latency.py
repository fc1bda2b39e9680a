"""Distributions in fio's bins: percentiles, the distance of two, and the bins themselves."""

from __future__ import annotations

import numpy as np
import pytest

from tools.fidelity.latency import Latency

RNG = np.random.default_rng(5)
VALUES = RNG.gamma(2, 300_000, 100_000).astype(np.int64)


def test_bins_are_fios() -> None:
    """1528 and 1544 ns are the middles of neighbouring bins that fio prints, 32 ns is a bin of its own."""
    latency = Latency.of_values(np.array([32, 1520, 1535, 1536]))
    assert latency.bins() == [(32, 1), (1528, 2), (1544, 1)]
    assert Latency.of_bins(latency.bins()).bins() == latency.bins()


def test_percentiles_are_those_of_the_values_to_a_fraction_of_a_bin() -> None:
    latency = Latency.of_values(VALUES)
    for percent in (1, 50, 90, 99):
        assert latency.percentile_ns(percent) == pytest.approx(np.percentile(VALUES, percent), rel=0.002)
    assert latency.mean_ns == pytest.approx(VALUES.mean(), rel=0.002)


def test_the_distance_is_kolmogorov_smirnovs() -> None:
    latency = Latency.of_values(VALUES)
    assert latency.distance(latency) == 0
    shifted = Latency.of_values(VALUES + 10**9)
    assert latency.distance(shifted) == 1
    half = Latency.of_values(np.concatenate([VALUES, VALUES + 10**9]))
    assert latency.distance(half) == shifted.distance(half) == pytest.approx(0.5)


def test_reads_and_writes_are_counted_together() -> None:
    both = Latency.of_values(VALUES).merged(Latency.of_values(VALUES * 2))
    assert both.total == 2 * len(VALUES)
    assert both.percentile_ns(50) == pytest.approx(np.percentile(np.concatenate([VALUES, VALUES * 2]), 50), rel=0.002)
