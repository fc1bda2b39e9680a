"""An order shop that was captured, and copies of its database as it was before."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from ..support.commands import Ended, pgdyno
from .counted import copy_of, counted
from .logged import AS_SUPERUSER, sessions

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

CLIENTS = 4
SESSIONS = 3
ROUNDS = 25
SETTER = "a session that sets something"
FAILING = CLIENTS * SESSIONS * ROUNDS
"""Each round has one statement that violates a key."""
SCHEMA = """
CREATE EXTENSION pg_stat_statements;
CREATE SCHEMA shop AUTHORIZATION app;
CREATE SCHEMA not_of_app;
CREATE TABLE not_of_app.notes (id serial);
SET ROLE app;
CREATE TABLE shop.customers (id int PRIMARY KEY, visits int NOT NULL DEFAULT 0);
INSERT INTO shop.customers SELECT n FROM generate_series(1, 500) n;
CREATE TABLE shop.orders (id int PRIMARY KEY, customer int REFERENCES shop.customers, note text);
CREATE INDEX ON shop.orders (customer);
GRANT USAGE ON SCHEMA shop TO setter;
GRANT SELECT ON shop.customers TO setter;
"""
ROWS = "SELECT (SELECT sum(visits * id) FROM shop.customers), count(*), sum(id), md5(string_agg(note, ',' ORDER BY id)) FROM shop.orders"

TEXTS = [f"said-{number * 7919:x}-to-us" for number in range(1000)]
"""What a customer sends: none of it is to be found afterwards."""


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
                connection.execute("SELECT cardinality(%s::text[])", [TEXTS])
                connection.execute("ALTER TABLE orders ALTER COLUMN note SET STATISTICS 10")
                connection.execute("SELECT visits FROM customers WHERE id = %s", [1], prepare=True)


@dataclass(frozen=True)
class Shop:
    """A database that was captured, and copies of it as it was before."""

    cluster: Cluster
    capture: Path
    after_setting_s: float
    """Seconds since the first statement, after the role `setter` has set its search_path and before it needs it."""
    stats: tuple[Path, Path]
    """What the server had counted before the capture and after it."""

    def copy(self, name: str, *, change: str = "") -> str:
        """A copy of the database before the capture, changed as asked."""
        return copy_of(self.cluster, "before", name, change)

    def rows(self, database: str) -> Any:
        """What the statements left in a database."""
        with self.cluster.connect(dbname=database) as connection:
            return connection.execute(ROWS.encode()).fetchone()

    def replay(self, database: str, *options: str) -> Ended:
        """Replay against a copy."""
        where = ("--dsn", self.cluster.dsn, "--database", f"shop={database}", *AS_SUPERUSER)
        return pgdyno("capture", "replay", self.capture, *where, *options)


def captured_shop(cluster: Cluster, folder: Path) -> Shop:
    """The shop, used by several clients at a time."""
    with cluster.connect() as admin:
        admin.execute("CREATE ROLE app LOGIN; ALTER ROLE app SET search_path = shop; CREATE ROLE setter LOGIN")
        admin.execute("CREATE DATABASE shop")
        with cluster.connect(dbname="shop") as owner:
            owner.execute(SCHEMA.encode())
        admin.execute("CREATE DATABASE before TEMPLATE shop")

    def use(server: Cluster) -> None:
        dsn = server.dsn_of("app", "shop")
        own = psycopg.connect(server.dsn_of("setter", "shop"), autocommit=True, application_name=SETTER)
        with own as setter, ThreadPoolExecutor(CLIENTS) as pool:
            setter.execute("SET search_path = shop")
            list(pool.map(lambda number: client(dsn, number), range(CLIENTS)))
            setter.execute("SELECT count(*) FROM customers")

    result = counted(cluster, "shop", folder, use)
    first_us = json.loads(pgdyno("capture", "show", result.capture, "--json", code=0).out)["first_us"]
    (own,) = sessions(result.capture, SETTER)
    return Shop(cluster, result.capture, (own["calls"][1]["due_us"] - first_us) / 1e6 - 0.0005, result.stats)
