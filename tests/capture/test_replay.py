"""The statements of a capture, sent to a copy of the database as it was, do what they did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgdyno.capture.replay import Replay
from pgdyno.postgres.cluster import Cluster

from ..support.commands import Ended, pgdyno
from .logged import captured, log_of

CLIENTS = 4
SESSIONS = 3
ROUNDS = 25
FAILING = CLIENTS * SESSIONS * ROUNDS
"""Each round has one statement that violates a key."""
SCHEMA = """
CREATE SCHEMA shop AUTHORIZATION app;
SET ROLE app;
CREATE TABLE shop.customers (id int PRIMARY KEY, visits int NOT NULL DEFAULT 0);
INSERT INTO shop.customers SELECT n FROM generate_series(1, 500) n;
CREATE TABLE shop.orders (id int PRIMARY KEY, customer int REFERENCES shop.customers, note text);
CREATE INDEX ON shop.orders (customer);
"""
ROWS = "SELECT (SELECT sum(visits * id) FROM shop.customers), count(*), sum(id), md5(string_agg(note, ',' ORDER BY id)) FROM shop.orders"


def client(dsn: str, number: int) -> None:
    """Sessions one after another, each with transactions of its own customers."""
    for session in range(SESSIONS):
        with psycopg.connect(dsn, autocommit=True, application_name="shop") as connection:
            for round_ in range(ROUNDS):
                order = (number * SESSIONS + session) * ROUNDS + round_
                customer = 1 + order % 100 + 100 * number
                connection.execute("SELECT visits FROM customers WHERE id = %s", [customer], prepare=True)
                with connection.transaction():
                    connection.execute("UPDATE customers SET visits = visits + 1 WHERE id = %s", [customer])
                    connection.execute("INSERT INTO orders VALUES (%s, %s, %s)", [order, customer, f"it's {order}"])
                    with pytest.raises(psycopg.errors.UniqueViolation), connection.transaction():
                        connection.execute("INSERT INTO orders VALUES (%s, %s, 'again')", [order, customer])
                    connection.execute(f"UPDATE orders SET note = note || 'x' WHERE id = {order}".encode())
            if number == 0:
                connection.execute("ALTER TABLE orders ALTER COLUMN note SET STATISTICS 10")
                connection.execute("SELECT visits FROM customers WHERE id = %s", [1], prepare=True)


@dataclass(frozen=True)
class Shop:
    """A database that was captured, and copies of it as it was before."""

    cluster: Cluster
    capture: Path

    def copy(self, name: str, *, change: str = "") -> str:
        """A copy of the database before the capture, changed as asked."""
        with self.cluster.connect() as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name}".encode())
            admin.execute(f"CREATE DATABASE {name} TEMPLATE before".encode())
        if change:
            with self.cluster.connect(dbname=name) as admin:
                admin.execute(change.encode())
        return name

    def rows(self, database: str) -> Any:
        """What the statements left in a database."""
        with self.cluster.connect(dbname=database) as connection:
            return connection.execute(ROWS.encode()).fetchone()

    def replay(self, database: str, *options: str) -> Ended:
        """Replay against a copy."""
        where = ("--dsn", self.cluster.dsn, "--database", f"shop={database}")
        return pgdyno("capture", "replay", self.capture, *where, *options)


@pytest.fixture(scope="module")
def shop(embedded_server: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The shop, used by several clients at a time."""
    with embedded_server.connect() as admin:
        admin.execute("CREATE ROLE app LOGIN; ALTER ROLE app SET search_path = shop")
        admin.execute("CREATE DATABASE shop")
        with embedded_server.connect(dbname="shop") as owner:
            owner.execute(SCHEMA.encode())
        admin.execute("CREATE DATABASE before TEMPLATE shop")

    def use(cluster: Cluster) -> None:
        dsn = cluster.dsn_of("app", "shop")
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(lambda number: client(dsn, number), range(CLIENTS)))

    logged = log_of(embedded_server, "shop", use)
    capture, _ = captured(tmp_path_factory.mktemp("replay"), logged.files["csv"])
    yield Shop(embedded_server, capture)


@pytest.mark.parametrize("pace", ["due", "gaps"])
def test_a_replay_leaves_the_rows_that_production_left(shop: Shop, pace: str) -> None:
    copy = shop.copy("replayed")
    ended = shop.replay(copy, "--yes-write", "--json", "--pace", pace)
    found = json.loads(ended.out)
    assert (found["newly_failed"], found["errors"]) == (0, []), found["errors"]
    assert found["failed_as_recorded"] == FAILING
    assert (found["no_longer_failed"], found["not_begun"], found["connections_lost"]) == (0, 0, 0)
    assert shop.rows(copy) == shop.rows("shop") != shop.rows("before")
    assert ended.code == 0, ended.err
    assert found["statements"] == json.loads(pgdyno("capture", "show", shop.capture, "--json", code=0).out)["calls"]


def test_there_are_never_more_places_than_the_application_had(shop: Shop) -> None:
    found = json.loads(shop.replay(shop.copy("faster"), "--yes-write", "--json", "--speed", "3").out)
    shown = json.loads(pgdyno("capture", "show", shop.capture, "--json", code=0).out)
    assert found["lanes"] < shown["sessions"]
    assert found["sessions"] == shown["sessions"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DROP TABLE shop.orders", "failed that had not failed so in production"),
        ("UPDATE shop.customers SET id = -id", "failed that had not failed so in production"),
    ],
)
def test_another_database_makes_a_replay_invalid_and_no_value_is_printed(shop: Shop, change: str, said: str) -> None:
    ended = shop.replay(shop.copy("other", change=change), "--yes-write")
    assert ended.code == 4
    assert said in ended.err
    assert "INSERT INTO orders VALUES" in ended.out
    assert "it's" not in ended.out + ended.err


def test_errors_that_do_not_come_again_are_counted(shop: Shop) -> None:
    copy = shop.copy("lax", change="ALTER TABLE shop.orders DROP CONSTRAINT orders_pkey")
    ended = shop.replay(copy, "--yes-write", "--json")
    assert json.loads(ended.out)["no_longer_failed"] == FAILING
    assert ended.code == 4
    assert "did not fail as they had in production" in ended.err


def test_nothing_is_sent_without_the_flag_or_to_what_cannot_be_reached(shop: Shop) -> None:
    copy = shop.copy("untouched")
    assert "add --yes-write" in shop.replay(copy).err
    assert shop.replay("nowhere", "--yes-write").code == 3
    assert "no statement of the user" in shop.replay(copy, "--yes-write", "--user", "nobody=app").err
    assert "is not a pair" in shop.replay(copy, "--yes-write", "--user", "app").err
    assert shop.rows(copy) == shop.rows("before")


SUMMARY: dict[str, Any] = {
    "statements": 1000,
    "recorded_us": 10_000,
    "newly_failed": 10,
    "no_longer_failed": 10,
    "left_out": {"a": 5, "b": 5},
    "left_out_us": 100,
    "not_begun": 0,
    "ended_by": None,
}


def test_a_replay_that_loses_no_more_than_one_in_a_hundred_is_valid() -> None:
    assert list(Replay(SUMMARY).reasons()) == []
    for change in (
        {"newly_failed": 11},
        {"no_longer_failed": 11},
        {"left_out": {"a": 11}},
        {"left_out_us": 101},
        {"not_begun": 1},
        {"ended_by": "x"},
    ):
        assert len(list(Replay(SUMMARY | change).reasons())) == 1, change
