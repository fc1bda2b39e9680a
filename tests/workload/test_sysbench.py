"""The tests of sysbench: options reach the driver, and the rows are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pgdyno.base.errors import InputError
from pgdyno.kinds.registry import workload_of
from pgdyno.workload.outcome import RunRequest
from pgdyno.world.client_endpoint import ReachedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster
    from pgdyno.workload.kind import Workload

ROWS = 2000


def spec(**result: Any) -> Workload:
    """A small test."""
    return workload_of(**({"kind": "sysbench", "tables": 2, "rows": ROWS, "clients": 2} | result))


@pytest.fixture
def tables(cluster: Cluster) -> Cluster:
    """Two tables as sysbench makes them, with fewer columns' worth of care: ids from 1, k among them."""
    with cluster.connect() as connection:
        for number in (1, 2):
            table = f"sbtest{number}"
            connection.execute(f"DROP TABLE IF EXISTS {table}")
            connection.execute(
                f"CREATE TABLE {table} (id serial PRIMARY KEY, k integer NOT NULL DEFAULT 0,"
                " c char(120) NOT NULL DEFAULT '', pad char(60) NOT NULL DEFAULT '')"
            )
            connection.execute(f"INSERT INTO {table} (k) SELECT g FROM generate_series(1, {ROWS}) g")
            connection.execute(f"CREATE INDEX k_{number} ON {table} (k)")
    return cluster


def test_options_are_told_to_the_driver(tables: Cluster, tmp_path: Path) -> None:
    """Two points, a range and its sum, and a row that goes and comes again, without BEGIN and COMMIT."""
    counts = {"point_selects": 2, "order_ranges": 0, "distinct_ranges": 0, "index_updates": 0, "non_index_updates": 0}
    workload = spec(clients=1, options=counts | {"skip_trx": True, "range_size": 7})
    outcome = workload.runner()(tables, RunRequest(1.0, tmp_path))
    assert [check for check in (*outcome.checks, *workload.proofs(tables, outcome)) if not check.ok] == []
    assert outcome.account.succeeded > 10
    # What is under way at either end of the second is a part of a transaction.
    assert outcome.queries == pytest.approx(6 * outcome.account.succeeded, abs=12)


class Counted:
    """What a run counted, as far as rows are concerned."""

    def __init__(self, succeeded: int) -> None:
        from pgdyno.results.record import Account

        self.account_total = Account(scheduled=succeeded, skipped=0, succeeded=succeeded, failed=0)
        self.uncounted_max = 0


@pytest.mark.parametrize(
    ("test", "change", "ok"),
    [
        ("oltp_read_write", "", True),
        ("oltp_read_write", "DELETE FROM sbtest2 WHERE id = 1", False),
        ("oltp_insert", "INSERT INTO sbtest1 (k) VALUES (1), (2), (3)", True),
        ("oltp_insert", "INSERT INTO sbtest1 (k) VALUES (1), (2)", False),
        ("oltp_delete", "DELETE FROM sbtest1 WHERE id <= 2", True),
        ("oltp_delete", "DELETE FROM sbtest1 WHERE id <= 4", False),
    ],
)
def test_rows_are_what_the_test_leaves(tables: Cluster, test: str, change: str, ok: bool) -> None:
    workload = spec(test=test)
    before = workload.baseline(tables)
    assert before == 2 * ROWS
    if change:
        with tables.connect() as connection:
            connection.execute(change)
    counted: Any = Counted(succeeded=3)
    (check,) = workload.proofs(tables, counted, baseline=before)
    assert check.ok is ok, check.detail
    assert workload.proofs(tables, counted)[0].ok is ok, "tables just loaded need no baseline"


def test_many_rows_are_counted_only_when_asked(tables: Cluster) -> None:
    workload = spec(rows=50_000_000)
    counted: Any = Counted(succeeded=3)
    assert workload.proofs(tables, counted) == ()
    assert workload.baseline(tables) is None
    assert [proof.ok for proof in workload.proofs(tables, counted, full=True)] == [False]


@pytest.fixture
def bare(cluster: Cluster) -> Iterator[str]:
    """Connection string of a database without tables."""
    with cluster.connect() as connection:
        connection.execute("CREATE DATABASE tableless")
        try:
            yield make_conninfo(cluster.dsn, dbname="tableless")
        finally:
            connection.execute("DROP DATABASE tableless WITH (FORCE)")


def test_tables_that_are_not_there_are_no_bug(cluster: Cluster, bare: str) -> None:
    with pytest.raises(InputError, match='relation "sbtest1" does not exist') as caught:
        spec().baseline(ReachedServer(bare, cluster.binaries, None))
    assert "create the tables first" in caught.value.remedy


def test_counting_may_take_longer_than_a_roles_statements(cluster: Cluster, bare: str) -> None:
    with psycopg.connect(bare, autocommit=True) as connection:
        connection.execute("CREATE VIEW sbtest1 AS SELECT 1 AS id WHERE pg_sleep(1) IS NOT NULL")
    impatient = make_conninfo(bare, options="-c statement_timeout=500ms")
    assert spec(tables=1).baseline(ReachedServer(impatient, cluster.binaries, None)) == 1
