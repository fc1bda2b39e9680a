"""TPC-H's tables of each profile at scale factor 0.01 on one server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.workload.tables import TpchTables

from ..support.schemas import clone, filled
from ..support.servers import cluster

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

    from ..fill.filled import Database

__all__ = ["clone", "cluster"]

SCALE_FACTOR = 0.01


@pytest.fixture(scope="session")
def hammerdb(cluster: Cluster) -> Database:
    """As HammerDB defines them."""
    return filled(cluster, TpchTables(SCALE_FACTOR, "hammerdb"))


@pytest.fixture(scope="session")
def spec(cluster: Cluster) -> Database:
    """As the specification says."""
    return filled(cluster, TpchTables(SCALE_FACTOR, "spec"))
