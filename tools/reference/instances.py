"""``instances.md``: every instance type of the catalogue, by family."""

from __future__ import annotations

import csv
import tomllib
from itertools import groupby
from pathlib import Path
from typing import Any

from tools.reference import markdown as md

FOLDER = Path(__file__).resolve().parents[2] / "catalog" / "instances"
INTRODUCTION = """
The properties of each instance type. EBS limits apply to all of its volumes together: the first figure is the sustained limit, the second one
is available for 30 minutes in 24 hours. Megabytes are decimal here, as in the source. [The catalogue](../../catalog/README.md) explains the
columns; [`pgdyno catalog show`](cli.md#pgdyno-catalog-show) prints one type in binary units.
"""
HEADER = ["type", "architecture", "vCPUs", "memory (GiB)", "EBS (MB/s)", "EBS (IOPS)", "EBS-optimized", "USD an hour"]


def page() -> str:
    """The text of the page."""
    parts: list[str] = []
    earlier: list[str] = []
    for file in sorted(FOLDER.glob("*.toml")):
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        if "as_of" in document:
            earlier.append(_earlier(document))
            continue
        with (FOLDER / document["rows"]).open(encoding="utf-8", newline="") as rows:
            types = list(csv.DictReader(rows))
        families = groupby(types, key=lambda type_: type_["name"].partition(".")[0])
        tables = [f"## {name}\n\n{md.table(HEADER, map(_row, members))}" for name, members in families]
        parts += [_sources(document, len(types)), *tables]
    return md.page("Instance types", "`catalog/instances`", INTRODUCTION, *parts, *earlier)


def _earlier(document: dict[str, Any]) -> str:
    """Limits of a month that is past."""
    month, guide = document["as_of"], document["sources"]["guide"]
    with (FOLDER / document["rows"]).open(encoding="utf-8", newline="") as rows:
        cells = [[f"{row['name']}@{month}", *_limits(row)] for row in csv.DictReader(rows)]
    about = f"What a type could have of its volumes then: [{guide['title']}]({guide['url']})."
    return (
        f"## Limits of {month}\n\n{about}\n\n{md.table(['type', 'EBS (MB/s)', 'EBS (IOPS)', 'EBS-optimized'], cells)}"
    )


def _limits(one: dict[str, str]) -> list[str]:
    throughput = _span(one["baseline_mb_per_s"], one["maximum_mb_per_s"])
    return [throughput, _span(one["baseline_iops"], one["maximum_iops"]), one["ebs"]]


def _sources(document: dict[str, Any], types: int) -> str:
    rows = [
        [md.code(name), md.code(column["source"]), str(column["date"])] for name, column in document["columns"].items()
    ]
    sources = "\n".join(
        f"- `{key}`: [{source['title']}]({source['url']})" for key, source in document["sources"].items()
    )
    about = f"{types:,} types; prices of {document['region']}, Linux on demand."
    return f"{about}\n\n{_xen(document['xen'])}\n\n{md.table(['column', 'source', 'date'], rows)}\n\n{sources}"


def _xen(facts: dict[str, Any]) -> str:
    """The families that are not Nitro, and what one volume does there at most."""
    families, most = facts["families"], facts["volume_iops"].items()
    volumes = ", ".join(
        f"{md.code(name)} {item['value']:,} IOPS ({md.code(item['source'])}, {item['date']})" for name, item in most
    )
    named = f"{', '.join(families['value'])} ({md.code(families['source'])}, {families['date']})"
    return f"Not of the Nitro System are the families {named}. One volume does there at most: {volumes}."


def _row(one: dict[str, str]) -> list[str]:
    memory = f"{int(one['memory_mib']) / 1024:,.3f}".rstrip("0").rstrip(".")
    return [one["name"], one["arch"], one["vcpus"], memory, *_limits(one), one["usd_per_hour"]]


def _span(baseline: str, maximum: str) -> str:
    """Both figures, one where they are the same, nothing where there is no limit."""
    return " to ".join(dict.fromkeys(f"{float(figure):,g}" for figure in (baseline, maximum) if figure))
