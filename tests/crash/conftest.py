"""A state directory of a test's own, checked for leftovers at the end; and one recording that several tests cut."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.durability.crash.recording import RecordingOptions, record

from ..host.conftest import state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.durability.crash.recording import Recording

__all__ = ["recorded", "state"]


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recording]:
    """Three seconds of a server with everything on, on volumes whose cache needs flushes, its WAL on a volume of its own."""
    folder = Path(tempfile.mkdtemp(prefix="pgd-")).resolve()
    folder.chmod(0o755)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PGDYNO_STATE_DIR", str(folder / "s"))
            made = record(RecordingOptions(seconds=3, cache="volatile", wal_apart=True), folder / "recorded")
        yield made
    finally:
        shutil.rmtree(folder)
