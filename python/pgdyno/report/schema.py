"""Writes ``schema/compare.schema.json`` from the model, or says that the file is not what the model makes.

::

    python -m pgdyno.report.schema           write it
    python -m pgdyno.report.schema --check   exit 1 when the file differs
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pgdyno.report.document import CompareDocument

SCHEMA_FILE = Path(__file__).resolve().parents[3] / "schema" / "compare.schema.json"
"""Where the schema lies in a clone; an installed package has none."""


def schema_text() -> str:
    """The JSON Schema (2020-12) of the document."""
    schema = CompareDocument.model_json_schema()
    titled = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "pgdyno compare --json"}
    return json.dumps(titled, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m pgdyno.report.schema [--check]", file=sys.stderr)
        return 2
    if not arguments:
        SCHEMA_FILE.parent.mkdir(exist_ok=True)
        SCHEMA_FILE.write_text(schema_text())
        return 0
    if SCHEMA_FILE.is_file() and SCHEMA_FILE.read_text() == schema_text():
        return 0
    print(f"{SCHEMA_FILE} is not what the model makes: run `python -m pgdyno.report.schema`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
