"""Sections are built once and written by several writers; a figure is added by one entry."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis import metric
from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.report import document
from pgdyno.report.export import markdown, runs_csv
from pgdyno.report.section import Block
from pgdyno.report.sections import drawings, sections
from pgdyno.report.summary import summary_rows
from pgdyno.report.volumes import MEMBER_COLUMNS

from ..analysis.synthetic import GP3, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path


def test_a_figure_is_added_by_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added = metric.Metric("failed", "transactions that failed", "", "less", lambda run: run.record.account.failed + 1.0)
    monkeypatch.setattr(metric, "METRICS", (*metric.METRICS, added))
    comparison = summarise(make_experiment(tmp_path, Plan(replicates=2, measure_s=20)))
    assert next(row for row in summary_rows(comparison) if row.title == added.title).cells == ("1.00", "1.00")
    assert [row["failed"] for row in csv.DictReader(io.StringIO(runs_csv(comparison)))] == ["1"] * 4
    made = document(comparison)
    assert made.metrics["failed"].better == "less"
    assert made.arms[0].figures["failed"].value == 1.0
    assert made.arms[0].figures["failed"].of_runs.n == 2


def test_names_of_sections_and_figures_are_unique(comparison: Comparison) -> None:
    result = sections(comparison)
    for names in ([section.name for section in result], [drawing.name for drawing in drawings(comparison)]):
        assert len(set(names)) == len(names)
    assert [section.name for section in result][:3] == ["steps", "summary", "binding"]
    assert result[-1].name == "configuration"
    assert all(section.parts for section in result)


def test_markdown_has_the_sections_that_are_brief(comparison: Comparison) -> None:
    heads = [line.removeprefix("## ") for line in markdown(comparison).splitlines() if line.startswith("## ")]
    assert heads == [*(section.title for section in sections(comparison) if section.brief), "Again"]


def test_each_member_of_an_array_is_shown(tmp_path: Path) -> None:
    array = replace(GP3, spec="4xgp3:size=100GiB")
    comparison = summarise(make_experiment(tmp_path, Plan(arms=(GP3, array), replicates=2, measure_s=20)))
    single, arms = (arm.volumes["data"] for arm in document(comparison).arms)
    assert single.members == []
    assert len(arms.members) == 4
    for member in arms.members:
        assert member.iops == pytest.approx(arms.iops / 4, rel=0.05)
        assert member.time_above_limit["iops"] == pytest.approx(arms.time_above_limit["iops"], abs=0.01)
    first, *_, last = arms.members
    assert last.read_ms_mean == pytest.approx(2 * first.read_ms_mean, rel=0.01), "the last member is slower"
    assert last.write_ms_mean == pytest.approx(2 * first.write_ms_mean, rel=0.01)
    tables = [part for section in sections(comparison) for part in section.parts if isinstance(part, Block)]
    rows = next(part.values["volumes"] for part in tables if part.values.get("columns") == MEMBER_COLUMNS)
    assert [row.title for row in rows] == [f"data, member {place}" for place in range(4)]
