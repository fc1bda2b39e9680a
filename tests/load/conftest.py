"""The servers that the loader's tests ask, and databases of a test's own on them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..drive.conftest import encrypted
from ..support.servers import cluster, throwaway_cluster
from .loaded import LEDGER, Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

__all__ = ["cluster", "encrypted"]

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session", params=[None, *sorted(Path("/usr/lib/postgresql").glob("*/bin"))], ids=str)
def server(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The embedded PostgreSQL, and each that the system has packages of."""
    with throwaway_cluster(request.param) as started:
        yield started


def _target(server: Cluster) -> Iterator[Target]:
    name = f"load{next(_NUMBERS)}"
    with server.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    target = Target(server.dsn.replace("dbname=postgres", f"dbname={name}"))
    target.run(LEDGER)
    yield target
    with server.connect() as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def target(cluster: Cluster) -> Iterator[Target]:
    """An empty database with a ledger, on the embedded PostgreSQL."""
    yield from _target(cluster)


@pytest.fixture
def each_target(server: Cluster) -> Iterator[Target]:
    """An empty database with a ledger, on each PostgreSQL that is here."""
    yield from _target(server)
