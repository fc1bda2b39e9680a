"""The queries of the validation bring dbgen's own answers at scale factor 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.kinds.tpch import validation
from pgdyno.workload.fill import fill
from pgdyno.workload.tables import TPCH_SCHEMA, TpchTables

from ..fill.filled import Database
from ..support.servers import cluster

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

__all__ = ["cluster"]


@pytest.mark.bench
@pytest.mark.parametrize("profile", ["spec", "hammerdb"])
def test_all_answers_are_dbgens_at_scale_factor_1(cluster: Cluster, profile: Any) -> None:
    with cluster.connect() as connection:
        connection.execute(f"CREATE DATABASE answers_{profile}")
    database, tables = Database(cluster, f"answers_{profile}"), TpchTables(1.0, profile)
    fill(database, tables)
    result = validation.check(database, tables)
    # A single row that is not dbgen's is noticed: one of 6,001,215.
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute(f"SET search_path = {TPCH_SCHEMA}".encode())
        connection.execute(b"UPDATE lineitem SET l_quantity = l_quantity + 1 WHERE (l_orderkey, l_linenumber) = (7, 1)")
    changed = validation.check(database, tables)
    with cluster.connect() as connection:
        connection.execute(f"DROP DATABASE answers_{profile} WITH (FORCE)")
    assert (result.ok, result.detail) == (True, "the 22 queries of the validation bring dbgen's answers")
    assert not changed.ok
    assert changed.detail.startswith("Q1 brings ")
