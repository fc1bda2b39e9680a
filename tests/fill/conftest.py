"""A server, and databases of a test's own on it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from ..support.servers import cluster
from .filled import Database

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

__all__ = ["cluster"]

_NUMBERS = itertools.count(1)


@pytest.fixture
def database(cluster: Cluster) -> Iterator[Callable[[], Database]]:
    """Makes an empty database each time it is called; all are dropped afterwards."""
    names: list[str] = []

    def make() -> Database:
        names.append(f"fill{next(_NUMBERS)}")
        with cluster.connect() as connection:
            connection.execute(f"CREATE DATABASE {names[-1]}")
        return Database(cluster, names[-1])

    yield make
    with cluster.connect() as connection:
        for name in names:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
