"""Writes ``schema/reproduce.schema.json`` from the model, or says that the file is not what the model makes.

::

    python -m pgdyno.published.reproduce.schema           write it
    python -m pgdyno.published.reproduce.schema --check   exit 1 when the file differs
"""

from __future__ import annotations

import sys
from pathlib import Path

from pgdyno.report.schema import schema_text, write_or_check

from .document import ReproduceDocument

SCHEMA_FILE = Path(__file__).resolve().parents[4] / "schema" / "reproduce.schema.json"
"""Where the schema lies in a clone; an installed package has none."""


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit code."""
    return write_or_check(
        SCHEMA_FILE,
        schema_text(ReproduceDocument, "pgdyno reproduce --json"),
        "pgdyno.published.reproduce.schema",
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
