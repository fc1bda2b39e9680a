"""Every value of the catalogue says where it comes from and when that was so.

A value is ``{ value = …, source = "…", date = … }``, and its source is one of the file's
``[sources]``. What only gives a value its place (sizes, probabilities, thresholds) needs no source.
"""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path
from typing import Any

from tools.lint import Finding

VALUE_KEY = "value"
PLACE_KEYS = {"schema_version", "size_kib", "probability_ppm", "above"}
"""Numbers that are the axis of a table and not a fact."""


def check(root: Path) -> list[Finding]:
    """Values without a known source, without a date, or bare numbers."""
    findings = []
    for path in sorted((root / "catalog" / "volumes").glob("*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        sources = set(document.pop("sources", {}))
        place = f"catalog/volumes/{path.name}"
        findings += [Finding(place, 0, message) for message in _examine(document, "", sources)]
    return findings


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
