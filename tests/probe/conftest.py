"""A server to sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..workload.server import throwaway_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.postgres.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One server for all tests of the probes."""
    with throwaway_cluster() as started:
        yield started
