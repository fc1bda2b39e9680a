"""A state directory of a test's own, and the proof that the test left nothing behind."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.machine import mounts, paths
from pgdyno.machine.clean import clean, left_in

from ..support.volumes import uncalibrated

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["state", "twin", "uncalibrated"]

TWIN = """\
schema_version = 1
title = "twin of a disk"
size_mib = 10240

[accounting]
unit_kib = 256
merge_sequential = true

[queueing]
order = "gamma"

[service_time]
size_kib = [8]
probability_ppm = [0, 1000000]
read_ns = [[400000, 500000]]
write_ns = [[400000, 500000]]
"""
"""10 GiB without limits, with the order of gp3."""


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short state directory that PostgreSQL's user can walk through (pytest's are 0700); checked at the end."""
    folder = Path(tempfile.mkdtemp(prefix="pgd-")).resolve()
    folder.chmod(0o755)
    state_dir = folder / "s"
    monkeypatch.setenv("PGDYNO_STATE_DIR", str(state_dir))
    monkeypatch.setenv("PGDYNO_IMAGE_DIR", str(folder / "images"))
    try:
        yield state_dir
        # Not the machine's settings: a test beside this one may have killed a run and not cleaned up yet.
        assert left_in(state_dir) == []
        assert mounts.mounts_below(folder) == []
        assert [loop for loop in mounts.loops() if paths.is_below(loop.backing_file, folder)] == []
    finally:
        clean(state_dir)
        if not mounts.mounts_below(folder):
            shutil.rmtree(folder)


@pytest.fixture
def twin(tmp_path: Path) -> Path:
    """The file of a twin, in a directory in which no daemon was started."""
    path = tmp_path / "mine.toml"
    path.write_text(TWIN, encoding="utf-8")
    return path
