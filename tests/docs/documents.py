"""The commands of the documents: README.md, every page below docs/, and the page of the commands, which is made of their help.

A command stands in a block of language ``console`` after ``$``; a line that ends in ``\\`` goes on in the next. What
cannot be run is said in a comment directly above its block, with the command's beginning and the reason::

    <!-- not run: make test: it is what runs the documents -->
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tools import reference

ROOT = Path(__file__).resolve().parents[2]
_MARK = re.compile(r"<!-- not run: ([^:]+(?::[^ ][^:]*)*): (.+?) -->")
_FENCE = re.compile(r"^(?:```|~~~)(\w*)")
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Example:
    """One command of one document."""

    document: str
    line: int
    text: str
    why_not: str = ""
    """Why it is not run; empty when it is."""

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def documents(root: Path = ROOT) -> list[Path]:
    """README and every page."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def read(path: Path, root: Path = ROOT) -> tuple[str, str]:
    """Name and text of a document."""
    return path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def examples(name: str, document: str) -> list[Example]:
    """The commands of one document. A mark that fits no command of its block is an error of the document."""
    examples: list[Example] = []
    marks: dict[str, str] = {}
    language: str | None = None
    begun: tuple[int, str] | None = None
    for number, line in enumerate(document.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence:
            if language is not None:
                assert not marks, f"{name}:{number}: no command of this block begins with {', '.join(marks)}"
            language = None if language is not None else fence.group(1)
        elif language is None:
            marks = marks | dict(_MARK.findall(line)) if line.startswith("<!--") else marks if not line.strip() else {}
        elif language == "console" and (begun is not None or line.startswith("$ ")):
            at, before = begun or (number, "")
            text = before + line.removeprefix("$ ").removesuffix("\\")
            begun = (at, text) if line.endswith("\\") else None
            if begun is None:
                beginning = next((mark for mark in marks if text.startswith(mark)), None)
                examples.append(Example(name, at, text, marks.pop(beginning) if beginning is not None else ""))
    return examples


def spans(name: str, document: str) -> list[Example]:
    """Commands of pgdyno that stand in the text, between backquotes."""
    spans = []
    inside = False
    for number, line in enumerate(document.splitlines(), 1):
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            texts = (text.removeprefix("sudo ").removeprefix(".venv/bin/") for text in _SPAN.findall(line))
            spans += [Example(name, number, text) for text in texts if text.startswith("pgdyno ")]
    return spans


COMMANDS = (f"{reference.FOLDER}/cli.md", reference.written("cli.md"))
"""The page of the commands, with the examples of their help."""
DOCUMENTS = [*map(read, documents()), COMMANDS]
EXAMPLES = [example for document in DOCUMENTS for example in examples(*document)]
"""Every command of every document, in order."""
