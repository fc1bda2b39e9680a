"""Every value of the catalogue says where it comes from and when that was so.

A value is ``{ value = …, source = "…", date = … }``, and its source is one of the file's
``[sources]``. What only gives a value its place (sizes, probabilities, thresholds) needs no source.

Tables of many rows (``instances/*.csv``) have source and date by the column, in the file beside them.
"""

from __future__ import annotations

import csv
import datetime
import tomllib
from pathlib import Path
from typing import Any

from tools.lint import Finding

VALUE_KEY = "value"
KEY_COLUMN = "name"
PLACE_KEYS = {"schema_version", "size_kib", "probability_ppm", "above"}
"""Numbers that are the axis of a table and not a fact."""


def check(root: Path) -> list[Finding]:
    """Values without a known source, without a date, or bare numbers."""
    findings = []
    catalogue = root / "catalog"
    for path in sorted([*catalogue.glob("*.toml"), *(catalogue / "volumes").glob("*.toml")]):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        sources = set(document.pop("sources", {}))
        place = path.relative_to(root).as_posix()
        findings += [Finding(place, 0, message) for message in _examine(document, "", sources)]
    for path in sorted((root / "catalog" / "instances").glob("*.toml")):
        findings += [Finding(f"catalog/instances/{path.name}", 0, message) for message in _examine_rows(path)]
    return findings


def _examine_rows(path: Path) -> list[str]:
    """A table of rows: every column has its source and date, every row a name of its own."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    with (path.parent / document["rows"]).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns, sources = document.get("columns", {}), set(document.get("sources", {}))
    beside = {
        key: item for key, item in document.items() if isinstance(item, dict) and key not in {"columns", "sources"}
    }
    messages = _examine(beside, "", sources)
    for column in dict.fromkeys([*(rows[0] if rows else ()), *columns]):
        if column == KEY_COLUMN:
            continue
        if column not in columns:
            messages.append(
                f"column {column} of {document['rows']} needs [columns] {column} = {{ source = …, date = … }}"
            )
        elif not rows or column not in rows[0]:
            messages.append(f"{document['rows']} has no column {column}: remove it from [columns]")
        else:
            messages += _examine_fact(columns[column], f"columns.{column}", sources)
    names = [row[KEY_COLUMN] for row in rows]
    twice = sorted({name for name in names if names.count(name) > 1})
    return messages + [f"{name} is there twice in {document['rows']}: remove one" for name in twice]


def _examine(table: dict[str, Any], name: str, sources: set[str]) -> list[str]:
    if VALUE_KEY in table:
        return _examine_fact(table, name, sources)
    messages = []
    for key, value in table.items():
        inner = f"{name}.{key}" if name else key
        if isinstance(value, dict):
            messages += _examine(value, inner, sources)
        elif isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
            for number, entry in enumerate(value, 1):
                messages += _examine(entry, f"{inner}[{number}]", sources)
        elif not isinstance(value, str) and key not in PLACE_KEYS:
            messages.append(f"{inner} is a bare value: write {{ value = …, source = …, date = … }}")
    return messages


def _examine_fact(fact: dict[str, Any], name: str, sources: set[str]) -> list[str]:
    messages = []
    if fact.get("source") not in sources:
        known = ", ".join(sorted(sources)) or "none yet"
        messages.append(f"{name} needs `source`, one of [sources] (there are: {known})")
    if not isinstance(fact.get("date"), datetime.date):
        messages.append(f"{name} needs `date`, when its source said so (as 2026-11-21, without quotes)")
    return messages
