"""ARCHITECTURE.md says what is there: the layers that import-linter checks, and every crate, module and package.

The page is read first. A part that it does not name cannot be found from it, and a layer it has in another order is a lie.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tools.lint import Finding

PAGE = "ARCHITECTURE.md"
UNNAMED = {"__init__", "__main__", "_build", "_build_hash", "py", "__pycache__"}
"""What every package has, or what only `_engine` uses."""


def check(root: Path) -> list[Finding]:
    """Layers that differ, and parts that the page does not name."""
    page = root / PAGE
    if not page.is_file():
        return [Finding(PAGE, 0, "is missing: write where everything is")]
    text = page.read_text(encoding="utf-8")
    return [*_layers(root, text), *_parts(root, text)]


def _layers(root: Path, text: str) -> list[Finding]:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project.get("tool", {}).get("importlinter", {}).get("contracts", [])
    layers: list[str] = next((contract["layers"] for contract in contracts if contract.get("type") == "layers"), [])
    wanted = [sorted(re.findall(r"\w+", layer)) for layer in layers]
    drawn = re.search(r"^    Python\s+(.*)$", text, re.MULTILINE)
    results = [sorted(re.findall(r"\w+", layer)) for layer in (drawn.group(1).split("→") if drawn else ())]
    if results == wanted:
        return []
    order = " → ".join(f"{{{layer}}}" if "|" in layer else layer for layer in layers)
    line = text.count("\n", 0, drawn.start()) + 1 if drawn else 0
    return [Finding(PAGE, line, f"its layers are not those of pyproject.toml; write `Python   {order}`")]


def _parts(root: Path, text: str) -> list[Finding]:
    parts = [path.name for path in sorted((root / "crates").glob("*")) if path.is_dir()]
    parts += [path.name.partition(".")[0] for path in sorted((root / "python" / "pgdyno").glob("*"))]
    named = set(re.findall(r"\w+", text))
    return [
        Finding(PAGE, 0, f"does not name `{part}`: say what it is for, and where it stands in the flow")
        for part in sorted(set(parts) - UNNAMED - named)
    ]
