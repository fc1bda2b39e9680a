"""Writes the generated pages of the reference, the pictures and the summary of published comparisons, or with ``--check`` says which ones are not what their source makes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.reference import (
    cli,
    compare_json,
    diagnose_json,
    environment,
    errors,
    experiment,
    instances,
    measured,
    metrics,
    picture,
    published,
    published_chart,
    published_items,
    published_lines,
    published_summary,
    records,
    reproduce_json,
    settings,
    tables,
    volumes,
)
from tools.reference.markdown import MARK

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli.page,
    "experiment-file.md": experiment.page,
    "volumes.md": volumes.page,
    "instances.md": instances.page,
    "published_figures.md": published.page,
    "published_items.md": published_items.page,
    "records.md": records.page,
    "tables.md": tables.page,
    "metrics.md": metrics.page,
    "compare-json.md": compare_json.page,
    "diagnose-json.md": diagnose_json.page,
    "reproduce-json.md": reproduce_json.page,
    "settings.md": settings.page,
    "environment.md": environment.page,
    "errors.md": errors.page,
}
"""Name and writer of every page that is made of sources; those of records are :mod:`tools.reference.measured`'s."""


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m tools.reference [--check]", file=sys.stderr)
        return 2
    made = {
        "docs/reference": (FOLDER, {name: write() for name, write in PAGES.items()} | measured.pages()),
        "docs/picture": (
            picture.FOLDER,
            {
                picture.FILE: picture.picture(),
                published_chart.FILE: published_chart.picture(),
                **published_lines.pictures(published_summary.judge_documents()),
            },
        ),
        "docs/guide": (published_summary.GUIDE, {published_summary.FILE: published_summary.page()}),
    }
    if arguments:
        document = {f"{where}/{name}": why for where, kept in made.items() for name, why in stale(*kept).items()}
        for path, why in document.items():
            print(f"{path} {why}", file=sys.stderr)
        return 1 if document else 0
    for folder, texts in made.values():
        folder.mkdir(exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    return 0


def stale(folder: Path, made: Mapping[str, str]) -> dict[str, str]:
    """Pages that differ from what their source makes, are missing, or have no source any more, with what to do."""
    stale = {}
    for name, text in made.items():
        path = folder / name
        if not path.is_file():
            stale[name] = "is missing: write it with `make generate`"
        elif path.read_text(encoding="utf-8") != text:
            stale[name] = "is not what its source makes: change the source, then `make generate`"
    for path in sorted(folder.glob("*.md")):
        if path.name not in made and MARK in path.read_text(encoding="utf-8"):
            stale[path.name] = "has no writer any more: remove it, or add its writer to tools/reference/__main__.py"
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
