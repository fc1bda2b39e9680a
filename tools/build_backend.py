"""The build backend of the wheel: maturin, after writing down which engine sources the package belongs to.

An installed package has no sources to hash, so the number travels in it (see ``python/pgdyno/_build.py``).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import maturin

ROOT = Path(__file__).resolve().parent.parent


def write_build_hash() -> None:
    """Write the hash of the engine's sources into the package."""
    location = ROOT / "python" / "pgdyno" / "_build.py"
    spec = importlib.util.spec_from_file_location("_build", location)
    assert spec is not None and spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    build.HASH_FILE.write_text(build.hash_sources(ROOT) + "\n", encoding="ascii")


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel that carries the engine."""
    write_build_hash()
    return str(maturin.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build the engine, and let the package be used from the source tree."""
    return str(maturin.build_editable(wheel_directory, config_settings, metadata_directory))


get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
