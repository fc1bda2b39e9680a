"""The page in a headless Chromium: everything is drawn, nothing complains, nothing is asked for, nothing overflows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import chromium

if TYPE_CHECKING:
    from pgdyno.report import ReportFiles

pytestmark = [
    pytest.mark.needs_chromium,
    pytest.mark.skipif(
        chromium.find() is None, reason=f"no Chromium: none of {', '.join(chromium.NAMES)} is installed"
    ),
]

WIDTH = "document.documentElement.scrollWidth"
OUTSIDE = """[...document.querySelectorAll('body *')]
    .filter(e => !e.closest('svg') && !e.closest('.scroll') && e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.tagName + ' ' + e.textContent.slice(0, 40)).join('; ')"""
DRAWN = """[...document.querySelectorAll('figure')].map(figure => [...figure.querySelectorAll('svg')]
    .filter(svg => svg.getBoundingClientRect().width > 0)
    .map(svg => Math.round(svg.getBoundingClientRect().width / svg.viewBox.baseVal.width * 100)))"""
MARKS = """[...document.querySelectorAll('svg')].filter(svg => svg.getBoundingClientRect().width > 0)
    .map(svg => svg.querySelectorAll('path[d], line').length)"""
ARM_COLOUR = "getComputedStyle(document.querySelector('.key .arm0')).backgroundColor"
LINE_COLOUR = """[...new Set([...document.querySelectorAll('svg path')].map(path => getComputedStyle(path).stroke))]"""
GROUND = "getComputedStyle(document.body).backgroundColor"
VERDICT_PX = "document.querySelector('h1').getBoundingClientRect().top"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width_px", [1280, 768, 390, 320])
def test_page(browser: chromium.Browser, written: ReportFiles, width_px: int, dark: bool) -> None:
    texts = (WIDTH, OUTSIDE, DRAWN, MARKS, ARM_COLOUR, LINE_COLOUR, GROUND, VERDICT_PX)
    page = browser.open(written.page, width_px, dark, texts)
    assert page.complaints == []
    assert page.requests == [written.page.resolve().as_uri()]
    assert page.values[WIDTH] <= width_px
    assert page.values[OUTSIDE] == ""
    # One drawing of each figure is shown, close to the size it was made for, so that its text can be read.
    assert len(page.values[DRAWN]) == 5
    for scales in page.values[DRAWN]:
        assert len(scales) == 1
        assert 80 <= scales[0] <= 180
    assert all(marks >= 5 for marks in page.values[MARKS])
    assert page.values[ARM_COLOUR] in page.values[LINE_COLOUR]
    assert (page.values[GROUND] == "rgb(21, 23, 26)") is dark
    assert page.values[VERDICT_PX] < 200
    assert page.screenshot.startswith(b"\x89PNG")
