"""Writes the generated pages of the reference, or with ``--check`` says which ones are not what their source makes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.reference import (
    cli,
    compare_json,
    environment,
    errors,
    experiment,
    instances,
    metrics,
    records,
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
    "records.md": records.page,
    "tables.md": tables.page,
    "metrics.md": metrics.page,
    "compare-json.md": compare_json.page,
    "settings.md": settings.page,
    "environment.md": environment.page,
    "errors.md": errors.page,
}
"""Name and writer of every generated page."""


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m tools.reference [--check]", file=sys.stderr)
        return 2
    made = {name: write() for name, write in PAGES.items()}
    if arguments:
        found = stale(FOLDER, made)
        for name, why in found.items():
            print(f"docs/reference/{name} {why}", file=sys.stderr)
        return 1 if found else 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


def stale(folder: Path, made: Mapping[str, str]) -> dict[str, str]:
    """Pages that differ from what their source makes, are missing, or have no source any more, with what to do."""
    found = {}
    for name, text in made.items():
        path = folder / name
        if not path.is_file():
            found[name] = "is missing: write it with `make generate`"
        elif path.read_text(encoding="utf-8") != text:
            found[name] = "is not what its source makes: change the source, then `make generate`"
    for path in sorted(folder.glob("*.md")):
        if path.name not in made and MARK in path.read_text(encoding="utf-8"):
            found[path.name] = "has no writer any more: remove it, or add its writer to tools/reference/__main__.py"
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
