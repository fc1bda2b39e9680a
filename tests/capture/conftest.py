"""A server that logs what it is asked, the embedded one and one that a package brought."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.postgres.cluster import Cluster

from .logged import logging_cluster


@pytest.fixture(scope="session", params=[None, *sorted(Path("/usr/lib/postgresql").glob("*/bin"))], ids=str)
def logging_server(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Each PostgreSQL that is installed."""
    with logging_cluster(request.param) as started:
        yield started


@pytest.fixture(scope="session")
def embedded_server() -> Iterator[Cluster]:
    """The embedded PostgreSQL."""
    with logging_cluster(None) as started:
        yield started
