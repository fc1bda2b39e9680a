"""What a dilated run says of itself: its regime, with the figure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.report import table
from pgdyno.report.document import document
from pgdyno.report.page import html

from .synthetic import GP3, IO2BX, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.finding import Finding


def found(directory: Path, server_share: float, dilation: int) -> Finding | None:
    arm = replace(IO2BX, server_share=server_share, dilation=dilation)
    comparison = summarise(make_experiment(directory, Plan(replicates=1).with_arms(arm)))
    return next((f for f in comparison.arms[0].replicates[0].findings if f.check == "dilation"), None)


def test_only_a_dilated_run_speaks_of_it(tmp_path: Path) -> None:
    assert found(tmp_path, 0.2, 1) is None


@pytest.mark.parametrize(
    ("server_share", "level", "figure"),
    [
        (0.01, "ok", "too short"),
        (0.30, "warn", "too short"),
        (0.90, "warn", "what 16 cores would do"),
    ],
)
def test_the_regime(tmp_path: Path, server_share: float, level: str, figure: str) -> None:
    finding = found(tmp_path, server_share, 8)
    assert finding is not None
    assert (finding.level, figure in finding.figure) == (level, True)


def test_the_figure_is_the_cpu_that_a_real_core_would_have_taken(tmp_path: Path) -> None:
    """IO2BX: 3,000 transactions a second by 32 clients. Half of two cores for 8 host seconds is 8 s of CPU a second."""
    finding = found(tmp_path, 0.5, 8)
    assert finding is not None
    computing_ms = 0.5 * 2 * 8 / 3000 * 1e3 * (1 - 1 / 8)
    share = float(finding.figure.rpartition("up to ")[2].partition(" %")[0]) / 100
    assert share == pytest.approx(computing_ms / (32 / 3000 * 1e3), rel=0.15)


def test_every_output_says_it(tmp_path: Path) -> None:
    arms = tuple(replace(arm, dilation=8) for arm in (GP3, IO2BX))
    comparison = summarise(make_experiment(tmp_path, Plan().with_arms(*arms)))
    assert "8 times slower" in table(comparison)
    page = html(comparison)
    assert "<b>Dilated.</b>" in page
    assert "dilated 8 times" in page
    assert [arm.dilation for arm in document(comparison).arms] == [8, 8]
