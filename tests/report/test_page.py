"""The page as text: whole, self-contained, escaped. What it looks like is asked of a browser in test_browser.py."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.base.errors import HostError, InputError
from pgdyno.report import ReportFiles, figures, table, write_report
from pgdyno.report.export import markdown
from pgdyno.report.page import html
from pgdyno.report.render import WIDTHS_PX
from pgdyno.report.section import Drawing
from pgdyno.report.sections import sections
from pgdyno.report.theme import PAGE
from pgdyno.results.record import Check

from ..analysis.synthetic import GP3, IO2BX, Plan, make_experiment

PAGE_BYTES_MAX = 3 * 2**20
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Outline(HTMLParser):
    """Elements, ids and addresses of a page; fails where tags do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the element."""
        self.elements.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "data", "action"):
                self.addresses.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the element without opening it."""
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Close the element that is open."""
        assert self.open.pop() == tag


def outline(text: str) -> Outline:
    """The outline of a page."""
    outline = Outline()
    outline.feed(text)
    outline.close()
    assert outline.open == []
    return outline


def test_page_is_one_small_file_that_needs_nothing_else(written: ReportFiles) -> None:
    text = written.page.read_text()
    assert len(text.encode()) < PAGE_BYTES_MAX
    result = outline(text)
    assert not {"script", "link", "iframe", "object", "img", "form"} & set(result.elements)
    assert [address for address in result.addresses if not address.startswith("#")] == []
    assert not re.search(r"@import|url\((?!#)|https?://|srcset|data:", text)


def test_ids_are_unique_and_references_lead_somewhere(written: ReportFiles) -> None:
    text = written.page.read_text()
    result = outline(text)
    assert len(result.ids) == len(set(result.ids))
    references = re.findall(r"url\(#([^)]+)\)", text) + [a[1:] for a in result.addresses if a.startswith("#")]
    assert set(references) <= set(result.ids)


def test_verdict_comes_first_then_everything_else(written: ReportFiles, comparison: Comparison) -> None:
    text = written.page.read_text()
    plain = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", text, flags=re.DOTALL).replace("\u00a0", " ")
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", plain)).replace("&#39;", "'")
    order = [
        comparison.verdict, "Valid.", "Summary", "What limits it", "Transactions per second", "Response time", "Over time",
        "Time above each limit", "Means of the replicates", "How far to trust this", "Closed loop: 32 clients", "What was not verified",
        "Configuration", "pgdyno compare gp3:size=100GiB", "PostgreSQL's settings", "shared_buffers", "The other",
    ]  # fmt: skip
    places = [
        plain.index(words, plain.index("Summary") if words != comparison.verdict and words != "Valid." else 0)
        for words in order
    ]
    assert places == sorted(places)


def test_no_line_of_a_sentence_ends_before_a_per_cent_sign(written: ReportFiles) -> None:
    text = written.page.read_text()
    sentences = "".join(re.findall(r"<li>.*?</li>|<h1.*?</h1>|<p class=.note.>.*?</p>", text, flags=re.DOTALL))
    assert re.search(r"\d\u00a0%", sentences)
    assert not re.search(r"\d %", sentences)


def test_every_figure_is_drawn_for_each_width(written: ReportFiles) -> None:
    text = written.page.read_text()
    figures = text.count("<figure>")
    assert figures == 5
    assert outline(text).elements.count("svg") == figures * len(WIDTHS_PX)
    drawings = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert all("var(--arm0)" in drawing or "var(--role0)" in drawing for drawing in drawings)
    assert not any(re.search(r'(?:fill|stroke)="#', drawing) for drawing in drawings)
    assert "checkpoint from 13 to 27 s" in text
    assert len(re.findall(r"<title>gp3\S*, replicate \d: ", text)) == 3 * len(WIDTHS_PX)


@pytest.mark.drawn
def test_what_users_wrote_is_escaped(tmp_path: Path) -> None:
    attack = "<script>alert('x')</script>"
    arm = replace(
        GP3,
        spec=f"gp3:{attack}",
        kind=f'"><img src=x onerror=alert(1)>{attack}',
        checks=(Check(name=attack, ok=False, detail=attack),),
    )
    text = html(summarise(make_experiment(tmp_path, Plan(measure_s=20).with_arms(arm, IO2BX))))
    assert not {"script", "img"} & set(outline(text).elements)
    assert "&lt;script&gt;" in text


def test_invalid_run_is_said_before_its_numbers(tmp_path: Path) -> None:
    late = replace(GP3, late_share=0.2, late_by_us=50_000.0)
    text = html(summarise(make_experiment(tmp_path, Plan(measure_s=20).with_arms(late, IO2BX))))
    assert text.index("No verdict on io2bx") < text.index("Invalid.") < text.index('id="summary"')
    assert "20 % of" in text
    assert "crosses: invalid ones" in text


@pytest.mark.drawn
@pytest.mark.parametrize(
    "plan",
    [
        Plan(arms=(GP3,), replicates=1, measure_s=20),
        Plan(
            arms=(replace(GP3, lost_seconds=frozenset(range(1, 200)), usd_per_month=None),), replicates=2, measure_s=20
        ),
        Plan(arms=(replace(GP3, tps=0.0), IO2BX), replicates=2, measure_s=20),
        Plan(arms=tuple(replace(IO2BX, spec=f"io2bx:iops={n}000") for n in range(1, 8)), replicates=4, measure_s=20),
    ],
    ids=["one run", "no samples, no price", "no transactions", "seven arms"],
)
def test_odd_experiments_have_a_page_too(tmp_path: Path, plan: Plan) -> None:
    text = html(summarise(make_experiment(tmp_path, plan)))
    outline(text)
    assert len(text.encode()) < PAGE_BYTES_MAX
    assert not re.search(r"\b(?:nan|NaN|None|undefined)\b", re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL))


@pytest.mark.drawn
def test_long_run_stays_below_the_size(tmp_path: Path) -> None:
    arms = (replace(GP3, tps=60.0), replace(IO2BX, tps=90.0))
    text = html(summarise(make_experiment(tmp_path, Plan(arms=arms, measure_s=3600))))
    assert len(text.encode()) < PAGE_BYTES_MAX
    assert "Each point covers 15 s." in text


def test_figure_is_a_png(written: ReportFiles) -> None:
    content = written.figure.read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    assert int.from_bytes(content[16:20], "big") >= 1200


def test_page_is_replaced_whole_and_refused_with_a_remedy(comparison: Comparison, tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    output.write_text("old")
    write_report(comparison, output)
    assert output.read_text().startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "page.png"]
    with pytest.raises(HostError, match="cannot be written") as caught:
        write_report(comparison, tmp_path / "absent" / "page.html")
    assert "--output" in caught.value.remedy
    for folder in (".", "/"):
        with pytest.raises(InputError, match="is a folder"):
            write_report(comparison, Path(folder))


def test_the_title_of_an_experiment_is_that_of_its_reports(comparison: Comparison) -> None:
    title = "Is a volume for WAL <worth> it?"
    titled = replace(comparison, experiment=comparison.experiment.model_copy(update={"title": title}))
    page = html(titled)
    assert "<title>Is a volume for WAL &lt;worth&gt; it? – pgdyno</title>" in page
    assert '<span class="title">Is a volume for WAL &lt;worth&gt; it?</span>' in page
    assert f"\n\n{title}\n\nvolume" in table(titled)
    assert "*Is a volume for WAL &lt;worth> it?*" in markdown(titled)
    assert re.search(r"<title>gp3\S* against io2bx\S* – pgdyno</title>", html(comparison))


def test_figures_that_share_their_parts_are_those_that_copy_them(comparison: Comparison) -> None:
    """Outside of a page Altair copies a chart whole at each step, and holds each part against Vega-Lite's schema."""
    drawings = [part for section in sections(comparison) for part in section.parts if isinstance(part, Drawing)]
    assert len(drawings) >= 4
    for part in drawings:
        copied = part.make(WIDTHS_PX["narrow"], PAGE)
        with figures.unchecked():
            assert part.make(WIDTHS_PX["narrow"], PAGE) == copied, part.name
