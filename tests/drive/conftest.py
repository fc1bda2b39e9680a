"""Servers to drive: one with pgbench's tables of scale 2, one of a test's own, those that ask who one is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.workload.fill import load
from pgdyno.workload.tables import PgbenchTables

from ..support.servers import cluster, throwaway_cluster
from . import secured

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

__all__ = ["cluster"]


@pytest.fixture(scope="session")
def dsn(cluster: Cluster) -> str:
    """Where the one with pgbench's tables is."""
    load(cluster, PgbenchTables(2))
    return cluster.dsn


@pytest.fixture(scope="session")
def guarded(cluster: Cluster) -> Cluster:
    """The same server, with roles of whom it asks a password."""
    secured.ask_for_passwords(cluster)
    return cluster


@pytest.fixture
def own() -> Iterator[Cluster]:
    """A server with the same tables that a test may stop, start and kill."""
    with throwaway_cluster() as started:
        load(started, PgbenchTables(2))
        yield started


@pytest.fixture(scope="session")
def encrypted(system_postgres: Path) -> Iterator[secured.Encrypted]:
    """A server with TLS: that of a package, since the embedded one is built without."""
    reason = secured.missing_openssl()
    if reason is not None:
        pytest.skip(reason)
    with secured.encrypted_server(system_postgres) as started:
        yield started
