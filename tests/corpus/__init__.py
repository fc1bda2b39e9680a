"""Small inputs in the shapes that people have, each with the value that its producer's documentation gives.

A case is a folder below the kind of its input (``logs``, ``samples``, ``rows``, ``dumps``): the input, and ``case.toml`` with what is
expected of it. ``source`` says who writes or reported that shape, ``why`` from which rule the expected values follow.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One input, or several that belong together."""

    folder: Path
    source: str
    why: str
    expected: dict[str, Any]
    """The other tables and keys of ``case.toml``."""

    def path(self, name: str) -> Path:
        """An input file of the case."""
        return self.folder / name


def cases(kind: str) -> list[Any]:
    """All cases of a kind, as parameters of a test. Each has the two keys that make it checkable."""
    folders = sorted(path.parent for path in (HERE / kind).glob("*/case.toml"))
    return [pytest.param(_case(folder), id=folder.name) for folder in folders]


def _case(folder: Path) -> Case:
    keys = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
    return Case(folder, keys.pop("source"), keys.pop("why"), keys)
