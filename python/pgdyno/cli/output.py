"""How a command prints what it found: columns for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


def print_rows(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Rows below a header, as wide as they need; columns named in ``right`` are numbers and stand to the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        cells = (
            cell.rjust(width) if title in right else cell.ljust(width)
            for cell, width, title in zip(row, widths, header, strict=True)
        )
        click.echo("  ".join(cells).rstrip())


def print_json(document: dict[str, Any]) -> None:
    """One JSON document."""
    import json

    click.echo(json.dumps(document, indent=1))
