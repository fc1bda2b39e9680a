"""Files have at most 600 lines and functions at most 70, so that each can be read at once.

What was larger when the rule came is in ``sizes_ratchet.toml`` with its size then; it may shrink and never grow.
Functions of Rust are checked by clippy (``too-many-lines-threshold`` in ``clippy.toml``).
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from tools.lint import Finding, project_files, relative

FILE_LINES = 600
FUNCTION_LINES = 70
RATCHET = "tools/lint/sizes_ratchet.toml"


def check(root: Path) -> list[Finding]:
    """Too long files and functions, and entries of the ratchet that could be lower."""
    ratchet_file = root / RATCHET
    ratchet: dict[str, int] = tomllib.loads(ratchet_file.read_text()) if ratchet_file.is_file() else {}
    findings = []
    seen = set()
    for path in project_files(root, ".py", ".rs"):
        name = relative(root, path)
        text = path.read_text(encoding="utf-8")
        sizes = [(name, 0, len(text.splitlines()), FILE_LINES, "split the file")]
        if path.suffix == ".py":
            sizes += [
                (f"{name}::{function}", line, lines, FUNCTION_LINES, "split the function")
                for function, line, lines in function_sizes(text)
            ]
        for key, line, lines, most, remedy in sizes:
            seen.add(key)
            allowed = ratchet.get(key, most)
            if lines > allowed:
                findings.append(Finding(name, line, f"{key} has {lines} lines, {allowed} are allowed: {remedy}"))
            elif key in ratchet and lines < allowed:
                findings.append(Finding(RATCHET, 0, f"{key} has {lines} lines now: lower its entry, or remove it"))
    findings += [Finding(RATCHET, 0, f"{key} is gone: remove its entry") for key in sorted(set(ratchet) - seen)]
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
