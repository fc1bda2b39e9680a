"""The clock-free crates have the same bans, which clippy enforces, and their sources make no exception from them.

A ``clippy.toml`` inside a crate replaces the one of the workspace instead of adding to it, so each clock-free crate has the whole text.
``tests/lint/test_tools.py`` tries each ban.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tools.lint import Finding, project_files, relative

CRATES = ("volume", "catalog", "crash", "workload", "dataset")
MODEL = "crates/volume/clippy.toml"
_EXCEPTION = re.compile(r"#!?\[(?:allow|expect)\([^\]]*\bclippy::disallowed_(?:methods|types|macros)\b")


def check(root: Path) -> list[Finding]:
    """Files that differ from the volume model's, and exceptions in sources (tests may make some)."""
    model = root / MODEL
    text = model.read_text(encoding="utf-8") if model.is_file() else ""
    findings = []
    for crate in CRATES:
        path = root / "crates" / crate / "clippy.toml"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            findings.append(
                Finding(relative(root, path), 0, f"`{crate}` is clock-free and needs the bans of {MODEL}: copy it")
            )
    banned = tomllib.loads(text)
    for key, value in tomllib.loads((root / "clippy.toml").read_text(encoding="utf-8")).items():
        if banned.get(key) != value:
            findings.append(Finding(MODEL, 0, f"set `{key} = {value}` as the workspace's clippy.toml does"))
    for path in project_files(root, ".rs"):
        name = relative(root, path)
        if name.startswith(tuple(f"crates/{crate}/src/" for crate in CRATES)):
            code = path.read_text(encoding="utf-8")
            findings += [
                Finding(
                    name, code.count("\n", 0, match.start()) + 1, "the bans of clock-free crates have no exceptions"
                )
                for match in _EXCEPTION.finditer(code)
            ]
    return findings
