"""TOML files of pgdyno's own formats that a user writes: read, of the right version, without unknown keys.

Experiment files have more to say (lines of keys, near misses) and are read by ``experiment/file.py``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from .errors import InputError

VERSION = 1


def read_toml(path: Path, what: str, keys: Set[str]) -> dict[str, Any]:
    """The document in ``path``, ``what`` in words. :class:`InputError` unless it is TOML of this version with these ``keys``."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", remedy=f"name {what} (TOML)") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}", remedy="correct the file; strings must be quoted") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply", remedy="correct the file", code="toml.too_deep") from None
    if document.get("schema_version") != VERSION:
        raise InputError(f"{path}: schema_version = {VERSION} is missing", remedy="write it at the top of the file")
    require_keys(document, keys | {"schema_version"}, str(path))
    return document


def require_keys(table: Any, keys: Set[str], what: str) -> None:
    """:class:`InputError` unless ``table`` is one and has no other ``keys``; ``what`` names it."""
    if not isinstance(table, Mapping):
        raise InputError(f"{what} is not a table", remedy=f"write its keys below it: {', '.join(sorted(keys))}")
    if unknown := sorted(table.keys() - keys):
        raise InputError(f"{what}: there is no key `{unknown[0]}`", remedy=f"there are {', '.join(sorted(keys))}")
