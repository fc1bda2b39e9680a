"""Names with control characters in recorded results, and figures that the drawing library cannot survive."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.base.errors import PgdynoError
from pgdyno.report import draw, table, write_report
from pgdyno.report.export import markdown, pictures
from tests.cli.terminal import on_terminal

from ..analysis.synthetic import GP3, IO2BX, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

_HOSTILE = "\x1b]0;owned\x07\x00\x9b31m\u202e"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]")
_POINT = {"mark": "point", "data": {"values": [{"a": 1}]}, "encoding": {"x": {"field": "a"}}}


def _results(folder: Path) -> Path:
    plan = Plan(
        arms=(replace(GP3, spec=f"gp3{_HOSTILE}", name=f"c & <d>{_HOSTILE}"), IO2BX), replicates=2, measure_s=20
    )
    return make_experiment(folder, plan)


@pytest.mark.drawn
def test_recorded_control_characters_reach_no_page_picture_or_text(tmp_path: Path) -> None:
    comparison = summarise(_results(tmp_path))
    written = write_report(comparison, tmp_path / "page.html")
    page = written.page.read_text()
    assert "could not be drawn" not in page
    assert page.count("<svg") > 2
    assert written.figure is not None
    made = pictures(comparison, tmp_path / "figures", "svg")
    for text in (page, table(comparison), markdown(comparison), *(path.read_text() for path in made)):
        assert "\ufffd" in text or text.startswith("<svg")
        assert not _CONTROL.search(text)


def test_recorded_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    directory = _results(tmp_path)
    for arguments in (("report", str(directory)), ("runs", "--results", str(tmp_path))):
        shown = on_terminal("-m", "pgdyno", *arguments, columns=100)
        assert "gp3" in shown or "compare" in shown
        assert not _CONTROL.search(re.sub(r"\x1b\[[0-9;]*m", "", shown))
    shown = on_terminal("-m", "pgdyno", "query", "SELECT arm FROM runs", "--csv", "--results", str(tmp_path))
    assert "\ufffd" in shown
    assert not _CONTROL.search(shown)


@pytest.mark.drawn
def test_a_figure_that_ends_the_drawing_library_is_lost_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw, "_cleaned", lambda request: request)
    hostile: dict[str, Any] = {**_POINT, "title": "a\x1bb"}
    with draw.kept():
        assert draw.svg(_POINT).startswith("<svg")
        with pytest.raises(PgdynoError) as failed:
            draw.svg(hostile)
        assert failed.value.code == "report.figure.failed"
        assert draw.svg(_POINT).startswith("<svg")


@pytest.mark.drawn
def test_a_page_has_a_note_in_the_place_of_a_figure_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    svg, lost = draw.svg, []

    def first_fails(specification: dict[str, Any]) -> str:
        if not lost:
            lost.append(specification)
            return svg({"mark": "no such mark", "data": {"values": []}})
        return svg(specification)

    monkeypatch.setattr(draw, "svg", first_fails)
    written = write_report(summarise(make_experiment(tmp_path, Plan(measure_s=20))), tmp_path / "page.html")
    page = written.page.read_text()
    assert page.count("could not be drawn") == 1
    assert page.count("<svg") > 2
