"""TPC-H's tables of each profile at scale factor 0.01 on one server; what changes them rolls it back, or does it in a clone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from pgdyno.workload.fill import fill
from pgdyno.workload.tables import TpchTables

from ..fill.filled import Database
from ..support.servers import cluster

if TYPE_CHECKING:
    from pgdyno.postgres.cluster import Cluster
    from pgdyno.workload.tables import TpchProfile

__all__ = ["cluster"]

SCALE_FACTOR = 0.01
_NUMBERS = itertools.count(1)


def _filled(cluster: Cluster, profile: TpchProfile) -> Database:
    name = f"tpch_{profile}"
    with cluster.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    found = Database(cluster, name)
    fill(found, TpchTables(SCALE_FACTOR, profile))
    return found


@pytest.fixture(scope="session")
def hammerdb(cluster: Cluster) -> Database:
    """As HammerDB defines them."""
    return _filled(cluster, "hammerdb")


@pytest.fixture(scope="session")
def spec(cluster: Cluster) -> Database:
    """As the specification says."""
    return _filled(cluster, "spec")


@pytest.fixture
def clone(cluster: Cluster) -> Iterator[Callable[[Database], Database]]:
    """Makes a copy of a database each time it is called; all are dropped afterwards."""
    names: list[str] = []

    def make(of: Database) -> Database:
        names.append(f"clone{next(_NUMBERS)}")
        with cluster.connect() as connection:
            connection.execute(f"CREATE DATABASE {names[-1]} TEMPLATE {of.name} STRATEGY file_copy")
        return Database(cluster, names[-1])

    yield make
    with cluster.connect() as connection:
        for name in names:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
