"""A line of a document beside runs: which points have a figure here, the law of either, and how both are shown."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.statistics import Estimate
from pgdyno.published import words
from pgdyno.published.chart_drawing import chart_svg, decade_ticks
from pgdyno.published.experiments import find_results
from pgdyno.published.judge import LineResult, PointResult, judge_document
from pgdyno.published.library import arms_named
from pgdyno.published.reproduce_document import reproduce_document
from pgdyno.results.record import Check
from tests.analysis.synthetic import GP3
from tests.reproduce.conftest import FILE

if TYPE_CHECKING:
    from pgdyno.published.judge import DocumentResult
    from tests.reproduce.conftest import Shelf

SVG = "{http://www.w3.org/2000/svg}"


def _judge(shelf: Shelf) -> DocumentResult:
    library = shelf.charted()
    [document] = library.documents
    return judge_document(
        document, find_results(shelf.results, [library.experiment(run) for run in document.run]), None
    )


def _line(*points: tuple[float, float, float | None]) -> LineResult:
    there = (
        PointResult(x, y, None if here is None else Estimate(here, here * 0.9, here * 1.1, 3)) for x, y, here in points
    )
    return LineResult("one", tuple(there))


def test_a_point_has_the_mean_of_its_runs_and_another_says_why_it_has_none(shelf: Shelf) -> None:
    shelf.record()
    [chart] = _judge(shelf).charts
    [line] = chart.lines
    first, second = line.points
    assert (first.x, first.there, second.x, second.there) == (100, 10, 200, 20)
    assert first.here is not None
    assert first.here.mean == pytest.approx(1000, rel=0.05)
    assert first.here.n == 3
    assert (second.here, second.why) == (None, "gp3:size=200GiB of trial.toml has no finished run")
    assert not chart.why


def test_invalid_runs_are_no_point(shelf: Shelf) -> None:
    shelf.record(low=replace(GP3, checks=(Check(name="balances", ok=False, detail="sum to 1"),)))
    result = _judge(shelf)
    [chart] = result.charts
    assert chart.lines[0].points[0].here is None
    assert chart.why.startswith("runs are invalid: ")
    [of_json] = reproduce_document([result]).documents[0].charts
    assert [point.here for point in of_json.lines[0].points] == [None, None]
    assert [point.there for point in of_json.lines[0].points] == [10, 20]


@pytest.mark.parametrize(("most", "arms"), [("full_only_above = 100\n", 2), ("", 3)])
def test_quick_runs_the_points_up_to_a_number(shelf: Shelf, most: str, arms: int) -> None:
    more = FILE.replace('["gp3:size=100GiB",', '["gp3:size=200GiB", "gp3:size=100GiB",')
    (shelf.root / "experiments" / "trial.toml").write_text(more)
    library = shelf.charted(("full_only_above = 100\n", most))
    [document] = library.documents
    assert len(arms_named(document, library.experiment(document.run[0]), full=False)) == arms


def test_the_law_of_either_is_told_where_four_points_follow_one(shelf: Shelf) -> None:
    shelf.record()
    [chart] = _judge(shelf).charts
    amdahl = [(n, 100 * n / (1 + 0.1 * (n - 1)), 50.0 * n) for n in (1.0, 2.0, 4.0, 8.0)]
    line = _line(*amdahl)
    assert line.law_there is not None
    assert line.law_there.contention == pytest.approx(0.1, abs=1e-3)
    [text] = words.of_chart(replace(chart, lines=(line,)))
    assert text.startswith("one: 4.71 times the TPS from 1 to 8 GiB (contention 0.100, ")
    assert "here 8.00 times the TPS from 1 to 8 GiB (contention 0.000, " in text
    few = _line((1, 10, 5), (2, 20, None))
    assert few.law_there is None
    [result] = words.of_chart(replace(chart, lines=(few,)))
    assert result == "one: 2.00 times the TPS from 1 to 2 GiB in the document; here there are no runs of two points."


def test_every_point_is_drawn_inside_of_the_frame_and_named(shelf: Shelf) -> None:
    shelf.record()
    [chart] = _judge(shelf).charts
    lines = (_line((1, 10, 1e5), (64, 9_000, 3.0)), _line((1, 20, None), (2, 30, None)))
    root = ElementTree.fromstring(chart_svg(replace(chart, lines=lines)))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    dots = [
        (item, findtext) for item in root.iter(f"{SVG}circle") if (findtext := item.findtext(f"{SVG}title")) is not None
    ]
    assert [item for _, item in dots[:2]] == ["one, 1 GiB: 10 TPS there", "one, 1 GiB: 100,000 TPS here"]
    assert len(dots) == 6
    assert all(0 < float(item.attrib["cx"]) < width and 0 < float(item.attrib["cy"]) < height for item, _ in dots)
    assert len([item for item in root.iter(f"{SVG}path") if "stroke-dasharray" in item.attrib]) == 2


def test_ticks_are_round_and_inside() -> None:
    assert decade_ticks((150, 2_400)) == [200, 500, 1000, 2000]
    assert decade_ticks((0.9, 1.1)) == [1]
