"""``reproduce-json.md``: the document that ``pgdyno reproduce --json`` prints."""

from __future__ import annotations

from pgdyno.published.reproduce_document import ReproduceDocument
from tools.reference import markdown as md
from tools.reference import schema

INTRODUCTION = """
The output of `pgdyno reproduce --json`. Fields may be added, but are never renamed and never change their meaning; a figure that is not
known is null. [The schema](../../schema/reproduce.schema.json) has the same for programs.
"""


def page() -> str:
    """The text of the page."""
    sections = schema.sections(ReproduceDocument, "The document")
    return md.page(
        "JSON of reproduced comparisons", "`python/pgdyno/published/reproduce_document.py`", INTRODUCTION, *sections
    )
