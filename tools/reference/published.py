"""``published_figures.md``: what published documents measured, their arithmetic recomputed, and what they do not state."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from pgdyno.published import PublishedDocument, read_documents
from pgdyno.published.document import Arithmetic, Cell, FigureTable, PublishedComparison, UnstatedChoice
from pgdyno.published.formula import evaluate
from tools.reference import markdown as md

FOLDER = Path(__file__).resolve().parents[2] / "catalog" / "published"
INTRODUCTION = """
Figures of documents that measured PostgreSQL on cloud storage, as they stand there. Ratios and arithmetic are computed from them. **Stated** is what the
document says of the same, or what should come out; it adds up if the computed figure rounds to it in the digits that are printed. A figure that the document calls "about" or
"over" has a `~` and may differ by 5 %. [Published comparisons, repeated](../guide/published.md) has what pgdyno measured.
"""


def page() -> str:
    """The text of the page."""
    documents = read_documents(FOLDER)
    rows = [
        [
            f"[{document.title}]({md.anchor(document.title)})",
            document.publisher,
            document.published,
            f"{document.figures():,}",
            str(len(document.comparison)),
            _adding_up(document),
        ]
        for document in documents
    ]
    header = ["document", "publisher", "date", "figures", "ratios", "claims that add up"]
    return md.page(
        "Published figures", "`catalog/published`", INTRODUCTION, md.table(header, rows), *map(_section, documents)
    )


def _adding_up(document: PublishedDocument) -> str:
    claims: list[Arithmetic | PublishedComparison] = [
        *document.arithmetic,
        *(comparison for comparison in document.comparison if comparison.stated and comparison.high),
    ]
    return f"{sum(document.outcome(claim).agrees for claim in claims)} of {len(claims)}"


def _section(document: PublishedDocument) -> str:
    parts = [
        f"## {document.title}",
        f"{document.about}.",
        "Stated of the configuration:",
        "\n".join(f"- {key.replace('_', ' ')}: {value}" for key, value in document.stated.items()),
        "Comparisons:",
        md.table(
            ["compared", "first", "second", "ratio", "stated", "where it differs"],
            map(_Row(document), document.comparison),
        ),
        "Arithmetic:",
        md.table(["claim", "computed", "stated or expected", "adds up", "where it does not"], _arithmetic(document)),
        "Not stated:",
        md.table(["what", "plausible", "why"], map(_unstated, document.unstated)),
        "Figures:",
        md.table(["measured or promised", "of", "figure", "unit", "where"], _figures(document)),
        *(_table(table) for table in document.table),
    ]
    if document.unreadable:
        unread = [[unreadable.at, unreadable.shows] for unreadable in document.unreadable]
        parts += [
            "Not read, because the copy has a picture or nothing there:",
            md.table(["where", "what it shows"], unread),
        ]
    return "\n\n".join(part for part in parts if part)


class _Row:
    """Writes the row of a comparison of one document."""

    def __init__(self, document: PublishedDocument) -> None:
        self.document = document

    def __call__(self, comparison: PublishedComparison) -> list[str]:
        outcome = self.document.outcome(comparison)
        sides = [
            number(evaluate(formula, self.document.scope)) if formula else ""
            for formula in (comparison.high, comparison.low)
        ]
        stated = "" if outcome.stated is None else str(outcome.stated)
        return [comparison.name, *sides, number(outcome.computed), stated, comparison.because]


def _arithmetic(document: PublishedDocument) -> list[list[str]]:
    rows = []
    for arithmetic in document.arithmetic:
        outcome = document.outcome(arithmetic)
        stated = printed(outcome.stated) if outcome.stated is not None else ""
        adds_up = "yes" if outcome.agrees else "no"
        claim = f"{arithmetic.claim}: `{arithmetic.formula}`"
        rows.append([claim, f"{number(outcome.computed)} {arithmetic.unit}", stated, adds_up, arithmetic.because])
    return rows


def _unstated(choice: UnstatedChoice) -> list[str]:
    if choice.choices:
        return [choice.what, " or ".join(choice.choices), choice.why]
    assert choice.low is not None
    assert choice.high is not None
    unit = "" if choice.unit == "count" else f" {choice.unit}"
    return [choice.what, f"{printed(choice.low)} to {printed(choice.high)}{unit}", choice.why]


def _figures(document: PublishedDocument) -> list[list[str]]:
    return [
        [
            figure.measures,
            figure.of,
            ("~" if figure.approximate else "") + printed(figure.value),
            figure.unit,
            figure.at,
        ]
        for figure in document.figure
    ]


def _table(table: FigureTable) -> str:
    about = f"{table.of or table.name}: {', '.join(f'{column.measures} ({column.unit})' for column in table.columns)}."
    reading = f" Reading: {table.reading}." if table.reading else ""
    grid = len(table.axes) == 2 and len(table.columns) == 1
    if not grid:
        places = table.places()
        header = [*(axis.replace("_", " ") for axis in table.axes), *(column.unit for column in table.columns), "where"]
        rows = [[*map(_cell, row), place] for row, place in zip(table.rows, places, strict=True)]
        return f"{about}{reading}\n\n{md.table(header, rows)}"
    downs, acrosses = (list(dict.fromkeys(row[axis] for row in table.rows)) for axis in (0, 1))
    values = {(row[0], row[1]): row[2] for row in table.rows}
    lines = [[_cell(down), *(_cell(values.get((down, across), "")) for across in acrosses)] for down in downs]
    header = [f"{table.axes[0]} \\ {table.axes[1]}", *map(_cell, acrosses)]
    return f"{about} {table.at}.{reading}\n\n{md.table(header, lines)}"


def _cell(value: Cell) -> str:
    return value if isinstance(value, str) else printed(value)


def printed(value: Decimal) -> str:
    """A figure in the digits of its document, with separators."""
    return f"{value:,f}"


def number(value: Decimal | None) -> str:
    """A computed figure: four digits, or two decimals from a thousand on. Empty where there is none."""
    if value is None:
        return ""
    if abs(value) >= 1000:
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    return f"{float(value):.4g}"
