"""The summary of ``docs/guide/published.md``: what agrees, what differs and why, from ``catalog/published``.

The rest of the page is written by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from pgdyno.base.catalog import Catalog
from pgdyno.base.text import UNKNOWN
from pgdyno.published import words
from pgdyno.published.chart_drawing import chart_title
from pgdyno.published.experiments import ExperimentResult, find_results
from pgdyno.published.judge import NO_CAUSE, ComparisonResult, DocumentResult, Sign, Verdict, judge_document
from pgdyno.published.library import DocumentLibrary, library
from tools.reference import markdown as md
from tools.reference.published_lines import charts

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
FILE = "published.md"
KEPT = ROOT / "catalog" / "published" / "recorded"
BEGIN = "<!-- summary:begin: Written by `make generate` from `catalog/published`; change it there. -->"
END = "<!-- summary:end -->"
NO_RUNS = "no recorded runs of {name}.toml are in the repository"
NAMED_MAX = 2
"""Comparisons without a verdict are named up to here: the table below has them all, and this is to be read in a minute."""
LISTED = (Verdict.AGREES, Verdict.WITHIN, Verdict.DIFFERS, Verdict.NOT_ANSWERED)


def page() -> str:
    """The text of the page, with the summary as it should be."""
    text = (GUIDE / FILE).read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"docs/guide/{FILE} has no place for the summary: put back {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{summary(judge_documents())}\n\n{END}{after}"


@cache
def judge_documents() -> tuple[DocumentResult, ...]:
    """The documents of the repository beside what was kept."""
    with Catalog() as catalog:
        document_library = library()
        return tuple(
            judge_document(document, kept_of(document_library, KEPT), catalog.resolve)
            for document in document_library.documents
        )


def kept_of(library: DocumentLibrary, folder: Path) -> dict[str, ExperimentResult]:
    """The results of all experiment files in a folder; paths of one machine are left out."""
    experiments = [library.experiment(run) for document in library.documents for run in document.run]
    results = find_results(folder, experiments)
    return {
        name: result if result.path is not None else replace(result, why=NO_RUNS.format(name=name))
        for name, result in results.items()
    }


def summary(documents: Sequence[DocumentResult]) -> str:
    """The summary: a sentence, a table, the picture, a paragraph for each document, and every comparison."""
    return "\n\n".join(
        (
            f"**{words.headline(documents)}** {words.NOT_FITTED}",
            md.table(["document", *LISTED, "sign right"], map(_counts, documents)),
            PICTURE,
            *map(_paragraph, documents),
            "### Every comparison",
            f"{words.INTERVAL} The numbers are those of the picture.",
            md.table(["", "comparison", "there", "here", "95 % interval", "sign", "verdict"], _rows(documents)),
            f"Recorded: {'; '.join(_recorded(documents))}. `python -m tools.published results` keeps the runs of a folder of results in `catalog/published/recorded`.",
        )
    )


PICTURE = """![Ratios in the documents against the same ratios here, with intervals](../picture/published.svg)

Each dot is a comparison that was run: on the diagonal the ratio here is the document's. Vertical bars are 95 % intervals; dashed lines are *no difference*."""


def numbered(documents: Iterable[DocumentResult]) -> Iterator[tuple[int, DocumentResult, ComparisonResult]]:
    """Comparisons with their numbers over all documents."""
    every = [(document, comparison) for document in documents for comparison in document.comparisons]
    for place, (document, item) in enumerate(every, 1):
        yield place, document, item


def _counts(document: DocumentResult) -> list[str]:
    of = Counter(comparison.judgement.verdict for comparison in document.comparisons)
    signs = Counter(comparison.sign for comparison in document.comparisons)
    known = signs[Sign.RIGHT] + signs[Sign.WRONG]
    right = f"{signs[Sign.RIGHT]} of {known}" if known else UNKNOWN
    return [f"[{document.document.name}]({md.anchor(_title(document))})", *(str(of[word]) for word in LISTED), right]


def _title(document: DocumentResult) -> str:
    return document.document.title


def _paragraph(document: DocumentResult) -> str:
    about = document.document
    lines = [f"### {_title(document)}", f"{about.publisher}, {about.published}. {about.about}."]
    reasons: dict[tuple[Verdict, str], list[ComparisonResult]] = {}
    for comparison in sorted(document.comparisons, key=lambda comparison: LISTED.index(comparison.judgement.verdict)):
        reasons.setdefault((comparison.judgement.verdict, comparison.judgement.because), []).append(comparison)
    lines.append("\n".join(f"- {_because(word, why, of)}" for (word, why), of in reasons.items()))
    for file, chart in charts(document):
        lines += [f"![{chart_title(chart)}](../picture/{file})", words.CHART]
        lines.append("\n".join(f"- {text}" for text in words.of_chart(chart)))
    return "\n\n".join(lines)


def _because(word: Verdict, why: str, of: Sequence[ComparisonResult]) -> str:
    """``**differs**: TPM (2.08 there, 2.51 here); because …``; many without a verdict are counted."""
    joint = "" if not why else f"; {why}" if why == NO_CAUSE else f"; because {why}"
    many = word == Verdict.NOT_ANSWERED and len(of) > NAMED_MAX
    return f"**{word}**: {f'{len(of)} comparisons' if many else '; '.join(map(_short, of))}{joint}."


def _short(result: ComparisonResult) -> str:
    there = words.there_ratio(result)
    return (
        f"{result.name} ({there} there)"
        if result.ratio is None
        else f"{result.name} ({there} there, {words.here_ratio(result)} here)"
    )


def _rows(documents: Sequence[DocumentResult]) -> Iterator[list[str]]:
    for place, document, result in numbered(documents):
        name = f"{document.document.name}: {result.name}"
        row = [words.there(result), words.here(result), words.extent(result), str(result.sign), words.verdict(result)]
        yield [str(place), name, *row]


def _recorded(documents: Sequence[DocumentResult]) -> Iterator[str]:
    for document in documents:
        for result in document.results:
            if result.kept is None:
                yield f"{result.name}, {result.why}" if result.path is None else result.name
            else:
                changed = f", with {'; '.join(result.changed)}" if result.changed else ""
                yield f"{result.name}, {result.kept.day}, pgdyno {result.kept.versions.get('pgdyno', UNKNOWN)}{changed}"
