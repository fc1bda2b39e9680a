"""The guide's summary and its picture are made from the documents' figures and from what was recorded."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.catalog import Catalog
from pgdyno.published import read_documents
from pgdyno.published.judge import judge_document
from pgdyno.published.library import DocumentLibrary
from tests.report import chromium
from tools.reference import published_chart, published_lines, published_summary

if TYPE_CHECKING:
    from pgdyno.published.judge import DocumentResult

pytestmark = pytest.mark.usefixtures("engine")
ROOT = Path(__file__).resolve().parents[2]


class Copies:
    """The documents and what was kept, to change one of them."""

    def __init__(self, root: Path) -> None:
        self.figures, self.kept = root / "published", root / "kept"
        shutil.copytree(ROOT / "catalog" / "published", self.figures)
        shutil.copytree(published_summary.KEPT, self.kept)

    def judge(self) -> list[DocumentResult]:
        """What is known of them."""
        library = DocumentLibrary(tuple(read_documents(self.figures)), ROOT / "experiments")
        with Catalog() as catalog:
            kept = published_summary.kept_of(library, self.kept)
            return [judge_document(document, kept, catalog.resolve) for document in library.documents]

    def both(self) -> tuple[str, str]:
        """Summary and picture."""
        results = self.judge()
        return published_summary.summary(results), published_chart.drawn(results)


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    """The copies as they are."""
    return Copies(tmp_path)


def test_the_page_is_what_the_unchanged_files_make(copies: Copies) -> None:
    summary, picture = copies.both()
    assert summary in (published_summary.GUIDE / published_summary.FILE).read_text(encoding="utf-8")
    assert picture == (ROOT / "docs" / "picture" / published_chart.FILE).read_text(encoding="utf-8")
    assert str(ROOT) not in summary


def test_another_recorded_figure_changes_summary_and_picture(copies: Copies) -> None:
    before = copies.both()
    file = copies.kept / "hammerdb-oltp.json"
    kept = json.loads(file.read_text())
    kept["arms"][1]["runs"][0]["figures"]["tpm"] *= 1.5
    file.write_text(json.dumps(kept))
    after = copies.both()
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_another_published_figure_changes_the_verdict_and_the_picture(copies: Copies) -> None:
    before = copies.both()
    [result] = [
        comparison for comparison in copies.judge()[3].comparisons if comparison.name == "TPM, OLTP stress test"
    ]
    assert result.ratio is not None
    file = copies.figures / "io2.toml"
    text = file.read_text(encoding="utf-8")
    assert text.count("value = 269_823") == 1
    file.write_text(text.replace("value = 269_823", f"value = {129_729 * result.ratio.mean:.0f}"), encoding="utf-8")
    [changed] = [
        comparison for comparison in copies.judge()[3].comparisons if comparison.name == "TPM, OLTP stress test"
    ]
    assert changed.judgement.verdict != result.judgement.verdict
    after = copies.both()
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_the_charts_are_what_the_files_make_and_change_with_them(copies: Copies) -> None:
    made = published_lines.pictures(copies.judge())
    assert "published-huawei-1.svg" in made
    for name, text in made.items():
        assert text == (ROOT / "docs" / "picture" / name).read_text(encoding="utf-8")
    file = copies.figures / "huawei.toml"
    text = file.read_text(encoding="utf-8")
    assert text.count(" 8_839.4,") == 1
    file.write_text(text.replace(" 8_839.4,", " 4_419.7,"), encoding="utf-8")
    assert published_lines.pictures(copies.judge()) != made


def test_results_that_are_gone_are_said_and_no_dot_is_left(copies: Copies) -> None:
    for file in copies.kept.glob("*.json"):
        file.unlink()
    summary, picture = copies.both()
    assert "no recorded runs of hammerdb-oltp.toml are in the repository" in summary
    assert "<title>" not in picture


def test_the_numbers_of_the_picture_are_those_of_the_table() -> None:
    result = published_summary.judge_documents()
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", published_summary.summary(result), re.MULTILINE)
    places = {int(place): name.strip() for place, name in rows}
    dots = re.findall(r"<title>(\d+), ([^:]+): there", published_chart.drawn(result))
    assert len(dots) >= 5
    assert all(places[int(place)].endswith(name) for place, name in dots)


BOXES = """JSON.stringify([...document.querySelectorAll('text.place, text.key')].map(text => {
    const box = text.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom]; }))"""
KEY = "JSON.stringify([...document.querySelectorAll('text.key')].map(text => text.getBoundingClientRect().right))"
FRAME = "JSON.stringify((box => [box.left, box.right])(document.querySelector('img, svg').getBoundingClientRect()))"
FILL = "getComputedStyle(document.querySelector('svg rect')).fill"


@pytest.mark.needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width_px", [900, 390])
def test_the_picture_fits_and_its_texts_are_apart(
    browser: chromium.Browser, tmp_path: Path, width_px: int, dark: bool
) -> None:
    path = tmp_path / "page.html"
    svg = published_chart.picture().replace("<svg ", '<svg style="max-width: 100%; height: auto" ', 1)
    path.write_text(f"<!doctype html><meta name=viewport content='width=device-width'><body>{svg}", encoding="utf-8")
    page = browser.open(path, width_px, dark, (BOXES, KEY, FRAME, FILL))
    assert page.complaints == []
    left, right = json.loads(page.values[FRAME])
    assert 0 <= left < right <= width_px
    assert max(json.loads(page.values[KEY])) < right
    boxes = json.loads(page.values[BOXES])
    assert len(boxes) >= 5
    for place, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[place + 1 :]:
            apart = right <= other[0] + 1 or other[2] <= left + 1 or bottom <= other[1] + 4 or other[3] <= top + 4
            assert apart, (boxes[place], other)
    assert (page.values[FILL] == "rgb(27, 30, 34)") is dark
