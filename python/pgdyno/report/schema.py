"""Writes ``schema/compare.schema.json`` from the model, or says that the file is not what the model makes.

::

    python -m pgdyno.report.schema           write it
    python -m pgdyno.report.schema --check   exit 1 when the file differs
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.report.document import CompareDocument

if TYPE_CHECKING:
    from pydantic import BaseModel

SCHEMA_FILE = Path(__file__).resolve().parents[3] / "schema" / "compare.schema.json"
"""Where the schema lies in a clone; an installed package has none."""


def schema_text(model: type[BaseModel], title: str) -> str:
    """The JSON Schema (2020-12) of a document that a command prints."""
    titled = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema(), "title": title}
    return json.dumps(titled, indent=2, ensure_ascii=False) + "\n"


def write_or_check(file: Path, text: str, module: str, arguments: list[str]) -> int:
    """Write a generated file, or with ``--check`` compare it; returns the exit code. ``module`` is who makes it."""
    if arguments not in ([], ["--check"]):
        print(f"usage: python -m {module} [--check]", file=sys.stderr)
        return 2
    if not arguments:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return 0
    if file.is_file() and file.read_text() == text:
        return 0
    print(f"{file} is not what the model makes: run `python -m {module}`", file=sys.stderr)
    return 1


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit code."""
    return write_or_check(
        SCHEMA_FILE, schema_text(CompareDocument, "pgdyno compare --json"), "pgdyno.report.schema", arguments
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
