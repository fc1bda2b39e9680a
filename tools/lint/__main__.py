"""Runs every rule on this tree; exit code 1 when one is broken."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.lint import (
    architecture,
    catalogue,
    circles,
    clock_free,
    crates,
    exceptions,
    hosts,
    kinds,
    links,
    metadata,
    published,
    published_items,
    remedies,
    sizes,
    sleeps,
    stages,
    start_up,
    words,
)

RULES = (
    architecture,
    sizes,
    crates,
    circles,
    clock_free,
    catalogue,
    published,
    published_items,
    stages,
    sleeps,
    exceptions,
    kinds,
    remedies,
    links,
    metadata,
    hosts,
    words,
    start_up,
)


def main() -> int:
    """Print what every rule finds."""
    root = Path(__file__).resolve().parents[2]
    result = 0
    for rule in RULES:
        for finding in rule.check(root):
            print(finding)
            result += 1
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main())
