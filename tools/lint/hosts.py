"""Nothing in the project is about one person's machine: no home directories, no path of this clone, no package mirror.

Lock files hold names, versions and hashes. Which registry they come from is the choice of whoever installs.
"""

from __future__ import annotations

import re
from pathlib import Path

from tools.lint import Finding, project_files, relative

_HOME = re.compile(r"(?<![\w.])/(?:home|Users)/[A-Za-z][\w.-]*/")
_URL = re.compile(r"[a-z+]+://[^\s\"']+")
CRATES_INDEX = "registry+https://github.com/rust-lang/crates.io-index"
LOCK_FILES = ("Cargo.lock", "requirements.lock", "requirements-wheel.lock")


def check(root: Path) -> list[Finding]:
    """Paths and registry hosts that mean nothing elsewhere."""
    findings = []
    own = str(root) + "/" if len(root.parts) > 2 else None
    for path in project_files(root):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for other in _foreign(path.name, line, own):
                findings.append(Finding(relative(root, path), number, other))
    return findings


def _foreign(file_name: str, line: str, own: str | None) -> list[str]:
    messages = [f"{path} exists on one machine only: use a relative path" for path in _HOME.findall(line)]
    if own is not None and own in line:
        messages.append(f"{own} is this clone's own path: use a relative path")
    if file_name in LOCK_FILES:
        messages += [
            f"{url} binds the lock file to a host: write it again with `make lock` or `cargo update`"
            for url in _URL.findall(line)
            if url != CRATES_INDEX
        ]
    return messages
