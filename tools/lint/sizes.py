"""Files have at most 700 lines and functions at most 70, so that each can be read at once.

Functions of Rust are checked by clippy (``too-many-lines-threshold`` in ``clippy.toml``).
"""

from __future__ import annotations

import ast
from pathlib import Path

from tools.lint import Finding, project_files, relative

FILE_LINES = 700
FUNCTION_LINES = 70


def check(root: Path) -> list[Finding]:
    """Too long files and functions."""
    findings = []
    for path in project_files(root, ".py", ".rs"):
        name = relative(root, path)
        text = path.read_text(encoding="utf-8")
        sizes = [(name, 0, len(text.splitlines()), FILE_LINES, "split the file")]
        if path.suffix == ".py":
            sizes += [
                (f"{name}::{function}", line, lines, FUNCTION_LINES, "split the function")
                for function, line, lines in function_sizes(text)
            ]
        findings += [
            Finding(name, line, f"{key} has {lines} lines, {most} are allowed: {remedy}")
            for key, line, lines, most, remedy in sizes
            if lines > most
        ]
    return findings


def function_sizes(text: str) -> list[tuple[str, int, int]]:
    """Name, first line and number of lines, without the docstring, of every function."""
    sizes = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            first = node.body[0]
            if ast.get_docstring(node) is not None and first.end_lineno is not None:
                lines -= first.end_lineno - first.lineno + 1
            sizes.append((node.name, node.lineno, lines))
    return sizes
