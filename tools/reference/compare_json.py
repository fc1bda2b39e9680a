"""``compare-json.md``: the document that ``--json`` prints."""

from __future__ import annotations

from pgdyno.report.document import CompareDocument
from tools.reference import markdown as md
from tools.reference import schema

INTRODUCTION = """
What `pgdyno compare --json`, `run --json` and `report --json` print. A field is added, never renamed or given another meaning; a
figure that was not recorded is null. [The schema](../../schema/compare.schema.json) is the same for programs.
"""


def page() -> str:
    """The text of the page."""
    found = schema.sections(CompareDocument, "The document")
    return md.page("JSON of a comparison", "`python/pgdyno/report/document.py`", INTRODUCTION, *found)
