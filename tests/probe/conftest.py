"""A server to sample."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.workload.server import throwaway_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.postgres.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One server for all tests of the probes."""
    with throwaway_cluster() as started:
        yield started


@pytest.fixture(scope="session", params=sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [None], ids=str)
def older_server(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Each PostgreSQL that the system has packages of."""
    if request.param is None:
        pytest.skip("no other PostgreSQL below /usr/lib/postgresql")
    with throwaway_cluster(request.param) as started:
        yield started
