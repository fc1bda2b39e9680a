"""Runs every rule on this tree; exit code 1 when one is broken."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.lint import (
    catalogue,
    circles,
    clock_free,
    crates,
    links,
    published,
    remedies,
    sleeps,
    start_up,
)

RULES = (
    crates,
    circles,
    clock_free,
    catalogue,
    published,
    sleeps,
    remedies,
    links,
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
