"""Durability that is given up on purpose: only where an experiment asks for it, and said first in whatever reports of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.base.errors import InputError
from pgdyno.report import document
from pgdyno.report.export import markdown
from pgdyno.report.page import html
from pgdyno.report.terminal import table
from pgdyno.results import open_experiment
from pgdyno.server.settings import render
from tests.experiment.documents import ONE_ARM, experiment
from tests.support.commands import pgdyno

if TYPE_CHECKING:
    from pathlib import Path

SAID = "Durability was given up: full_page_writes is off"
TRIAL = ONE_ARM + '[factors]\n"postgres.given_up" = [{levels}]\n'


def test_other_settings_cannot_be_given_up_and_an_experiment_without_it_is_as_before() -> None:
    for wrong in (["fsync"], "full_page_writes"):
        with pytest.raises(InputError, match=r"postgres\.given_up"):
            experiment(postgres={"given_up": wrong})
    with pytest.raises(InputError, match="makes PostgreSQL another database") as refused:
        render({"full_page_writes": "off"})
    assert 'postgres.given_up = ["full_page_writes"]' in refused.value.remedy
    assert "given_up" not in experiment().identity()["postgres"]
    off = experiment(postgres={"given_up": ["full_page_writes"]})
    assert off.identity()["postgres"]["given_up"] == ["full_page_writes"]


def test_every_report_says_right_after_the_recommendation_what_was_given_up_and_in_which_arm(
    engine: Path, tmp_path: Path
) -> None:
    file = tmp_path / "trial.toml"
    file.write_text(TRIAL.format(kind="fake", seconds=60, levels='[], ["full_page_writes"]'))
    pgdyno("run", str(file), "--results", str(tmp_path), "--keep-invalid", code=0)
    comparison = summarise(next(tmp_path.glob("*-trial-*")))
    off = comparison.arms[1]
    assert [arm.given_up for arm in comparison.arms] == [(), ("full_page_writes",)]
    assert comparison.recommendation.arm in (None, 0), "durability is not given up for speed"
    first, second = table(comparison, 100).split("\n\n")[:2]
    assert SAID not in first
    assert second.replace("\n", " ").startswith(f"{SAID} in {off.label}.")
    assert f"\n**{SAID}" in markdown(comparison)[: markdown(comparison).index("\n- **")]
    page = html(comparison)
    assert SAID in page
    assert page.index('class="masthead"') < page.index("<h1") < page.index(SAID) < page.index('class="verdict"')
    assert [arm.given_up for arm in document(comparison).arms] == [[], ["full_page_writes"]]


@pytest.mark.needs_fuse
@pytest.mark.sets_limits
def test_the_server_runs_without_it_and_nothing_is_lost_where_no_write_is_torn(state_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "trial.toml"
    cuts = '\n[crash]\ncuts = 4\nduration = "1s"\nreading = "whole"\n'
    file.write_text(TRIAL.format(kind="emulated", seconds=2, levels='["full_page_writes"]') + cuts)
    pgdyno("run", str(file), "--results", str(tmp_path), "--keep-invalid", code=0)
    (run,) = open_experiment(next(tmp_path.glob("*-trial-*"))).runs
    settings = {row["name"]: row["setting"] for row in run.table("postgres/settings").to_pylist()}
    assert settings["full_page_writes"] == "off"
    assert settings["fsync"] == "on"
    assert run.record.postgres.given_up == ("full_page_writes",)
    (cut,) = run.record.power_cuts
    assert (cut.reading, cut.cuts, cut.failed, cut.by_check) == ("whole", 4, 0, {})
    assert not (run.path.parents[1] / "cuts").exists(), "no cut failed, so no recording is kept"
    document = json.loads(pgdyno("report", str(next(tmp_path.glob("*-trial-*"))), "--format", "json").out)
    assert document["arms"][0]["given_up"] == ["full_page_writes"]
