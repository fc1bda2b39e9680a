"""The licences of all crates that the engine is linked with: their own files, as the crates bring them."""

from __future__ import annotations

import functools
import json
import platform
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.wheel import engine

_FILES = re.compile(r"^(licen[cs]e|copying|notice|unlicense|copyright)", re.IGNORECASE)
_HEAD = """\
pgdyno-engine is linked with the crates below. Each has its licence as the crate states it (SPDX), and then the texts of the
licence files that it brings. Rust's standard library is licensed as MIT OR Apache-2.0.
"""


@dataclass(frozen=True)
class Crate:
    """A crate of others."""

    name: str
    version: str
    licence: str
    folder: Path

    @property
    def title(self) -> str:
        """``name version``."""
        return f"{self.name} {self.version}"

    def texts(self) -> Iterator[tuple[str, str]]:
        """Name and text of each licence file."""
        for path in sorted(self.folder.iterdir()):
            if path.is_file() and _FILES.match(path.name):
                yield path.name, path.read_text(encoding="utf-8", errors="replace").strip()


@functools.cache
def crates(root: Path) -> tuple[Crate, ...]:
    """Every crate of others that is linked into the engine on this machine's kind, without those of builds and tests."""
    process = subprocess.run(
        [
            "cargo",
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            engine.TARGETS[platform.machine()],
        ],
        cwd=root,
        check=True,
        capture_output=True,
    )
    document: dict[str, Any] = json.loads(process.stdout)
    packages = {package["id"]: package for package in document["packages"]}
    nodes = {node["id"]: node for node in document["resolve"]["nodes"]}
    seen: set[str] = set()
    to_see = [item for item, of in packages.items() if of["name"] == engine.NAME]
    while to_see:
        result = to_see.pop()
        if result not in seen:
            seen.add(result)
            linked = (dep for dep in nodes[result]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"]))
            to_see += [dep["pkg"] for dep in linked if not _is_macro(packages[dep["pkg"]])]
    crates = [
        Crate(of["name"], of["version"], of["license"] or "see its file", Path(of["manifest_path"]).parent)
        for text in seen
        if (of := packages[text])["source"] is not None
    ]
    return tuple(sorted(crates, key=lambda crate: (crate.name, crate.version)))


def texts(root: Path) -> str:
    """One document with all of them. A text that many crates share is written once, at the first of them."""
    first: dict[str, str] = {}
    parts = [_HEAD]
    for crate in crates(root):
        parts.append(f"{'=' * 80}\n{crate.title}: {crate.licence}\n")
        for name, text in crate.texts():
            plain = " ".join(text.split())
            if plain in first:
                parts.append(f"{name}: the same as {first[plain]}\n")
            else:
                first[plain] = f"{name} of {crate.title}"
                parts.append(f"--- {name}\n{text}\n")
    return "\n".join(parts)


def _is_macro(package: dict[str, Any]) -> bool:
    """Whether a crate only runs while others are compiled."""
    return any("proc-macro" in target["kind"] for target in package["targets"])
