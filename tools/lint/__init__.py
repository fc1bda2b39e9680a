"""The rules of STYLE.md that no other tool checks. Each file here is one rule; ``python -m tools.lint`` runs them all.

A rule is a function ``check(root) -> list[Finding]`` that reads files and changes nothing. A finding says what to do.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """One place that breaks a rule, and what to do about it. ``line`` is 0 for a whole file."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}"


def project_files(root: Path, *suffixes: str) -> list[Path]:
    """Files that are in git or would be added to it, whose names end in one of ``suffixes`` (all without any)."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    ).stdout.decode()
    names = {name for name in listed.split("\0") if name and (not suffixes or name.endswith(suffixes))}
    return [root / name for name in sorted(names) if (root / name).is_file()]


def relative(root: Path, path: Path) -> str:
    """The name of a file as findings show it."""
    return path.relative_to(root).as_posix()
