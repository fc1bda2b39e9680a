"""The build backend of the wheel: maturin, after putting into the package what a clone has in its root.

An installed package has no sources to hash, so the number travels in it (see ``python/pgdyno/_build.py``), and so do the experiment
files, schemas and dashboards. ``make wheel`` packs by itself (:mod:`tools.wheel`), with an engine for older systems.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import maturin

ROOT = Path(__file__).resolve().parent.parent


def load_build() -> ModuleType:
    """``pgdyno._build``, without its package: its dependencies are not here."""
    location = ROOT / "python" / "pgdyno" / "_build.py"
    spec = importlib.util.spec_from_file_location("_build", location)
    assert spec is not None and spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    return build


def write_build_hash() -> None:
    """Write the hash of the engine's sources into the package."""
    build = load_build()
    build.HASH_FILE.write_text(build.hash_sources(ROOT) + "\n", encoding="ascii")


@contextlib.contextmanager
def files_in_package() -> Iterator[None]:
    """The folders of the clone's root are in the package meanwhile."""
    build = load_build()
    shutil.rmtree(build.FILES, ignore_errors=True)
    try:
        for name in build.DATA_FOLDERS:
            shutil.copytree(ROOT / name, build.FILES / name)
        yield
    finally:
        shutil.rmtree(build.FILES, ignore_errors=True)


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel that carries the engine."""
    write_build_hash()
    with files_in_package():
        return str(maturin.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build the engine, and let the package be used from the source tree."""
    write_build_hash()
    return str(maturin.build_editable(wheel_directory, config_settings, metadata_directory))


build_sdist = maturin.build_sdist
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
