"""What a registry shows of the package is right: its links lead somewhere, its classifiers agree with the rest of pyproject.toml,
and what it makes an installer fetch is used.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from tools.lint import Finding
from tools.wheel import description

FILE = "pyproject.toml"
_PYTHON = "Programming Language :: Python :: 3."
_MODULES = {"vl-convert-python": "vl_convert", "hdrhistogram": "hdrh"}
"""The module of a distribution whose name is another."""


def check(root: Path) -> list[Finding]:
    """Classifiers that say something else than the project, and links that only work in a clone."""
    project: dict[str, Any] = tomllib.loads((root / FILE).read_text(encoding="utf-8")).get("project", {})
    if not project:
        return []
    classifiers: list[str] = project.get("classifiers", [])
    messages = [*_licences(project, classifiers), *_typed(root, project, classifiers), *_versions(project, classifiers)]
    messages += _unused(root, project)
    for name, url in project.get("urls", {}).items():
        if not re.match(r"https://[^/]+\.[^/]+/", url):
            messages.append(f"the address {name} is not absolute: write https://…")
    return [*(Finding(FILE, 0, message) for message in messages), *_links(root, project)]


def _licences(project: dict[str, Any], classifiers: list[str]) -> list[str]:
    if isinstance(project.get("license"), str) and any(
        classifier.startswith("License ::") for classifier in classifiers
    ):
        return [
            "has a licence expression and a classifier of a licence, which registries refuse: remove the classifier"
        ]
    return []


def _typed(root: Path, project: dict[str, Any], classifiers: list[str]) -> list[str]:
    marker = (root / "python" / project["name"] / "py.typed").is_file()
    if marker != ("Typing :: Typed" in classifiers):
        return ["py.typed and the classifier `Typing :: Typed` go together: add what is missing"]
    return []


def _versions(project: dict[str, Any], classifiers: list[str]) -> list[str]:
    """The Pythons that are named begin with the oldest that is allowed, and none is left out."""
    named = sorted(
        int(classifier.removeprefix(_PYTHON)) for classifier in classifiers if classifier.startswith(_PYTHON)
    )
    oldest = int(re.sub(r"^>=3\.", "", project.get("requires-python", ">=3.0")))
    if named != list(range(oldest, oldest + len(named))) or not named:
        return [
            f"classifiers name Python 3.{named}, and requires-python begins with 3.{oldest}: name each version once"
        ]
    return []


def _unused(root: Path, project: dict[str, Any]) -> list[str]:
    """Every dependency is imported, or its files are looked for by its module's name: an installation has hundreds of MB."""
    texts = [path.read_text(encoding="utf-8") for path in (root / "python" / project["name"]).rglob("*.py")]
    results = []
    for dependency in project.get("dependencies", []):
        name = re.split(r"[\[<>=!~; ]", dependency)[0]
        module = _MODULES.get(name, name.replace("-", "_"))
        imported = re.compile(rf"^\s*(?:import|from) {module}\b|\"{module}\"", re.MULTILINE)
        if not any(imported.search(text) for text in texts):
            results.append(f"the dependency {name} is imported nowhere: remove it")
    return results


def _links(root: Path, project: dict[str, Any]) -> list[Finding]:
    readme = project.get("readme")
    if not isinstance(readme, str) or not (root / readme).is_file():
        return [Finding(FILE, 0, "names no README, which is the package's page")]
    text = (root / readme).read_text(encoding="utf-8")
    result = set()
    for url in (None, "https://example.org/repository"):
        result |= set(description.relative_links(description.absolute(text, url, "0" * 40)))
    return [
        Finding(readme, 0, f"{link} leads nowhere from a package's page: see tools/wheel") for link in sorted(result)
    ]
