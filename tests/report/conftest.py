"""The experiment of the analysis's tests, and the page made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.report import ReportFiles, write_report

from ..analysis.conftest import comparison, experiment

if TYPE_CHECKING:
    from pgdyno.analysis.compare import Comparison

__all__ = ["comparison", "experiment"]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory, comparison: Comparison) -> ReportFiles:
    """The page and its figure."""
    return write_report(comparison, tmp_path_factory.mktemp("report") / "report.html")
