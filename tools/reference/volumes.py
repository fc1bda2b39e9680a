"""``volumes.md``: every fact of the catalogue's volumes with its source and date."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from tools.reference import markdown as md

FOLDER = Path(__file__).resolve().parents[2] / "catalog" / "volumes"
INTRODUCTION = """
The volume types, with the source of each number. A volume is written `TYPE:key=value,...`; the
[catalogue](../../catalog/README.md) explains the keys, the statuses, and how service times are computed from
floor, mean and shape. A value without a status is published by the provider.
"""
LABELS = {"size_kib", "probability_ppm", "above"}
"""Numbers that are the axis of a list of values."""
PLACES = LABELS | {"name"}
"""What tells the entries of a list of tables apart."""


def page() -> str:
    """The text of the page."""
    documents = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))]
    rows = [[f"[{document['name']}]({md.anchor(document['name'])})", document["summary"]] for document in documents]
    overview = md.table(["type", "what it is"], rows)
    return md.page(
        "Volumes", "`catalog/volumes`", INTRODUCTION, overview, *(_section(document) for document in documents)
    )


def _section(document: dict[str, Any]) -> str:
    sources = document.pop("sources")
    aliases = [f"`{alias['name']}` means the same: {alias['reason']}." for alias in document.pop("aliases", [])]
    facts = md.table(["fact", "value", "status", "source", "date"], _facts(document, ""))
    listed = "\n".join(f"- `{key}`: {_source(source)}" for key, source in sources.items())
    head = f"## {document['name']}\n\n{document['summary']}. {' '.join(aliases)}".rstrip()
    return "\n\n".join([head, facts, f"Sources of {document['name']}:", listed])


def _source(source: dict[str, str]) -> str:
    return f"[{source['title']}]({source['url']})" if "url" in source else source["title"]


def _facts(table: dict[str, Any], name: str) -> list[list[str]]:
    if "value" in table:
        status = table.get("status", "published")
        return [[md.code(name), text(table["value"]), status, md.code(table["source"]), str(table["date"])]]
    rows = []
    for key, value in table.items():
        inner = f"{name}.{key}" if name else key
        if isinstance(value, dict):
            rows += _facts(value, inner)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for entry in value:
                label = ", ".join(f"{axis} {text(entry[axis])}" for axis in sorted(PLACES & entry.keys()))
                facts = {key: fact for key, fact in entry.items() if key not in PLACES}
                rows += _facts(facts, f"{inner}[{label}]")
        elif key in LABELS:
            rows.append([md.code(inner), text(value), "", "", ""])
    return rows


def text(value: Any) -> str:
    """A value for people: separators in large numbers, lists with spaces."""
    if isinstance(value, list):
        return " ".join(text(entry) for entry in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
