"""Tests wait for a condition with a deadline and never sleep: a sleep is too short on a slow day, too long on others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tools.lint import Finding, project_files, relative

REMEDY = "wait for the condition itself, with a deadline"
_RUST_SLEEP = re.compile(r"\bthread::sleep\b")


def check(root: Path) -> list[Finding]:
    """Sleeps in the tests of both languages."""
    findings = []
    for path in project_files(root, ".py", ".rs"):
        name = relative(root, path)
        if path.suffix == ".py" and name.startswith("tests/"):
            lines = python_sleeps(path.read_text(encoding="utf-8"))
        elif path.suffix == ".rs" and "tests" in path.relative_to(root).parts:
            text = path.read_text(encoding="utf-8")
            lines = [number for number, line in enumerate(text.splitlines(), 1) if _RUST_SLEEP.search(line)]
        else:
            continue
        findings += [Finding(name, line, f"sleeps in a test: {REMEDY}") for line in lines]
    return findings


def python_sleeps(text: str) -> list[int]:
    """Lines that call ``time.sleep`` or import ``sleep``."""
    return [
        node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt | ast.expr) and _sleeps(node)
    ]


def _sleeps(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "time" and any(alias.name == "sleep" for alias in node.names)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sleep"
