"""Writes ``schema/diagnose.schema.json`` from the model, or says that the file is not what the model makes.

::

    python -m pgdyno.diagnose.schema           write it
    python -m pgdyno.diagnose.schema --check   exit 1 when the file differs
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pgdyno.diagnose.document import DiagnoseDocument
from pgdyno.report.schema import write_or_check

SCHEMA_FILE = Path(__file__).resolve().parents[3] / "schema" / "diagnose.schema.json"
"""Where the schema lies in a clone; an installed package has none."""


def schema_text() -> str:
    """The JSON Schema (2020-12) of the document."""
    schema = DiagnoseDocument.model_json_schema()
    titled = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "pgdyno diagnose --json"}
    return json.dumps(titled, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit code."""
    return write_or_check(SCHEMA_FILE, schema_text(), "pgdyno.diagnose.schema", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
