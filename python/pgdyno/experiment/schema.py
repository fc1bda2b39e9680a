"""The JSON Schema of an experiment file, for editors that check TOML: ``schema/experiment.schema.json``.

::

    python -m pgdyno.experiment.schema           write it
    python -m pgdyno.experiment.schema --check   exit 1 when the file differs
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pgdyno.experiment.arm import ExperimentFile
from pgdyno.report.schema import write_or_check

from ..kinds.registry import DEFAULT, KINDS

SCHEMA_FILE = Path(__file__).resolve().parents[3] / "schema" / "experiment.schema.json"
"""Where the schema lies in a clone; an installed package has none."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_text() -> str:
    """The JSON Schema (2020-12) of an experiment file."""
    schema = _of_a_file(ExperimentFile.model_json_schema())
    for name, kind in KINDS.items():
        # A table that does not say its kind is of one kind alone.
        schema["$defs"][kind.__name__]["required"] = [] if name == DEFAULT else ["kind"]
    return json.dumps({"$schema": _DIALECT, **schema, "title": "pgdyno experiment file"}, indent=2) + "\n"


def _of_a_file(part: Any) -> Any:
    """The model's schema as far as TOML can say it: a key that is omitted instead of null, and no invented titles."""
    if isinstance(part, list):
        return [_of_a_file(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    kept = {
        name: {key: _of_a_file(field) for key, field in inner.items()}
        if name in ("properties", "$defs")
        else _of_a_file(inner)
        for name, inner in part.items()
        if not (name == "title" and isinstance(inner, str)) and not (name == "default" and inner is None)
    }
    choices = [choice for choice in kept.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        kept.pop("anyOf")
        kept |= choices[0]
    return kept


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit code."""
    return write_or_check(SCHEMA_FILE, schema_text(), "pgdyno.experiment.schema", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
