"""An error that a user can meet says what to do about it: ``InputError("…", remedy="…")``."""

from __future__ import annotations

import ast
from pathlib import Path

from tools.lint import Finding, project_files, relative

ROOTS = {"PgdynoError"}
ERRORS_FILE = "python/pgdyno/base/errors.py"
UNREMEDIED = {"RunInvalid"}
"""Says why numbers must not be used; the report has the remedies."""


def check(root: Path) -> list[Finding]:
    """Errors that are made without a remedy."""
    errors_file = root / ERRORS_FILE
    if not errors_file.is_file():
        return []
    family = subclasses(errors_file.read_text(encoding="utf-8")) - UNREMEDIED
    findings = []
    for path in project_files(root, ".py"):
        name = relative(root, path)
        if name.startswith("python/"):
            findings += [
                Finding(name, line, f"{error} without a remedy: say what to do about it, with `remedy=`")
                for line, error in _without_remedy(path.read_text(encoding="utf-8"), family)
            ]
    return findings


def subclasses(text: str) -> set[str]:
    """Names of the classes that descend from :data:`ROOTS`, in the order in which a file defines them."""
    family = set(ROOTS)
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and any(
            isinstance(base, ast.Name) and base.id in family for base in node.bases
        ):
            family.add(node.name)
    return family


def _without_remedy(text: str, family: set[str]) -> list[tuple[int, str]]:
    without_remedy = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        keywords = {keyword.arg for keyword in node.keywords}
        if name in family and "remedy" not in keywords and None not in keywords:
            without_remedy.append((node.lineno, name))
    return without_remedy
