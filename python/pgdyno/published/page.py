"""All documents as one HTML file that needs nothing else, in the dress of the reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from pgdyno import __version__
from pgdyno.report import figures
from pgdyno.report.render import drawing, rendered, write_whole
from pgdyno.report.section import Block, Drawing, Grid, Heading, Note, Part, Section, Sentences

from . import words
from .chart_drawing import VERDICT_COLOURS, chart_svg, ratio_chart
from .judge import ComparisonResult, DocumentResult

HEADS = ("comparison", "there", "here", "95 % interval", "within what is unstated", "sign", "verdict")


def write_page(documents: Sequence[DocumentResult], path: Path) -> None:
    """Write the page to ``path``, over what was there. :class:`pgdyno.base.errors.OutputError` when that fails."""
    write_whole(path, html(documents).encode(), "--html")


def html(documents: Sequence[DocumentResult]) -> str:
    """The page as text."""
    sections = list(_sections(documents))
    with figures.unchecked():
        drawn = {
            part.name: drawing(part.name, part.alternative, part.make)
            for section in sections
            for part in section.parts
            if isinstance(part, Drawing)
        }
    return rendered(
        "reproduce.html",
        "pgdyno.published",
        headline=words.headline(documents),
        not_fitted=words.NOT_FITTED,
        sections=sections,
        drawn=drawn,
        version=__version__,
    )


def _sections(documents: Sequence[DocumentResult]) -> Iterator[Section]:
    numbered = [(document, list(part)) for document, part in _numbered(documents)]
    # Figures of the catalogue have no interval, and a ratio of 100 would leave the others no room.
    shown = [
        (place, item) for _, part in numbered for place, item in part if item.ratio is not None and item.experiment
    ]
    if shown:
        yield Section("all", "There and here", (_drawing(shown),))
    for document, part in numbered:
        yield Section(document.document.name, document.document.title, tuple(_parts(document, part)))


def _numbered(
    documents: Sequence[DocumentResult],
) -> Iterator[tuple[DocumentResult, list[tuple[int, ComparisonResult]]]]:
    """Comparisons numbered over all documents, as in the text."""
    first = 1
    for document in documents:
        yield document, list(enumerate(document.comparisons, first))
        first += len(document.comparisons)


def _drawing(shown: list[tuple[int, ComparisonResult]]) -> Drawing:
    return Drawing(
        "ratios",
        f"The ratios of {len(shown)} comparisons in their documents, against the same ratios here",
        "Each dot is a comparison, with its number in the tables below. On the diagonal both ratios are the same; vertical bars are 95 %"
        " intervals. Dashed: no difference. What follows from the catalogue alone is in the tables.",
        partial(ratio_chart, shown),
        key=tuple((f"verdict-{colour}", str(word)) for word, colour in VERDICT_COLOURS.items()),
    )


def _parts(document: DocumentResult, numbered: Sequence[tuple[int, ComparisonResult]]) -> Iterator[Part]:
    about = document.document
    yield Note(f"{about.publisher}, {about.published}. {about.about}.")
    yield Grid(HEADS, tuple(_row(place, result) for place, result in numbered), look="plain")
    if document.orders:
        yield Sentences(tuple(map(words.order, document.orders)))
    for chart in document.charts:
        yield Heading(chart.chart.name)
        yield Block("chart.html", {"svg": chart_svg(chart), "caption": words.CHART})
        yield Sentences(tuple(words.of_chart(chart)))
    texts = tuple(
        f"{place}. {' '.join(results)}" for place, result in numbered if (results := tuple(words.details(result)))
    )
    if texts:
        yield Heading("What was compared")
        yield Sentences(texts)
    yield Heading("What the document does not state")
    rows = tuple((unstated.what, words.plausible(unstated), _varied(of)) for unstated, of in document.open_points)
    yield Grid(("what", "plausible", "varied for"), rows, look="plain")
    yield Heading("Its own arithmetic")
    yield Note(words.adding_up(document))
    if claims := words.not_adding_up(document):
        yield Grid(("claim", "comes to", "stated or expected", "why not"), tuple(claims), look="plain")
    results = tuple(words.sources(document))
    if results:
        yield Heading("Where the runs are")
        yield Sentences(results)


def _row(place: int, result: ComparisonResult) -> tuple[str, ...]:
    return (
        f"{place}. {result.name}",
        words.there(result),
        words.here(result),
        words.extent(result),
        words.reach(result),
        str(result.sign),
        words.verdict(result),
    )


def _varied(names: Sequence[str]) -> str:
    return "; ".join(names) or words.NOT_VARIED
