"""``compare-json.md``: the document that ``--json`` prints."""

from __future__ import annotations

from pgdyno.report.document import CompareDocument
from tools.reference import markdown as md
from tools.reference import schema

INTRODUCTION = """
The output of `pgdyno compare --json`, `run --json` and `report --json`. Fields may be added, but are never renamed and never change their meaning; a
figure that was not recorded is null. [The schema](../../schema/compare.schema.json) has the same for programs.
"""


def page() -> str:
    """The text of the page."""
    sections = schema.sections(CompareDocument, "The document")
    return md.page("JSON of a comparison", "`python/pgdyno/report/document.py`", INTRODUCTION, *sections)
