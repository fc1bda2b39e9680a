"""Two arms by any figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.ratio import PairOfArms, by_block, figures_by_name, paired

from .synthetic import Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.arm import ArmSummary
    from pgdyno.analysis.compare import Comparison


def _paired(high: ArmSummary, low: ArmSummary, metric: str) -> PairOfArms:
    of = figures_by_name()[metric].of
    return paired(by_block(high, of), by_block(low, of))


def test_every_figure_of_a_table_can_be_asked_by_its_name(comparison: Comparison) -> None:
    names = figures_by_name()
    assert {name for name in comparison.figures if "." not in name} <= {*names}
    assert {"tps", "nopm", "seconds", "geomean_s", "queue_length"} <= {*names}


def test_the_headlines_ratio_is_that_of_the_comparison(comparison: Comparison) -> None:
    base, other = comparison.arms[:2]
    arms = _paired(other, base, "tps")
    assert arms.ratio == comparison.ratios[0].estimate
    assert arms.high == pytest.approx(other.headline.mean)
    assert arms.low == pytest.approx(base.headline.mean)


def test_another_figure_is_paired_by_the_same_blocks(comparison: Comparison) -> None:
    base, other = comparison.arms[:2]
    arms = _paired(base, other, "read_ms_mean")
    assert arms.ratio is not None
    assert arms.ratio.n == len(base.replicates)
    assert arms.high is not None and arms.low is not None
    assert arms.ratio.mean == pytest.approx(arms.high / arms.low, rel=0.01)  # a mean of ratios, and a ratio of means


def test_runs_without_a_partner_or_without_the_figure_have_no_ratio(tmp_path: Path) -> None:
    plan = Plan(replicates=2, missing=frozenset({(1, 0), (2, 1)}), measure_s=20)
    base, other = summarise(make_experiment(tmp_path, plan)).arms
    alone = _paired(base, other, "tps")
    assert alone.ratio is None
    assert alone.high is not None
    nothing = _paired(base, other, "tpm")
    assert (nothing.high, nothing.low, nothing.ratio) == (None, None, None)
