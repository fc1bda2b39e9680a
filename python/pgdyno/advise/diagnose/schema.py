"""Writes the schemas of ``pgdyno diagnose --json`` from the models, or says that a file is not what its model makes.

::

    python -m pgdyno.advise.diagnose.schema           write them
    python -m pgdyno.advise.diagnose.schema --check   exit 1 when a file differs
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.report.schema import schema_text, write_or_check

from .calendar_document import CalendarDocument
from .document import DiagnoseDocument

if TYPE_CHECKING:
    from pydantic import BaseModel

FOLDER = Path(__file__).resolve().parents[4] / "schema"
"""Where the schemas lie in a clone; an installed package has none."""
DOCUMENTS: dict[str, tuple[type[BaseModel], str]] = {
    "diagnose.schema.json": (DiagnoseDocument, "pgdyno diagnose --json"),
    "diagnose-calendar.schema.json": (CalendarDocument, "pgdyno diagnose DIR --json"),
}
"""File -> its model and its title."""


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit code."""
    codes = [
        write_or_check(FOLDER / name, schema_text(*document), "pgdyno.advise.diagnose.schema", arguments)
        for name, document in DOCUMENTS.items()
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
