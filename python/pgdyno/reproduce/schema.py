"""Writes ``schema/reproduce.schema.json`` from the model, or says that the file is not what the model makes.

::

    python -m pgdyno.reproduce.schema           write it
    python -m pgdyno.reproduce.schema --check   exit 1 when the file differs
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pgdyno.report.schema import write_or_check
from pgdyno.reproduce.document import ReproduceDocument

SCHEMA_FILE = Path(__file__).resolve().parents[3] / "schema" / "reproduce.schema.json"
"""Where the schema lies in a clone; an installed package has none."""


def schema_text() -> str:
    """The JSON Schema (2020-12) of the document."""
    schema = ReproduceDocument.model_json_schema()
    titled = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "pgdyno reproduce --json"}
    return json.dumps(titled, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit code."""
    return write_or_check(SCHEMA_FILE, schema_text(), "pgdyno.reproduce.schema", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
