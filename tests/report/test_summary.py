"""What stands in the cells of the page's tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.report.summary import volume_rows

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
