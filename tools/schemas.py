"""Writes the schemas of the JSON documents that reports print, or says which file is not what its model makes.

::

    python -m tools.schemas           write them
    python -m tools.schemas --check   exit 1 when a file differs
"""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import BaseModel

from pgdyno.published.reproduce_document import ReproduceDocument
from pgdyno.report.document import CompareDocument
from pgdyno.report.schema import schema_text, write_or_check

FOLDER = Path(__file__).resolve().parents[1] / "schema"
DOCUMENTS: dict[str, type[BaseModel]] = {"compare": CompareDocument, "reproduce": ReproduceDocument}
"""Models by the command whose ``--json`` prints them."""


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit code."""
    codes = [
        write_or_check(
            FOLDER / f"{command}.schema.json",
            schema_text(model, f"pgdyno {command} --json"),
            "tools.schemas",
            arguments,
        )
        for command, model in DOCUMENTS.items()
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
