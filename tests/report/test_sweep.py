"""A sweep on the page: every figure with its title, units and words for who cannot see it; and six hundred cells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.run import SECONDS
from pgdyno.report import document, table
from pgdyno.report.figures.parts import evenly
from pgdyno.report.page import html, main_figure
from pgdyno.report.render import WIDTHS_PX
from pgdyno.report.sweep import figures_of, law_sentences, pivots
from pgdyno.report.theme import PAGE, PAPER

from . import chromium
from .sweeps import CLIENTS, COUNTS, law, swept
from .test_page import outline

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.compare import Comparison

SIX_HUNDRED = {"clients": tuple(range(8, 88, 8)), "counts": tuple(range(10, 310, 10))}
BYTES_MAX = 8 * 2**20
"""What the issue allows a page of six hundred cells."""
FIGURES = (
    "Spread of the transactions per second",
    "Transactions per second, grouped by clients",
    "Transactions per second at each level of the clients",
    "Transactions per second over clients and transactions",
    "How throughput grows with clients",
    "Response times, cumulative",
    "Response times over time",
    "Cost front with ",
)
UNITS = re.compile(r"[Tt]ransactions per second|milliseconds|US\$|times the transactions|CPU|sessions|[Mm]illiseconds")


@pytest.fixture(scope="module")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """The article's sixty cells on each of two volumes."""
    return swept(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="module")
def clients_alone(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Clients are all that is swept."""
    return swept(tmp_path_factory.mktemp("clients"), counts=(100,), replicates=3)


@pytest.fixture(scope="module")
def six_hundred(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of six hundred cells."""
    folder = tmp_path_factory.mktemp("many")
    comparison = swept(folder, **SIX_HUNDRED)
    assert len(comparison.arms) == 600
    page = folder / "report.html"
    page.write_text(html(comparison))
    return page


def test_a_sweep_has_every_figure_of_the_article_and_more(sixty: Comparison) -> None:
    result = figures_of(sixty)
    assert len(result) == len(FIGURES)
    for figure, title in zip(result, FIGURES, strict=True):
        assert figure.title.startswith(title)
        assert len(figure.alternative) > 40
        assert UNITS.search(figure.caption), figure.name
    assert len({figure.name for figure in result}) == len(result)


@pytest.mark.parametrize("place", range(len(FIGURES)), ids=FIGURES)
def test_each_figure_is_what_vega_lite_takes(sixty: Comparison, place: int) -> None:
    """The page draws without this check, which takes longer than drawing."""
    made = figures_of(sixty)[place].make(WIDTHS_PX["medium"], PAGE)
    assert made["datasets"]
    assert not re.search(r"\bnan\b|\binf\b", str(made))


def test_variants_without_a_panel_are_named(sixty: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any("Not drawn" in figure.caption for figure in figures_of(sixty))
    monkeypatch.setattr("pgdyno.report.sweep.MAPS_MAX", 1)
    short = {figure.name for figure in figures_of(sixty) if figure.caption.endswith("there is no room: io2bx.")}
    assert short == {"sweep-cumulative", "sweep-over-time"}


def test_the_spread_of_loads_is_told_in_seconds(tmp_path: Path) -> None:
    comparison = swept(tmp_path, clients=(1, 2, 4), counts=(100,))
    for arm in comparison.arms:
        arm.__dict__["metric"] = SECONDS
    made = str(figures_of(comparison)[0].make(WIDTHS_PX["wide"], PAGE))
    assert "seconds, half of" in made
    assert "TPS" not in made


def test_without_a_second_axis_some_figures_have_nothing_to_show(clients_alone: Comparison) -> None:
    names = [figure.name for figure in figures_of(clients_alone)]
    assert names == [
        "sweep-spread",
        "sweep-bars",
        "sweep-scaling",
        "sweep-cumulative",
        "sweep-over-time",
        "sweep-front",
    ]
    table = pivots(clients_alone)
    assert len(table) == 1
    assert table[0].heads == ("gp3", "io2bx")
    assert [name for name, _ in table[0].lines] == [str(count) for count in CLIENTS]


def test_the_law_is_in_words(clients_alone: Comparison) -> None:
    sentences = law_sentences(clients_alone)
    assert [sentence.partition(":")[0] for sentence in sentences] == ["gp3", "io2bx"]
    assert all("contention 0.0" in sentence and "coherence" in sentence for sentence in sentences)
    peak = re.search(r"about (\d+) clients", sentences[0])
    assert peak is not None
    assert int(peak[1]) == pytest.approx(40, abs=6)


def test_the_raw_table_is_the_articles(sixty: Comparison) -> None:
    gp3, io2bx = pivots(sixty)
    assert (gp3.title, gp3.rows, gp3.columns) == ("gp3", "clients", "transactions")
    assert gp3.heads == tuple(str(count) for count in COUNTS)
    assert [name for name, _ in gp3.lines] == [str(count) for count in CLIENTS]
    first = float(io2bx.lines[0][1][0].replace(",", ""))
    assert first == pytest.approx(law(1, 16) * 0.98, rel=0.08)


def test_the_document_has_axes_and_laws(sixty: Comparison) -> None:
    made = document(sixty)
    assert made.sweep is not None
    assert [axis.factor for axis in made.sweep.axes] == ["workload.clients", "workload.transactions"]
    assert made.sweep.axes[0].values == list(CLIENTS)
    assert [len(variant.cells) for variant in made.sweep.variants] == [len(CLIENTS) * len(COUNTS)] * 2
    for number, variant in enumerate(made.sweep.variants):
        assert variant.label == ("gp3", "io2bx")[number]
        for cell in variant.cells:
            factors = made.arms[cell.arm].factors
            assert factors["workload.clients"] == made.sweep.axes[0].levels[cell.at[0]]
            assert factors["workload.transactions"] == made.sweep.axes[1].levels[cell.at[1]]
        assert variant.law is not None
        assert (variant.law.clients_min, variant.law.clients_max) == (min(CLIENTS), max(CLIENTS))
        fitted = variant.law.rate_tps * 48 / (1 + variant.law.contention * 47 + variant.law.coherence * 48 * 47)
        assert fitted == pytest.approx(0.89 * law(number, 48), rel=0.05), (
            "a mean over the transactions, which cost up to a fifth"
        )


def test_the_document_of_one_axis_has_one_place_a_cell(clients_alone: Comparison) -> None:
    made = document(clients_alone).sweep
    assert made is not None
    assert [cell.at for cell in made.variants[0].cells] == [[place] for place in range(len(CLIENTS))]
    assert all(variant.law is not None and variant.law.follows for variant in made.variants)


def test_a_larger_sweep_is_drawn_along_its_axes_alone(sixty: Comparison) -> None:
    text = html(sixty)
    result = outline(text)
    assert len(result.ids) == len(set(result.ids))
    assert not re.search(r"\b(?:nan|NaN|None|undefined)\b", re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL))
    assert 'id="throughput"' not in text
    assert text.index('id="effects"') < text.index('id="sweep"') < text.index('id="summary"')
    assert "The 120 arms" in text
    assert str(main_figure(sixty, 400)).count("var(--") == 0
    assert PAPER["arm0"] in str(main_figure(sixty, 400))


def test_a_small_sweep_keeps_a_row_for_each_arm(clients_alone: Comparison) -> None:
    text = html(clients_alone)
    assert 'id="throughput"' in text
    assert 'id="sweep"' in text
    assert "Curve: the universal scalability law" in text


def test_six_hundred_cells_are_one_small_page(six_hundred: Path) -> None:
    text = six_hundred.read_text()
    assert len(text.encode()) <= BYTES_MAX
    result = outline(text)
    assert not {"script", "link", "iframe", "object", "img", "form"} & set(result.elements)
    figures = re.findall(
        r"(?:<h3>([^<]*)</h3>\s*)?<figure>(.*?)<figcaption>(.*?)</figcaption></figure>", text, re.DOTALL
    )
    assert len(figures) == len(FIGURES) + 1  # and the effects
    for _, drawing, caption in figures:
        alternatives = re.findall(r'<svg role="img" aria-label="([^"]+)"', drawing)
        assert len(alternatives) == len(WIDTHS_PX)
        assert UNITS.search(re.sub(r"<[^>]+>", " ", caption)), caption
    titles = [title for title, _, _ in figures if title]
    assert len(titles) == len(FIGURES)
    assert all(title.startswith(wanted) for title, wanted in zip(titles, FIGURES, strict=True))


@pytest.mark.needs_chromium
@pytest.mark.skipif(chromium.find() is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width_px", [1280, 390])
def test_six_hundred_cells_fit_the_window(six_hundred: Path, width_px: int) -> None:
    from .test_browser import DRAWN, OUTSIDE, WIDTH

    executable = chromium.find()
    assert executable is not None
    with chromium.Browser(executable) as browser:
        page = browser.open(six_hundred, width_px, False, (WIDTH, OUTSIDE, DRAWN))
    assert page.complaints == []
    assert page.values[WIDTH] <= width_px
    assert page.values[OUTSIDE] == ""
    assert all(len(scales) == 1 and 80 <= scales[0] <= 180 for scales in page.values[DRAWN])


@pytest.mark.parametrize(("count", "most"), [(1, 2), (5, 5), (6, 5), (100, 7), (3, 2)])
def test_evenly_keeps_the_ends(count: int, most: int) -> None:
    kept = evenly(range(count), most)
    assert len(kept) == min(count, most)
    assert (kept[0], kept[-1]) == (0, count - 1)
    assert kept == sorted(set(kept))


@pytest.mark.parametrize("width", [100, 60, 40])
def test_a_terminal_shows_the_raw_tables_of_a_larger_sweep(sixty: Comparison, width: int) -> None:
    text = table(sixty, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "TPS, clients by transactions: gp3" in " ".join(text.split())
    cells = [cell for pivot in pivots(sixty) for _, line in pivot.lines for cell in line]
    assert all(text.count(cell) >= 1 for cell in cells)
