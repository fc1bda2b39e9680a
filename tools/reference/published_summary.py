"""The summary of ``docs/guide/published.md``: what agrees, what differs and why, from ``catalog/published``.

The rest of the page is written by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from pgdyno.catalog import Catalog
from pgdyno.reproduce import words
from pgdyno.reproduce.chart_svg import title
from pgdyno.reproduce.library import Library, library
from pgdyno.reproduce.results import Result, recorded_in
from pgdyno.reproduce.told import DocumentTold, Told, tell
from pgdyno.reproduce.verdict import NO_CAUSE, Sign, Word
from pgdyno.text import UNKNOWN
from tools.reference import markdown as md
from tools.reference.published_lines import charts

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
FILE = "published.md"
KEPT = ROOT / "catalog" / "published" / "recorded"
BEGIN = f"<!-- summary:begin: {md.MARK} from `catalog/published`; change it there. -->"
END = "<!-- summary:end -->"
NO_RUNS = "no recorded runs of {name}.toml are in the repository"
NAMED_MAX = 2
"""Comparisons without a verdict are named up to here: the table below has them all, and this is to be read in a minute."""
LISTED = (Word.AGREES, Word.WITHIN, Word.DIFFERS, Word.UNTOLD)


def page() -> str:
    """The text of the page, with the summary as it should be."""
    text = (GUIDE / FILE).read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"docs/guide/{FILE} has no place for the summary: put back {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{summary(told())}\n\n{END}{after}"


@cache
def told() -> tuple[DocumentTold, ...]:
    """The documents of the repository beside what was kept."""
    with Catalog() as catalog:
        found = library()
        return tuple(tell(one, kept_of(found, KEPT), catalog.resolve) for one in found.documents)


def kept_of(found: Library, folder: Path) -> dict[str, Result]:
    """The results of all experiment files in a folder; paths of one machine are left out."""
    experiments = [found.experiment(run) for document in found.documents for run in document.run]
    results = recorded_in(folder, experiments)
    return {
        name: one if one.path is not None else replace(one, why=NO_RUNS.format(name=name))
        for name, one in results.items()
    }


def summary(documents: Sequence[DocumentTold]) -> str:
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


def numbered(documents: Iterable[DocumentTold]) -> Iterator[tuple[int, DocumentTold, Told]]:
    """Comparisons with their numbers over all documents."""
    every = [(document, one) for document in documents for one in document.comparisons]
    for place, (document, one) in enumerate(every, 1):
        yield place, document, one


def _counts(document: DocumentTold) -> list[str]:
    of = Counter(one.judged.word for one in document.comparisons)
    signs = Counter(one.sign for one in document.comparisons)
    known = signs[Sign.RIGHT] + signs[Sign.WRONG]
    right = f"{signs[Sign.RIGHT]} of {known}" if known else UNKNOWN
    return [f"[{document.document.name}]({md.anchor(_title(document))})", *(str(of[word]) for word in LISTED), right]


def _title(document: DocumentTold) -> str:
    return document.document.title


def _paragraph(document: DocumentTold) -> str:
    about = document.document
    lines = [f"### {_title(document)}", f"{about.publisher}, {about.published}. {about.about}."]
    reasons: dict[tuple[Word, str], list[Told]] = {}
    for one in sorted(document.comparisons, key=lambda one: LISTED.index(one.judged.word)):
        reasons.setdefault((one.judged.word, one.judged.because), []).append(one)
    lines.append("\n".join(f"- {_because(word, why, of)}" for (word, why), of in reasons.items()))
    for file, chart in charts(document):
        lines += [f"![{title(chart)}](../picture/{file})", words.CHART]
        lines.append("\n".join(f"- {text}" for text in words.of_chart(chart)))
    return "\n\n".join(lines)


def _because(word: Word, why: str, of: Sequence[Told]) -> str:
    """``**differs**: TPM (2.08 there, 2.51 here); because …``; many without a verdict are counted."""
    joint = "" if not why else f"; {why}" if why == NO_CAUSE else f"; because {why}"
    many = word == Word.UNTOLD and len(of) > NAMED_MAX
    return f"**{word}**: {f'{len(of)} comparisons' if many else '; '.join(map(_short, of))}{joint}."


def _short(one: Told) -> str:
    there = words.there_ratio(one)
    return (
        f"{one.name} ({there} there)"
        if one.ratio is None
        else f"{one.name} ({there} there, {words.here_ratio(one)} here)"
    )


def _rows(documents: Sequence[DocumentTold]) -> Iterator[list[str]]:
    for place, document, one in numbered(documents):
        name = f"{document.document.name}: {one.name}"
        row = [words.there(one), words.here(one), words.extent(one), str(one.sign), words.verdict(one)]
        yield [str(place), name, *row]


def _recorded(documents: Sequence[DocumentTold]) -> Iterator[str]:
    for document in documents:
        for one in document.results:
            if one.kept is None:
                yield f"{one.name}, {one.why}" if one.path is None else one.name
            else:
                changed = f", with {'; '.join(one.changed)}" if one.changed else ""
                yield f"{one.name}, {one.kept.day}, pgdyno {one.kept.versions.get('pgdyno', UNKNOWN)}{changed}"
