"""``published_items.md``: what the published documents do or say, and where pgdyno has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from pgdyno.published import Document, read_documents
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
    titles = {one.name: one for one in read_documents(ROOT / "catalog" / "published")}
    found = {name: read_items(ROOT / FOLDER / f"{name}.toml").item for name in LETTERS}
    every = [item for items in found.values() for item in items]
    rows = [_counts(f"[{titles[name].title}]({md.anchor(titles[name].title)})", items) for name, items in found.items()]
    return md.page(
        "What the documents do, and where it is",
        f"`{FOLDER}`",
        INTRODUCTION,
        md.table(["document", "items", *STATES], [*rows, _counts("all", every)]),
        *(_section(titles[name], items) for name, items in found.items()),
    )


def _counts(name: str, items: Sequence[Item]) -> list[str]:
    of = Counter(one.state for one in items)
    return [name, str(len(items)), *(str(of[state]) for state in STATES)]


def _section(document: Document, items: Sequence[Item]) -> str:
    header = ["", "the document", "here", "pgdyno", "with", "read", "missing"]
    return f"## {document.title}\n\n{md.table(header, map(_row, items))}"


def _row(one: Item) -> list[str]:
    commands = ", ".join(f"[{command}](cli.md{md.anchor('pgdyno ' + command)})" for command in one.commands)
    pages = ", ".join(f"[{PurePosixPath(page).name}]({_relative(page)})" for page in one.pages)
    return [one.id, one.does, one.state, one.here, commands, pages, one.missing]


def _relative(page: str) -> str:
    """The address of a file of the repository, from ``docs/reference``."""
    path = PurePosixPath(page)
    if path.parts[0] != "docs":
        return f"../../{page}"
    return path.name if path.parts[1] == "reference" else f"../{'/'.join(path.parts[1:])}"
