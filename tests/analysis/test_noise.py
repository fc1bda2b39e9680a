"""What variation is normal: known layouts, and how often two further runs stay below it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pgdyno.analysis.ratio import floor_of
from pgdyno.analysis.statistics import t_quantile

if TYPE_CHECKING:
    from pgdyno.analysis.compare import Comparison

SERIES = 4000


def test_arms_and_blocks_that_only_add_up_have_no_noise() -> None:
    floor = floor_of([[arm + block for block in (0.0, 0.3, -0.2)] for arm in (6.0, 7.0, 8.0)])
    assert floor is not None
    assert floor.degrees == 4
    assert floor.difference == pytest.approx(0.0, abs=1e-9)


def test_one_arm_has_the_spread_around_its_mean() -> None:
    floor = floor_of([[0.00, 0.02, 0.04]])
    assert floor is not None
    assert floor.degrees == 2
    assert floor.difference == pytest.approx(math.expm1(t_quantile(2) * 0.02 * math.sqrt(2)))


def test_too_few_runs_have_no_floor() -> None:
    assert floor_of([[0.0]]) is None
    assert floor_of([[0.0, 0.1]]) is None
    assert floor_of([[0.0, 0.1], [0.2, 0.1]]) is None
    assert floor_of([[], []]) is None


@pytest.mark.parametrize(("arms", "blocks"), [(2, 3), (2, 5), (4, 3), (1, 5)])
def test_of_twenty_further_pairs_nineteen_stay_below(arms: int, blocks: int) -> None:
    rng = np.random.default_rng(20261124)
    below = 0
    for _ in range(SERIES):
        drift = rng.normal(0.0, 0.2, blocks) if arms > 1 else np.zeros(blocks)
        logs = rng.normal(0.0, 0.03, (arms, blocks)) + drift + np.arange(arms)[:, None]
        floor = floor_of(logs.tolist())
        assert floor is not None
        below += abs(float(np.diff(rng.normal(0.0, 0.03, 2))[0])) < math.log1p(floor.difference)
    assert 0.93 <= below / SERIES <= 0.97


def test_experiment_has_a_floor_near_what_its_runs_scatter_by(comparison: Comparison) -> None:
    """Two arms, three replicates of 1 %: two degrees of freedom are a rough guess, between a tenth and ten times it."""
    assert comparison.noise_floor is not None
    assert comparison.noise_floor.degrees == 2
    assert 0.001 < comparison.noise_floor.difference < 0.25
