"""Files do not import each other in a circle, so that each can be read with what stands below it and nothing else.

Circles are looked for inside each crate, and among all modules of each Python package; imports for types alone count. A
``mod.rs`` or ``__init__.py`` that only re-exports does not use what it re-exports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tools.lint import Finding, project_files, relative
from tools.lint.imports import python, rust

Imports = Mapping[str, set[str]]
"""For each file the files that it imports."""


def check(root: Path) -> list[Finding]:
    """All circles."""
    return [
        Finding(
            min(circle),
            0,
            f"imports itself through {', '.join(sorted(circle - {min(circle)}))}: move what they share below them",
        )
        for imports in graphs(root)
        for circle in circles(imports)
    ]


def graphs(root: Path) -> Iterator[Imports]:
    """The imports of each crate and of each Python package."""
    for manifest in sorted((root / "crates").glob("*/Cargo.toml")):
        crate = manifest.parent
        texts = {relative(crate / "src", path): path.read_text() for path in sorted((crate / "src").rglob("*.rs"))}
        yield _named(f"crates/{crate.name}/src", rust.of_crate(texts))
    for folder in ("python/pgdyno", "tools"):
        texts = {
            relative(root, path): path.read_text()
            for path in project_files(root, ".py")
            if relative(root, path).startswith(f"{folder}/")
        }
        yield python.of_package(texts, above=folder.rpartition("/")[0])


def circles(imports: Imports) -> list[frozenset[str]]:
    """Groups of files each of which reaches every other one of its group; the largest such groups."""
    reached = {name: _reachable(imports, name) for name in imports}
    groups = {
        frozenset(other for other in reached[name] if name in reached.get(other, ())) | {name}
        for name in imports
        if name in reached[name]
    }
    return sorted((group for group in groups if len(group) > 1), key=sorted)


def _reachable(imports: Imports, name: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(imports.get(name, ()))
    while waiting:
        if (file := waiting.pop()) not in seen:
            seen.add(file)
            waiting += imports.get(file, ())
    return seen


def _named(folder: str, imports: Imports) -> Imports:
    return {f"{folder}/{name}": _all_in(folder, used) for name, used in imports.items()}


def _all_in(folder: str, names: Iterable[str]) -> set[str]:
    return {f"{folder}/{name}" for name in names}
