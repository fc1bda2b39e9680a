"""``published_items.md``: what the published documents do or say, and where pgdyno has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from pgdyno.published import PublishedDocument, read_documents
from tools.published.items import FOLDER, LETTERS, Item, read_items
from tools.reference import markdown as md

ROOT = Path(__file__).resolve().parents[2]
INTRODUCTION = """
What five documents about PostgreSQL on cloud storage do or say, beside the figures that they compare, and where pgdyno has it: *yes*, *in part* or *no*, with
what is missing and why. [Published comparisons](../guide/published.md) has the figures.
"""
STATES = ("yes", "in part", "no")


def page() -> str:
    """The text of the page."""
    titles = {read_document.name: read_document for read_document in read_documents(ROOT / "catalog" / "published")}
    document = {name: read_items(ROOT / FOLDER / f"{name}.toml").item for name in LETTERS}
    every = [item for items in document.values() for item in items]
    rows = [
        _counts(f"[{titles[name].title}]({md.anchor(titles[name].title)})", items) for name, items in document.items()
    ]
    return md.page(
        "What the documents do, and where it is",
        f"`{FOLDER}`",
        INTRODUCTION,
        md.table(["document", "items", *STATES], [*rows, _counts("all", every)]),
        *(_section(titles[name], items) for name, items in document.items()),
    )


def _counts(name: str, items: Sequence[Item]) -> list[str]:
    of = Counter(item.state for item in items)
    return [name, str(len(items)), *(str(of[state]) for state in STATES)]


def _section(document: PublishedDocument, items: Sequence[Item]) -> str:
    header = ["", "the document", "here", "pgdyno", "with", "read", "missing"]
    return f"## {document.title}\n\n{md.table(header, map(_row, items))}"


def _row(item: Item) -> list[str]:
    commands = ", ".join(f"[{command}](cli.md{md.anchor('pgdyno ' + command)})" for command in item.commands)
    pages = ", ".join(f"[{PurePosixPath(page).name}]({_relative(page)})" for page in item.pages)
    return [item.id, item.does, item.state, item.here, commands, pages, item.missing]


def _relative(page: str) -> str:
    """The address of a file of the repository, from ``docs/reference``."""
    path = PurePosixPath(page)
    if path.parts[0] != "docs":
        return f"../../{page}"
    return path.name if path.parts[1] == "reference" else f"../{'/'.join(path.parts[1:])}"
