"""The original sysbench: what it prints becomes the same tables, and its rows are counted."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pgdyno.errors import HostError, InputError, PgdynoError
from pgdyno.subject import DistantServer
from pgdyno.workload import driver, histogram, sysbench
from pgdyno.workload.invariants import check, read_baseline
from pgdyno.workload.spec import WorkloadSpec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.postgres.cluster import Cluster

ROWS = 2000
needs_sysbench = pytest.mark.skipif(shutil.which("sysbench") is None, reason="sysbench is not installed")


def spec(**asked: Any) -> WorkloadSpec:
    """A small test."""
    return WorkloadSpec(**({"kind": "sysbench", "tables": 2, "rows": ROWS, "clients": 2, "engine": "sysbench"} | asked))


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


@needs_sysbench
@pytest.mark.parametrize("test", ["oltp_read_write", "oltp_insert", "oltp_delete", "select_random_points"])
def test_the_original_is_told_as_any_driver(tables: Cluster, tmp_path: Path, test: str) -> None:
    asked = spec(test=test, tables=1 if test == "select_random_points" else 2)
    begun: list[str] = []
    started = time.monotonic()
    outcome = driver.runner(asked)(
        tables,
        asked,
        2.0,
        tmp_path,
        warmup_s=1.0,
        on_start=lambda pid: begun.append(f"pid {pid > 0}"),
        on_measure_begin=lambda: begun.append("begin"),
        on_measure_end=lambda: begun.append("end"),
    )
    assert begun == ["pid True", "begin", "end"]
    checks = (*outcome.checks, *check(tables, outcome))
    assert [one for one in checks if not one.ok] == []
    assert checks[-1].name == "sysbench_rows"
    assert 0 < outcome.account.succeeded < outcome.account_total.succeeded
    # A busy machine lets it end late; its warm-up is not counted in any case.
    assert 1.9 < outcome.phases[-1].seconds < time.monotonic() - started - 0.9
    assert set(outcome.latency["script"].to_pylist()) == {test}
    of_each = {"oltp_read_write": 20}.get(test, 1)
    # A transaction that failed and was tried again has sent some of its own twice.
    assert outcome.queries == pytest.approx(of_each * outcome.account.succeeded, rel=0.02)
    counted = histogram.decode(outcome.histograms["histograms"]["all"]).get_total_count()
    assert counted == outcome.account.succeeded
    each_second = sum(outcome.throughput["transactions"].to_pylist())
    assert each_second == pytest.approx(outcome.account.succeeded, abs=3), "each is rounded to a whole one"
    assert (outcome.driver.engine, outcome.driver.threads) == ("sysbench", 2)
    assert outcome.driver.version is not None


@needs_sysbench
@pytest.mark.parametrize("engine", ["sysbench", "native"])
def test_options_are_told_to_both_drivers(tables: Cluster, tmp_path: Path, engine: str) -> None:
    """Two points, a range and its sum, and a row that goes and comes again, without BEGIN and COMMIT."""
    counts = {"point_selects": 2, "order_ranges": 0, "distinct_ranges": 0, "index_updates": 0, "non_index_updates": 0}
    asked = spec(engine=engine, clients=1, options=counts | {"skip_trx": True, "range_size": 7})
    outcome = driver.runner(asked)(tables, asked, 1.0, tmp_path)
    assert [one for one in (*outcome.checks, *check(tables, outcome)) if not one.ok] == []
    assert outcome.account.succeeded > 10
    # What is under way at either end of the second is a part of a transaction.
    assert outcome.queries == pytest.approx(6 * outcome.account.succeeded, abs=12)


@needs_sysbench
def test_tables_that_are_missing_are_an_error(cluster: Cluster, tmp_path: Path) -> None:
    with cluster.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS sbtest1, sbtest2")
    asked = spec()
    with pytest.raises(PgdynoError, match="sysbench failed"):
        driver.runner(asked)(cluster, asked, 1.0, tmp_path)


def test_what_is_not_installed_is_refused_with_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="needs the original program") as caught:
        driver.require(spec())
    assert "package sysbench" in caught.value.remedy


def test_a_test_that_the_package_lacks_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "sysbench"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysbench, "LEGACY_SCRIPT", tmp_path / "oltp.lua")
    driver.require(spec())
    with pytest.raises(HostError, match=r"no legacy: .*oltp\.lua does not exist"):
        driver.require(spec(test="legacy"))
    (tmp_path / "oltp.lua").write_text("")
    driver.require(spec(test="legacy"))


class Counted:
    """What a run counted, as far as rows are concerned."""

    def __init__(self, asked: WorkloadSpec, succeeded: int) -> None:
        from pgdyno.store.record import Account

        self.spec = asked
        self.account_total = Account(scheduled=succeeded, skipped=0, succeeded=succeeded, failed=0)
        self.uncounted_max = 0
        self.bulk_load = None


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
    asked = spec(test=test)
    before = read_baseline(tables, asked)
    assert before.sysbench_rows == 2 * ROWS
    if change:
        with tables.connect() as connection:
            connection.execute(change)
    counted: Any = Counted(asked, succeeded=3)
    (found,) = check(tables, counted, baseline=before)
    assert found.ok is ok, found.detail
    assert check(tables, counted)[0].ok is ok, "tables just loaded need no baseline"


def test_many_rows_are_counted_only_when_asked(tables: Cluster) -> None:
    asked = spec(rows=50_000_000)
    counted: Any = Counted(asked, succeeded=3)
    assert check(tables, counted) == ()
    assert read_baseline(tables, asked).sysbench_rows is None
    assert [one.ok for one in check(tables, counted, full=True)] == [False]


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
        read_baseline(DistantServer(bare, cluster.binaries), spec())
    assert "make the tables first" in caught.value.remedy


def test_counting_may_take_longer_than_a_roles_statements(cluster: Cluster, bare: str) -> None:
    with psycopg.connect(bare, autocommit=True) as connection:
        connection.execute("CREATE VIEW sbtest1 AS SELECT 1 AS id WHERE pg_sleep(1) IS NOT NULL")
    impatient = make_conninfo(bare, options="-c statement_timeout=500ms")
    assert read_baseline(DistantServer(impatient, cluster.binaries), spec(tables=1)).sysbench_rows == 1
