"""The page of a watch and of a calendar: its words, and how it looks in a headless Chromium."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from pgdyno.advise.diagnose.calendar import calendar_of
from pgdyno.advise.diagnose.diagnosis import diagnose
from pgdyno.advise.diagnose.page import of_diagnosis, write_page
from pgdyno.advise.diagnose.remedies import purchase_of
from pgdyno.base.errors import OutputError
from pgdyno.cli.main import cli

from ..analysis.synthetic import GP3, Plan, make_experiment
from ..report import chromium
from ..report.test_browser import DRAWN, GROUND, OUTSIDE, WIDTH
from .watches import make_watch, make_watches

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = datetime(2026, 11, 25, 21, 5, tzinfo=UTC).timestamp()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A watch's page and a calendar's."""
    folder = tmp_path_factory.mktemp("pages")
    make_watches(folder / "watches", BEGIN, [True, None, False, False, True])
    watch = make_watch(folder / "alone", BEGIN, full=True)
    write_page(diagnose(watch, purchase_of(["gp3"], "r6g.large")), folder / "watch.html")
    write_page(calendar_of(folder / "watches", zone=UTC), folder / "calendar.html")
    return {"watch": folder / "watch.html", "calendar": folder / "calendar.html"}


def test_a_page_says_what_the_screen_says_with_the_reports_figures(pages: dict[str, Path]) -> None:
    text = pages["watch"].read_text()
    assert "<h1>Volume IOPS, in 90\u00a0% of 10 s</h1>" in text
    for title in (
        "What limits it",
        "What to do",
        "Who uses the volume",
        "What published rules say",
        "Over time",
        "PostgreSQL",
    ):
        assert f"<h2>{title}</h2>" in text
    assert "a month" in text, "the purchase has its price"
    assert "<script" not in text
    calendar = pages["calendar"].read_text()
    assert "Which limit bound when" in calendar
    assert "Wed 2026-11-25 21:00 to 21:59" in calendar
    assert "no answer: the server cannot be connected to" in calendar


def test_a_run_of_an_experiment_has_a_page_without_the_experiments_figures(tmp_path: Path) -> None:
    made = make_experiment(tmp_path, Plan(arms=(GP3,), replicates=1, measure_s=20))
    text = of_diagnosis(diagnose(made))
    assert "What limits it" in text
    assert "Over time" not in text


def test_a_page_that_cannot_be_written_names_the_option(tmp_path: Path) -> None:
    watch = make_watch(tmp_path, BEGIN, full=False)
    result = CliRunner().invoke(cli, ["diagnose", str(watch), "--html", str(tmp_path / "none" / "page.html")])
    assert isinstance(result.exception, OutputError)
    assert "--html" in result.exception.remedy


@pytest.mark.needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width_px", [1280, 390])
@pytest.mark.parametrize("name", ["watch", "calendar"])
def test_nothing_complains_is_asked_for_or_overflows(
    browser: chromium.Browser, pages: dict[str, Path], name: str, width_px: int, dark: bool
) -> None:
    page = browser.open(pages[name], width_px, dark, (WIDTH, OUTSIDE, DRAWN, GROUND))
    assert page.complaints == []
    assert page.requests == [pages[name].resolve().as_uri()]
    assert page.values[WIDTH] <= width_px
    assert page.values[OUTSIDE] == ""
    assert len(page.values[DRAWN]) == {"watch": 3, "calendar": 2}[name]
    for scales in page.values[DRAWN]:
        assert len(scales) == 1
        assert 80 <= scales[0] <= 180
    assert (page.values[GROUND] == "rgb(21, 23, 26)") is dark
