"""Code asks a world or a workload for what it needs, not for its name: a test of the name is an `if` for each kind to come.

Tests of a name are allowed where the kinds are defined.
"""

from __future__ import annotations

import ast
from pathlib import Path

from tools.lint import Finding, project_files, relative

WORLDS = {"emulated", "real", "simulated", "fake"}
HOME_OF_WORLDS = ("python/pgdyno/world/", "python/pgdyno/experiment/tables.py", "python/pgdyno/results/record.py")
WORKLOADS = {"pgbench", "script", "sysbench", "tpcc", "tpch", "replay", "sample", "idle", "load"}
HOME_OF_WORKLOADS = ("python/pgdyno/workload/kind/",)
ASKED_OF_WORLDS = "it for what you need (world/base.py)"
ASKED_OF_WORKLOADS = "it for what you need (workload/kind/base.py)"


def check(root: Path) -> list[Finding]:
    """Comparisons of ``….kind`` with a name, outside of where the kinds are defined."""
    findings = []
    for path in project_files(root, ".py"):
        name = relative(root, path)
        if not name.startswith("python/pgdyno/"):
            continue
        for line, kind in kind_tests(path.read_text(encoding="utf-8")):
            if kind in WORLDS and not name.startswith(HOME_OF_WORLDS):
                findings.append(Finding(name, line, f"asks whether the world is {kind!r}: ask {ASKED_OF_WORLDS}"))
            if kind in WORKLOADS and not name.startswith(HOME_OF_WORKLOADS):
                findings.append(Finding(name, line, f"asks whether the workload is {kind!r}: ask {ASKED_OF_WORKLOADS}"))
    return findings


def kind_tests(text: str) -> list[tuple[int, str]]:
    """Line and name of every comparison of an attribute or variable ``kind`` with a text, or with a collection of texts."""
    results = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(_is_kind(side) for side in sides):
                results += [(node.lineno, name) for side in sides for name in _texts(side)]
    return sorted(set(results))


def _is_kind(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "kind") or (
        isinstance(node, ast.Name) and node.id == "kind"
    )


def _texts(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [text for item in node.elts for text in _texts(item)]
    return []
