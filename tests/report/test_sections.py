"""Sections are built once and written by several writers; a figure is added by one entry."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from pgdyno.analysis import metric
from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.report import document
from pgdyno.report.export import markdown, runs_csv
from pgdyno.report.sections import drawings, sections
from pgdyno.report.summary import summary

from ..analysis.synthetic import Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_figure_is_added_by_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added = metric.Metric("failed", "transactions that failed", "", "less", lambda run: run.record.account.failed + 1.0)
    monkeypatch.setattr(metric, "METRICS", (*metric.METRICS, added))
    found = summarise(make_experiment(tmp_path, Plan(replicates=2, measure_s=20)))
    assert next(row for row in summary(found) if row.title == added.title).cells == ("1.00", "1.00")
    assert [row["failed"] for row in csv.DictReader(io.StringIO(runs_csv(found)))] == ["1"] * 4
    made = document(found)
    assert made.metrics["failed"].better == "less"
    assert made.arms[0].figures["failed"].value == 1.0
    assert made.arms[0].figures["failed"].of_runs.n == 2


def test_names_of_sections_and_figures_are_unique(comparison: Comparison) -> None:
    found = sections(comparison)
    for names in ([section.name for section in found], [drawing.name for drawing in drawings(comparison)]):
        assert len(set(names)) == len(names)
    assert [section.name for section in found][:2] == ["summary", "binding"]
    assert found[-1].name == "asked"
    assert all(section.parts for section in found)


def test_markdown_has_the_sections_that_are_brief(comparison: Comparison) -> None:
    heads = [line.removeprefix("## ") for line in markdown(comparison).splitlines() if line.startswith("## ")]
    assert heads == [*(section.title for section in sections(comparison) if section.brief), "Again"]
