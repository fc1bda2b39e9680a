"""The page of all documents in a headless Chromium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.reproduce.page import write_page
from pgdyno.reproduce.results import recorded_in
from pgdyno.reproduce.told import tell
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
    found = shelf.write()
    [document] = found.documents
    results = recorded_in(shelf.results, [found.experiment(run) for run in document.run])
    path = tmp_path / "page.html"
    write_page([tell(document, results, None)], path)
    page = browser.open(path, width_px, dark, (WIDTH, OUTSIDE, DRAWN, GROUND))
    assert page.complaints == []
    assert page.requests == [path.resolve().as_uri()]
    assert page.values[WIDTH] <= width_px
    assert page.values[OUTSIDE] == ""
    assert len(page.values[DRAWN]) == 1
    for scales in page.values[DRAWN]:
        assert len(scales) == 1
        assert 80 <= scales[0] <= 180
    assert (page.values[GROUND] == "rgb(21, 23, 26)") is dark
