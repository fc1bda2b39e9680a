"""One warehouse of each profile on one server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.workload.tables import TpccTables

from ..support.schemas import clone, filled
from ..support.servers import cluster

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

    from ..fill.filled import Database

__all__ = ["clone", "cluster"]


@pytest.fixture(scope="session")
def hammerdb(cluster: Cluster) -> Database:
    """As HammerDB loads it."""
    return filled(cluster, TpccTables(1))


@pytest.fixture(scope="session")
def spec(cluster: Cluster) -> Database:
    """As the specification says."""
    return filled(cluster, TpccTables(1, "spec"))
