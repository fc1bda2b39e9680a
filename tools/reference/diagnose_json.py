"""``diagnose-json.md``: the document that ``pgdyno diagnose --json`` prints."""

from __future__ import annotations

from pgdyno.diagnose.document import DiagnoseDocument
from tools.reference import markdown as md
from tools.reference import schema

INTRODUCTION = """
The output of `pgdyno diagnose --json`. Fields may be added, but are never renamed and never change their meaning; a figure that was not
seen is null. [The schema](../../schema/diagnose.schema.json) has the same for programs.
"""


def page() -> str:
    """The text of the page."""
    found = schema.sections(DiagnoseDocument, "The document")
    return md.page("JSON of a diagnosis", "`python/pgdyno/diagnose/document.py`", INTRODUCTION, *found)
