"""Small parts of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def page(title: str, source: str, introduction: str, *parts: str) -> str:
    """A whole page. ``source`` says where to change what it says."""
    head = f"# {title}\n\n<!-- Written by `make site` from {source}; change it there. -->\n\n{introduction.strip()}"
    return "\n\n".join([head, *(part.strip("\n") for part in parts if part.strip())]) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty without rows."""
    lines = ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    if not lines:
        return ""
    return "\n".join(["| " + " | ".join(header) + " |", "|" + "---|" * len(header), *lines])


def table_of_figures(header: Sequence[str], rows: Iterable[Sequence[str]], *, figures: int) -> str:
    """A table whose last ``figures`` columns are aligned as numbers."""
    words = len(header) - figures
    lines = [header, ["---" if index < words else "---:" for index in range(len(header))], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def cell(text: str) -> str:
    """Text that keeps inside its cell."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Text as code; empty stays empty."""
    return f"`{text}`" if text else ""


def literals(text: str) -> str:
    """Docstrings mark code in the way of Python (two backquotes, roles); pages in that of Markdown."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


def anchor(title: str) -> str:
    """The address of a heading within its page, as GitHub makes it."""
    return "#" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
