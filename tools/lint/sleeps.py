"""Tests wait for a condition with a deadline and never sleep: a sleep is too short on a slow day, too long on others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tools.lint import Finding, project_files, relative

REMEDY = "wait for the condition itself, with a deadline"
_WAITING_CALLS = {"run", "call", "check_call", "check_output"}
_RUST_SLEEP = re.compile(r"\bthread::sleep\b")


def check(root: Path) -> list[Finding]:
    """Sleeps in the tests of both languages."""
    findings = []
    for path in project_files(root, ".py", ".rs"):
        name = relative(root, path)
        if path.suffix == ".py" and name.startswith("tests/"):
            lines = python_sleeps(path.read_text(encoding="utf-8"))
        elif path.suffix == ".rs":
            lines = rust_sleeps(path.read_text(encoding="utf-8"), "tests" in path.relative_to(root).parts)
        else:
            continue
        findings += [Finding(name, line, f"sleeps in a test: {REMEDY}") for line in lines]
    return findings


def python_sleeps(text: str) -> list[int]:
    """Lines that call ``time.sleep`` or import ``sleep``, or wait for the program ``sleep``."""
    return [
        node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt | ast.expr) and _sleeps(node)
    ]


def rust_sleeps(text: str, in_tests: bool) -> list[int]:
    """Lines that sleep; in a file of sources only those behind ``#[cfg(test)]``, where its tests stand."""
    lines = text.splitlines()
    begin = 0 if in_tests else next((at for at, line in enumerate(lines) if "#[cfg(test)]" in line), len(lines))
    return [number for number, line in enumerate(lines[begin:], begin + 1) if _RUST_SLEEP.search(line)]


def _sleeps(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module in ("time", "asyncio") and any(alias.name == "sleep" for alias in node.names)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    return node.func.attr == "sleep" or (node.func.attr in _WAITING_CALLS and _runs_sleep(node))


def _runs_sleep(call: ast.Call) -> bool:
    command = call.args[0] if call.args else None
    first = command.elts[0] if isinstance(command, ast.List | ast.Tuple) and command.elts else command
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value.split()[:1] == ["sleep"]
