"""``diagnose-json.md``: the document that ``pgdyno diagnose --json`` prints."""

from __future__ import annotations

from pgdyno.advise.diagnose.document import CalendarDocument, DiagnoseDocument
from tools.reference import markdown as md
from tools.reference import schema

INTRODUCTION = """
The output of `pgdyno diagnose --json`. Fields may be added, but are never renamed and never change their meaning; a figure that was not
seen is null. [The schema](../../schema/diagnose.schema.json) has the same for programs.
"""
CALENDAR = """
The output of `pgdyno diagnose DIR --json`, of a directory with several watches. [The schema](../../schema/diagnose-calendar.schema.json).
"""


def page() -> str:
    """The text of the page."""
    sections = schema.sections(DiagnoseDocument, "The document")
    known = {part.split("\n", 1)[0] for part in sections}
    hours = [
        part
        for part in schema.sections(CalendarDocument, "A directory of watches")
        if part.split("\n", 1)[0] not in known
    ]
    source = "`python/pgdyno/advise/diagnose/document.py` and `calendar_document.py`"
    return md.page("JSON of a diagnosis", source, INTRODUCTION, *sections, CALENDAR.strip(), *hours)
