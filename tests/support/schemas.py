"""Databases that are filled once for the tests of a folder; what changes them does it in a clone, or rolls it back."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from pgdyno.workload.fill import fill

from ..fill.filled import Database

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster
    from pgdyno.workload.tables import SchemaTables

_NUMBERS = itertools.count(1)


def filled(cluster: Cluster, tables: SchemaTables) -> Database:
    """A new database with these tables."""
    name = f"{tables.family}_{tables.profile}"
    with cluster.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    database = Database(cluster, name)
    fill(database, tables)
    return database


@contextlib.contextmanager
def cloning(cluster: Cluster) -> Iterator[Callable[[Database], Database]]:
    """Makes a copy of a database each time it is called; all are dropped at the end of the block."""
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


@pytest.fixture
def clone(cluster: Cluster) -> Iterator[Callable[[Database], Database]]:
    """Makes a copy of a database each time it is called; all are dropped after the test."""
    with cloning(cluster) as make:
        yield make
