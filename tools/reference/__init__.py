"""The pages of the reference that are written from the code and the catalogue. They are not in git: ``make site`` writes them.

Each page is made by the function ``page`` of its module, which returns the text.
"""

from __future__ import annotations

from importlib import import_module

FOLDER = "docs/reference"
"""Where the pages would stand in the repository; links lead from and to there."""

PAGES = {
    "cli.md": "cli",
    "experiment-file.md": "experiment",
    "volumes.md": "volumes",
    "instances.md": "instances",
    "published_figures.md": "published",
    "published_items.md": "published_items",
    "records.md": "records",
    "tables.md": "tables",
    "metrics.md": "metrics",
    "compare-json.md": "compare_json",
    "diagnose-json.md": "diagnose_json",
    "reproduce-json.md": "reproduce_json",
    "settings.md": "settings",
    "errors.md": "errors",
}
"""Name of every page -> its module, which is imported when the page is written: some import half of pgdyno."""


def paths() -> set[str]:
    """The paths of the pages in the repository."""
    return {f"{FOLDER}/{name}" for name in PAGES}


def written(name: str) -> str:
    """The text of a page."""
    return str(import_module(f"tools.reference.{PAGES[name]}").page())
