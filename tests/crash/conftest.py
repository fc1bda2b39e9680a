"""A state directory of a test's own, checked for leftovers at the end; and recordings that several tests cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.crash.recording import Asked, record

from ..host.conftest import state

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.crash.recording import Recording

__all__ = ["recorded", "state"]


@pytest.fixture
def recorded(state: Path) -> Recording:
    """Three seconds of a server with everything on, with a cache that needs flushes and WAL on a volume of its own."""
    return record(Asked(seconds=3, cache="volatile", wal_apart=True), state.parent / "recorded")
