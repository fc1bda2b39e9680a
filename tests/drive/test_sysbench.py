"""sysbench's tests: each does what it says to the tables, counts as sysbench does, and goes on where that goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql

from pgdyno.machine.waiting import wait_until

from .driven import drive, driving, line, refused, settled, spec

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLES = 3
ROWS = 1000
COUNTED = 100
"""Transactions of the one client, where their number shows what a second of them would."""
PATIENCE_S = 20.0
TESTS = {
    "legacy": (14, 4, 2),
    "oltp_read_write": (14, 4, 2),
    "oltp_read_only": (14, 0, 2),
    "oltp_write_only": (0, 4, 2),
    "oltp_point_select": (1, 0, 0),
    "oltp_insert": (0, 1, 0),
    "oltp_delete": (0, 1, 0),
    "oltp_update_index": (0, 1, 0),
    "oltp_update_non_index": (0, 1, 0),
    "select_random_points": (1, 0, 0),
    "select_random_ranges": (1, 0, 0),
}
"""Queries of each transaction: read, write, other."""
ADDED = {"oltp_insert"}
REMOVED = {"oltp_delete"}


@pytest.fixture
def tables(dsn: str) -> Iterator[str]:
    """A database with sysbench's tables."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for number in range(1, TABLES + 1):
            name = sql.Identifier(f"sbtest{number}")
            connection.execute(
                sql.SQL(
                    "CREATE TABLE {} (id serial PRIMARY KEY, k integer DEFAULT 0 NOT NULL,"
                    " c char(120) DEFAULT '' NOT NULL, pad char(60) DEFAULT '' NOT NULL)"
                ).format(name)
            )
            connection.execute(
                sql.SQL(
                    "INSERT INTO {} (k, c, pad) SELECT i, md5(i::text), md5(i::text) FROM generate_series(1, {}) i"
                ).format(name, sql.Literal(ROWS))
            )
            connection.execute(sql.SQL("CREATE INDEX ON {} (k)").format(name))
        yield dsn
        for number in range(1, TABLES + 1):
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(f"sbtest{number}")))


def rows(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        counts = [
            connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(f"sbtest{number}"))).fetchone()
            for number in range(1, TABLES + 1)
        ]
    return sum(int(count[0]) for count in counts if count)


def sysbench(test: str, options: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A run of a test, by one client unless it is told otherwise, so that nobody is in its way."""
    on_k = test.startswith("select_random")
    workload = {"test": test, "tables": 1 if on_k else TABLES, "rows": ROWS} | (options or {})
    result = spec(workload={"sysbench": workload}, clients=1, duration_ms=1000)
    del result["protocol"]
    return result | more


@pytest.mark.parametrize("test", TESTS)
def test_each_transaction_has_the_queries_of_the_original(tables: str, test: str) -> None:
    summary = drive(tables, sysbench(test, transactions_max=COUNTED)).summary
    count = summary["succeeded"]
    assert count > 0
    assert (summary["failed"], summary["retries"]) == (0, 0)
    read, write, other = TESTS[test]
    assert summary["queries"] == {"read": read * count, "write": write * count, "other": other * count}
    assert summary["qps"] == pytest.approx((read + write + other) * summary["tps"])
    assert summary["scripts"][0]["name"] == test
    left = rows(tables) - TABLES * ROWS
    if test in ADDED:
        assert left == count
    elif test in REMOVED:
        assert -min(count, TABLES * ROWS) <= left < 0
    else:
        assert left == 0


def test_statements_of_all_tables_are_one_line_of_the_statistics(tables: str) -> None:
    summary = drive(tables, sysbench("oltp_read_write", transactions_max=COUNTED)).summary
    points = next(
        statement for statement in summary["statements"] if statement["name"] == "SELECT c FROM sbtestN WHERE id=$1"
    )
    assert (points["count"], points["class"]) == (10 * summary["succeeded"], "read")
    assert len(summary["statements"]) == 9 + 3


def test_options_are_sysbenchs(tables: str) -> None:
    options = {
        "point_selects": 2,
        "range_selects": False,
        "delete_inserts": 0,
        "skip_trx": True,
        "rand_type": "uniform",
    }
    summary = drive(tables, sysbench("oltp_read_write", options, transactions_max=COUNTED)).summary
    count = summary["succeeded"]
    assert summary["queries"] == {"read": 2 * count, "write": 2 * count, "other": 0}


@pytest.mark.parametrize(("test", "prepared"), [("oltp_point_select", True), ("oltp_insert", False)])
def test_statements_are_sent_as_the_original_sends_them(tables: str, test: str, prepared: bool) -> None:
    """The server shows what came last: text with the values in it, or with their places."""
    last = "SELECT query FROM pg_stat_activity WHERE application_name = 'pgdyno drive' AND query LIKE '%sbtest%'"
    document = sysbench(test, arrivals={"fixed": {"rate_per_s": 20}}, duration_ms=3000)
    with psycopg.connect(tables, autocommit=True) as observer, driving(tables, document) as process:
        line(process)
        assert wait_until(lambda: observer.execute(last).fetchone() is not None, PATIENCE_S)
        row = observer.execute(last).fetchone()
    assert row is not None
    assert ("$1" in row[0]) == prepared


def test_conflicts_are_begun_again_as_sysbench_does(tables: str) -> None:
    """Eight clients on twenty rows meet deadlocks, and keys that another one has just put back."""
    options = {"tables": 1, "rows": 20, "rand_type": "uniform"}
    document = sysbench("oltp_write_only", options, clients=8, duration_ms=2000)
    summary = drive(tables, document | {"server": {"options": "-c deadlock_timeout=5ms"}}).summary
    assert summary["succeeded"] > 0
    assert summary["retries"] > 0
    assert summary["failed"] <= 8, "only those that the end met"
    assert summary["errors"].keys() <= {"23505", "deadlock"}
    assert settled(summary) == summary["scheduled_with_warmup"]
    assert rows(tables) == TABLES * ROWS, "each row that went came again"


def test_what_cannot_be_driven_is_said(tables: str) -> None:
    error = refused(tables, sysbench("oltp"))
    assert 'no test "oltp"' in error["message"]
    assert "select_random_ranges" in error["remedy"]
    assert "one table" in refused(tables, sysbench("select_random_points", {"tables": 2}))["message"]
    assert "table_size" in refused(tables, sysbench("legacy", {"table_size": 5}))["message"]


def test_missing_tables_are_one_sentence(tables: str) -> None:
    error = refused(tables, sysbench("oltp_point_select", {"tables": 100}), code=1)
    assert 'relation "sbtest' in error["message"]
    assert "load" in error["remedy"]
