"""The terminal: its width, whether it wants colour, whether it is interactive; and help that fits it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from typing import IO, Any

import click

WIDEST = 100
"""Columns of help at most: longer lines are hard to read."""
NARROWEST = 32
"""Below this nothing is wrapped further; the terminal does it."""


def wants_colour(stream: IO[Any] | None) -> bool:
    """Whether to colour what goes to ``stream``: a terminal that can, and no ``NO_COLOR`` (https://no-color.org)."""
    return is_live(stream) and not os.environ.get("NO_COLOR")


def is_live(stream: IO[Any] | None) -> bool:
    """Whether a line of ``stream`` can be drawn again: a terminal, and not a dumb one. None is one that was closed."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int | None:
    """Columns of the terminal; None where the output goes elsewhere, and may be as wide as it needs. ``COLUMNS`` goes first."""
    if os.environ.get("COLUMNS", "").isdigit():
        return max(NARROWEST, int(os.environ["COLUMNS"]))
    return (
        max(NARROWEST, shutil.get_terminal_size().columns) if sys.stdout is not None and sys.stdout.isatty() else None
    )


class HelpFormatter(click.HelpFormatter):
    """Wraps help to the terminal, also to one of less than 50 columns."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        columns = width or shutil.get_terminal_size().columns - 1
        super().__init__(indent_increment, max(NARROWEST, min(columns, max_width or WIDEST)), max_width)

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Names and meanings side by side; on a narrow terminal the names get a third of it."""
        super().write_dl(rows, min(col_max, self.width // 3), col_spacing)


class HelpContext(click.Context):
    """A context whose help is made by :class:`HelpFormatter`."""

    formatter_class = HelpFormatter


def fit(command: click.Command) -> click.Command:
    """Have a command and all below it make their help fit."""
    command.context_class = HelpContext
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        fit(inner)
    return command
