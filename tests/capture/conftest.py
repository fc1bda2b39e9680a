"""A server that logs what it is asked, the embedded one and one that a package brought."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.server.cluster import Cluster

from .logged import logging_cluster
from .shop import Shop, captured_shop
from .sold import Sold, captured_sold


@pytest.fixture(scope="session", params=[None, *sorted(Path("/usr/lib/postgresql").glob("*/bin"))], ids=str)
def logging_server(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Each PostgreSQL that is installed."""
    with logging_cluster(request.param) as started:
        yield started


@pytest.fixture(scope="session")
def embedded_server() -> Iterator[Cluster]:
    """The embedded PostgreSQL, which counts its statements."""
    with logging_cluster(None, shared_preload_libraries="pg_stat_statements") as started:
        yield started


@pytest.fixture(scope="session")
def shop(embedded_server: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """An order shop on the embedded PostgreSQL, with its capture."""
    return captured_shop(embedded_server, tmp_path_factory.mktemp("replay"))


@pytest.fixture(scope="session")
def sold(embedded_server: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Sold:
    """Orders with keys that the server gave, and their capture."""
    return captured_sold(embedded_server, tmp_path_factory.mktemp("sold"))
