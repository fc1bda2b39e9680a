"""A server with pgbench's tables of scale 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.workload.pgbench import PgbenchSpec, load

from ..servers import cluster

if TYPE_CHECKING:
    from pgdyno.postgres.cluster import Cluster

__all__ = ["cluster"]


@pytest.fixture(scope="session")
def dsn(cluster: Cluster) -> str:
    """Where it is."""
    load(cluster, PgbenchSpec(scale=2, clients=1, seed=11))
    return cluster.dsn
