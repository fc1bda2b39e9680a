"""Different experiments with the same arms beside each other."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import TIMES, several, summarise
from pgdyno.base.errors import InputError

from .synthetic import GP3, IO2BX, Arm, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.compare import Comparison


def _made(root: Path, seed: int, *arms: Arm) -> Comparison:
    plan = Plan(arms=tuple(replace(arm, spread=0.002) for arm in arms), measure_s=20, seed=seed)
    return summarise(make_experiment(root, plan))


def test_each_experiment_has_its_ratio_and_all_have_a_geometric_mean(tmp_path: Path) -> None:
    result = several(
        [_made(tmp_path, seed, GP3, replace(IO2BX, tps=times * GP3.tps)) for seed, times in ((1, 2), (2, 8))]
    )
    main, *latencies = result.rows
    ratios = [gain.mean for gain in main.gains if gain is not None]
    assert ratios == pytest.approx([2, 8], rel=0.05)  # noise of the made-up runs
    assert main.mean == pytest.approx(math.sqrt(ratios[0] * ratios[1]))
    assert main.figure == "transactions per second"
    assert len(latencies) == len(TIMES)
    assert result.invalid == ()


def test_less_time_is_better(tmp_path: Path) -> None:
    comparison = _made(tmp_path, 1, GP3, IO2BX)
    base, other = comparison.arms
    [row] = [row for row in several([comparison]).rows if "reads" in row.figure]
    assert row.gains[0] is not None
    read_ms = [arm.volumes["data"].read_ms_mean for arm in (base, other)]
    assert read_ms[0] is not None
    assert read_ms[1] is not None
    assert row.gains[0].mean == pytest.approx(
        read_ms[0] / read_ms[1], rel=0.02
    )  # a mean of ratios, and a ratio of means


def test_invalid_runs_are_left_out_and_said(tmp_path: Path) -> None:
    late = replace(IO2BX, late_share=0.9, overrun_share=0.9)
    result = several([_made(tmp_path, 1, GP3, IO2BX), _made(tmp_path, 2, GP3, late)])
    assert len(result.invalid) == 1
    assert result.invalid[0].startswith(IO2BX.written)
    assert all(row.gains[0] is not None and row.gains[1] is None for row in result.rows)


def test_experiments_without_two_arms_in_common_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no two arms in common"):
        several([_made(tmp_path, 1, GP3, IO2BX), _made(tmp_path, 2, GP3)])
