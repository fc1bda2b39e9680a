"""Ratios of runs whose machine was not always as fast."""

from __future__ import annotations

import os
import random

import pytest

from pgdyno.analysis.interval import ratio_interval
from tests.equivalence.synthetic import blocks
from tools.equivalence import pace
from tools.equivalence.ratio import PAIRS_MIN, Pair, at_equal_pace
from tools.equivalence.record import half_width


def test_what_the_machine_did_is_taken_out() -> None:
    pairs = [block.against() for block in blocks(12, native=0.98, restless=0.1)]
    plain = ratio_interval([(run[0], other[0]) for run, other in pairs])
    found = at_equal_pace(pairs)
    assert half_width(found) < half_width(plain) / 5
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.98 < found.high


@pytest.mark.parametrize("truth", [1.0, 0.97])
@pytest.mark.parametrize("slope", [0.0, 0.7])
def test_the_interval_covers_the_truth_as_often_as_it_says(truth: float, slope: float) -> None:
    draws = random.Random(f"{truth} {slope}")

    def pair() -> Pair:
        mine, others = (draws.lognormvariate(0, 0.08) for _ in range(2))
        noise = draws.lognormvariate(0, 0.02)
        return (1000 * truth * noise * mine**slope, mine), (1000 * others**slope, others)

    covered = 0
    for _ in range(400):
        found = at_equal_pace([pair() for _ in range(10)])
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    # Of 400 at 95 %: 380, and three standard deviations of a binomial are 13.
    assert abs(covered - 380) <= 13


def test_too_few_pairs_and_equal_paces_leave_the_plain_ratio() -> None:
    few = [block.against() for block in blocks(PAIRS_MIN - 1, restless=0.1)]
    alike = [block.against() for block in blocks(12)]
    for pairs in (few, alike):
        assert at_equal_pace(pairs) == ratio_interval([(run[0], other[0]) for run, other in pairs])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to go ahead of every other process")
def test_the_pace_is_measured_while_a_block_lasts() -> None:
    with pace.kept(max(os.sched_getaffinity(0))) as found:
        assert found.pieces_per_s == 0
    # A piece takes a fraction of a millisecond on anything that runs this; 50 ms would be another piece.
    assert 20 < found.pieces_per_s < 1e6
