"""The servers that the loader's tests ask."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..servers import throwaway_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.postgres.cluster import Cluster


@pytest.fixture(scope="session", params=[None, *sorted(Path("/usr/lib/postgresql").glob("*/bin"))], ids=str)
def server(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The embedded PostgreSQL, and each that the system has packages of."""
    with throwaway_cluster(request.param) as started:
        yield started
