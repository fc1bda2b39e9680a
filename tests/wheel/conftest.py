"""A wheel around the engine that is there: what `make wheel` does, without its second build."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.wheel import engine as engines
from tools.wheel import licences, pack


@dataclass(frozen=True)
class Packed:
    wheel: Path
    debug: Path


@pytest.fixture(scope="session")
def packed(repository: Path, engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Packed:
    for program in ("readelf", "objcopy", "cargo"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    folder = tmp_path_factory.mktemp("dist")
    stripped, debug = engines.strip(engine, folder)
    return Packed(pack.pack(repository, stripped, folder, licences.texts(repository)), debug)
