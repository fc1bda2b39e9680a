"""Links in the documents lead somewhere, to a file of this project and to a heading that it has; so do mentions in code.

Pages that ``make site`` writes count as present; ``tests/docs`` and the site look for their headings.
"""

from __future__ import annotations

import re
from pathlib import Path

from tools.lint import Finding, project_files, relative
from tools.reference import paths

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^\s*(```|~~~)")
_MENTION = re.compile(r"\bdocs/(?:guide|concept|decision|reference)/[\w/-]+(?:\.md)?")
_OUTSIDE = re.compile(r"^[a-z][a-z0-9+.-]*:")


def check(root: Path) -> list[Finding]:
    """Links to files or headings that do not exist."""
    findings = []
    made = {root / path for path in paths()}
    for path in project_files(root, ".md"):
        for line, target in links(path.read_text(encoding="utf-8")):
            if _OUTSIDE.match(target):
                continue
            file_name, _, heading = target.partition("#")
            goal = (path.parent / file_name) if file_name else path
            if goal.resolve() in made:
                continue
            if not goal.exists():
                findings.append(Finding(relative(root, path), line, f"{target} does not exist: repair the link"))
            elif heading and goal.suffix == ".md" and heading not in headings(goal.read_text(encoding="utf-8")):
                findings.append(Finding(relative(root, path), line, f"{target}: there is no such heading"))
    for path in project_files(root, ".py", ".rs", ".toml"):
        if not path.is_relative_to(root / "tests"):
            findings += _dead_mentions(root, path, made)
    return findings


def _dead_mentions(root: Path, path: Path, made: set[Path]) -> list[Finding]:
    """Comments name a document by its path, or a decision by its number (``docs/decision/0001``)."""
    return [
        Finding(relative(root, path), number, f"{mention} does not exist: write it, or name another")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for mention in _MENTION.findall(line)
        if root / mention not in made and not any(root.glob(mention.rstrip("/") + "*"))
    ]


def _prose(text: str) -> list[tuple[int, str]]:
    """Lines outside of code blocks, with their numbers."""
    lines = []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            lines.append((number, line))
    return lines


def links(text: str) -> list[tuple[int, str]]:
    """Line and target of every link."""
    return [(number, target) for number, line in _prose(text) for target in _LINK.findall(line)]


def headings(text: str) -> set[str]:
    """The anchors that the headings make, as GitHub writes them."""
    titles = (line.lstrip("#").strip() for _, line in _prose(text) if line.startswith("#"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
