"""What stands in the cells of the page's tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.report.summary import summary_rows
from pgdyno.report.volumes import volume_rows

from ..analysis.synthetic import GP3, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("iops_limit", "burst_iops", "said"), [(3000, None, "(3,000)"), (1500, 3000, "(1,500, 3,000 on credits)")]
)
def test_a_limit_says_what_credits_raise_it_to(
    tmp_path: Path, iops_limit: int, burst_iops: int | None, said: str
) -> None:
    arm = replace(GP3, iops_limit=iops_limit, burst_iops=burst_iops)
    rows = volume_rows(summarise(make_experiment(tmp_path, Plan(arms=(arm,), replicates=1, measure_s=20))))
    assert [row.cells[0].partition(" ")[2] for row in rows] == [said]


def test_each_percentile_stands_above_how_far_that_of_a_run_may_be_off(tmp_path: Path) -> None:
    rows = summary_rows(summarise(make_experiment(tmp_path, Plan(replicates=3, measure_s=20))))
    titles = [row.title for row in rows]
    for name in ("median", "p95", "p99"):
        place = titles.index(f"{name} of a run, 95 % interval, ms")
        assert titles[place - 1].endswith(f", {name}, ms")
        for value, ends in zip(rows[place - 1].cells, rows[place].cells, strict=True):
            low, _, high = ends.partition(" to ")
            assert float(low) <= float(value) <= float(high), (value, ends)
