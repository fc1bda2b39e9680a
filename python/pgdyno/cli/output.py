"""How a command prints what it found: columns for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from pgdyno.cli.terminal import columns

from ..base.text import fitted


def print_rows(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Rows below a header, within the terminal; columns named in ``right`` are numbers and stand to the right."""
    left = [place for place, title in enumerate(header) if title not in right]
    for line in fitted([header, *rows], columns(), left):
        click.echo(line)


def print_json(document: dict[str, Any]) -> None:
    """One JSON document."""
    import json

    click.echo(json.dumps(document, indent=1))
