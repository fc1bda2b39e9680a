"""The page of all documents in a headless Chromium."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.statistics import Estimate
from pgdyno.published.chart_drawing import LabelBox
from pgdyno.published.experiments import find_results
from pgdyno.published.judge import PublishedRatio, judge_document
from pgdyno.published.page import write_page
from tests.report import chromium
from tests.report.test_browser import DRAWN, GROUND, OUTSIDE, WIDTH

if TYPE_CHECKING:
    from pathlib import Path

    from tests.reproduce.conftest import Shelf


@pytest.mark.needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width_px", [1280, 390])
def test_nothing_complains_is_asked_for_or_overflows(
    browser: chromium.Browser, shelf: Shelf, tmp_path: Path, width_px: int, dark: bool
) -> None:
    shelf.record()
    library = shelf.charted()
    [document] = library.documents
    results = find_results(shelf.results, [library.experiment(run) for run in document.run])
    path = tmp_path / "page.html"
    write_page([judge_document(document, results, None)], path)
    page = browser.open(path, width_px, dark, (WIDTH, OUTSIDE, DRAWN, GROUND))
    assert page.complaints == []
    assert page.requests == [path.resolve().as_uri()]
    assert page.values[WIDTH] <= width_px
    assert page.values[OUTSIDE] == ""
    assert len(page.values[DRAWN]) == 2
    for scales in page.values[DRAWN]:
        assert len(scales) == 1
        assert 80 <= scales[0] <= 180
    assert (page.values[GROUND] == "rgb(21, 23, 26)") is dark


NUMBERS = """JSON.stringify([...document.querySelectorAll('svg g.role-mark.mark-text text')].map(text => {
    const box = text.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; }).filter(box => box[2] > 0))"""
TEXT_SHARE = 0.7
"""Of a text's box, the rest is room above and below digits."""


@pytest.mark.needs_chromium
@pytest.mark.parametrize("width_px", [1280, 390])
def test_the_numbers_of_dots_around_a_ratio_of_one_are_apart(
    browser: chromium.Browser, shelf: Shelf, tmp_path: Path, width_px: int
) -> None:
    shelf.record()
    [document] = shelf.write().documents
    result = judge_document(
        document, find_results(shelf.results, [shelf.write().experiment(run) for run in document.run]), None
    )
    [comparison_result] = result.comparisons
    assert comparison_result.here is not None
    crowd = tuple(
        replace(
            comparison_result,
            there=PublishedRatio(1 + n / 200),
            here=replace(comparison_result.here, ratio=Estimate(1 + n % 5 / 100, 0.9, 1.1, 3)),
        )
        for n in range(20)
    )
    path = tmp_path / "page.html"
    write_page([replace(result, comparisons=crowd)], path)
    value = browser.open(path, width_px, False, (NUMBERS,)).values[NUMBERS]
    boxes = [LabelBox(x + wide / 2, y + high / 2, wide, high * TEXT_SHARE) for x, y, wide, high in json.loads(value)]
    assert len(boxes) == len(crowd)
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]
