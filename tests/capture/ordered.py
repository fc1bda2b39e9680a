"""An order shop whose numbers are small: keys, quantities and amounts may be the same numbers, and only the statements say which is which."""

from __future__ import annotations

import json
import queue
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg

from tools.captured.logged import log_of

from ..support.commands import pgdyno
from .counted import copy_of
from .logged import AS_SUPERUSER, captured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

    Connection = psycopg.Connection[tuple[Any, ...]]
    Cursor = psycopg.Cursor[tuple[Any, ...]]

SELLERS = 4
ROUNDS = 15
"""Of each of them."""
SCHEMA = """
CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL UNIQUE, visits int NOT NULL DEFAULT 0);
CREATE TABLE accounts (id int PRIMARY KEY, bal int NOT NULL);
CREATE TABLE stock (id int PRIMARY KEY, n int NOT NULL);
CREATE TABLE orders (id bigserial PRIMARY KEY, customer_id int NOT NULL REFERENCES customers, note text UNIQUE, total int, paid int);
CREATE TABLE lines (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id bigint NOT NULL REFERENCES orders, product int NOT NULL REFERENCES stock, quantity int NOT NULL);
CREATE TABLE payments (order_id bigint NOT NULL, amount int NOT NULL);
CREATE VIEW open_orders AS SELECT o.id AS number, o.note, c.name FROM orders o JOIN customers c ON c.id = o.customer_id WHERE o.paid IS NULL;
INSERT INTO accounts SELECT n, 700 FROM generate_series(1, 6) n;
INSERT INTO stock SELECT n, 1000 FROM generate_series(1, 8) n;
GRANT ALL ON ALL TABLES IN SCHEMA public TO ordering;
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO ordering;
"""
SERIAL = ("customers_id_seq", "orders_id_seq", "lines_id_seq")
CONTENTS = {
    "customers": "SELECT name, visits FROM customers",
    "accounts": "SELECT id, bal FROM accounts",
    "stock": "SELECT id, n FROM stock",
    "orders": "SELECT o.note, c.name, o.total, o.paid FROM orders o JOIN customers c ON c.id = o.customer_id",
    "lines": "SELECT o.note, l.product, l.quantity FROM lines l JOIN orders o ON o.id = l.order_id",
    "payments": "SELECT o.note, p.amount FROM payments p LEFT JOIN orders o ON o.id = p.order_id",
}
"""What each table has, with what its keys refer to in the place of the keys."""


def contents(cluster: Cluster, database: str, of: dict[str, str] = CONTENTS) -> dict[str, str]:
    """Table -> hash of its rows."""
    contents = {}
    with cluster.connect(dbname=database) as connection:
        for table, query in of.items():
            hashed = f"SELECT md5(coalesce(string_agg(x::text, ',' ORDER BY x::text), '')) FROM ({query}) x"
            (contents[table],) = connection.execute(hashed.encode()).fetchone() or ("",)
    return contents


def sell(dsn: str) -> None:
    """Sellers with both protocols at a time, and one who takes the money for what they sold."""
    orders: queue.Queue[tuple[int, int] | None] = queue.Queue()

    def seller(number: int) -> None:
        draw, factory = random.Random(number), psycopg.ClientCursor if number % 2 else psycopg.Cursor
        with psycopg.connect(dsn, autocommit=True, cursor_factory=factory) as connection:
            customer = 0
            for round_ in range(ROUNDS):
                name = f"{number}-{round_}"
                with connection.transaction():
                    if round_ % 3 == 0:
                        customer = one(
                            connection.execute("INSERT INTO customers (name) VALUES (%s) RETURNING id", [name])
                        )
                    made = order(connection, customer, name, draw)
                orders.put(made)

    def cashier() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            taken = []
            while (made := orders.get()) is not None:
                number, total = made
                taken.append(number)
                connection.execute("INSERT INTO payments (order_id, amount) VALUES (%s, %s)", [number, total])
                connection.execute("UPDATE orders SET paid = %s WHERE id = %s", [total, number])
                connection.execute("SELECT name FROM open_orders WHERE number = %s", [number])
                connection.execute("SELECT sum(amount), (SELECT sum(quantity) FROM lines) FROM payments")
                if len(taken) == 5:
                    connection.execute("UPDATE orders SET paid = paid + 1 WHERE id = ANY(%s)", [taken])
                    text = (
                        f"UPDATE orders SET total = total + 3 WHERE id IN ({', '.join(map(str, taken))}) AND total > 4"
                    )
                    connection.execute(text.encode())
                    taken = []

    with ThreadPoolExecutor(SELLERS + 1) as pool:
        paid = pool.submit(cashier)
        try:
            for ended in [pool.submit(seller, number) for number in range(SELLERS)]:
                ended.result()
        finally:
            orders.put(None)
        paid.result()


def order(connection: Connection, customer: int, note: str, draw: random.Random) -> tuple[int, int]:
    """An order with lines, and what it takes from the stock and an account. Its number, and what it costs."""
    run, total = connection.execute, 0
    made = "INSERT INTO orders (customer_id, note) VALUES (%s, %s) RETURNING id AS number"
    number = one(run(made, [customer, note]))
    # In one order, or they would wait for each other.
    for product in sorted(draw.sample(range(1, 9), 2)):
        quantity = draw.randint(1, 10)
        run("INSERT INTO lines (order_id, product, quantity) VALUES (%s, %s, %s)", [number, product, quantity])
        run("UPDATE stock SET n = n - %s WHERE id = %s", [quantity, product])
        total += quantity
    run("UPDATE accounts SET bal = bal - %s WHERE id = %s", [draw.randint(0, 24), draw.randint(1, 6)])
    run("UPDATE orders SET total = %s WHERE id = %s", [total, number])
    run("UPDATE customers SET visits = visits + 1 WHERE id = %s", [customer])
    run("SELECT id FROM lines WHERE quantity > %s ORDER BY 1 LIMIT 7 OFFSET 2", [draw.randint(1, 10)])
    return number, total


def one(cursor: Cursor) -> int:
    """The number that an answer has."""
    (number,) = cursor.fetchone() or (0,)
    return int(number)


@dataclass(frozen=True)
class Ordered:
    """A capture of a database, and the database as it was before, as ``template``."""

    cluster: Cluster
    capture: Path
    name: str
    template: str
    contents: dict[str, str] = field(default_factory=lambda: CONTENTS)

    def replay(self, *options: str) -> dict[str, Any]:
        """Replay it on a new copy."""
        copy = copy_of(self.cluster, self.template, f"{self.name}_copy")
        where = ("--dsn", self.cluster.dsn, "--database", f"{self.name}={copy}", "--yes-write", *AS_SUPERUSER, "--json")
        ended = pgdyno("capture", "replay", self.capture, *where, *options)
        assert ended.out, ended.err
        replay: dict[str, Any] = json.loads(ended.out)
        return replay

    def differing(self) -> set[str]:
        """Tables whose rows are others in the copy."""
        here, there = (contents(self.cluster, name, self.contents) for name in (f"{self.name}_copy", self.name))
        return {table for table in here if here[table] != there[table]}


def captured_orders(
    cluster: Cluster,
    folder: Path,
    name: str,
    use: Callable[[str], None] = sell,
    *,
    schema: str = SCHEMA,
    starts: Sequence[str] = (),
    of: dict[str, str] = CONTENTS,
) -> Ordered:
    """A use of a database that begins with ``schema`` and with sequences as ``starts`` says."""
    template = f"{name}_before"
    with cluster.connect() as admin:
        admin.execute("DO $$ BEGIN CREATE ROLE ordering LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        for database in (name, template):
            admin.execute(f"DROP DATABASE IF EXISTS {database}".encode())
        admin.execute(f"CREATE DATABASE {name}".encode())
        with cluster.connect(dbname=name) as owner:
            owner.execute(schema.encode())
            for start in starts:
                owner.execute(start.encode())
        admin.execute(f"CREATE DATABASE {template} TEMPLATE {name}".encode())
    logged = log_of(cluster, name, lambda server: use(server.dsn_of("ordering", name)))
    capture, _ = captured(folder, logged.files["csv"])
    return Ordered(cluster, capture, name, template, of)


class Busy:
    """Sessions of one kind at a time, each with its number."""

    def __init__(self, dsn: str, count: int, work: Callable[[Connection, int], None]) -> None:
        self._dsn, self._work, self._together = dsn, work, threading.Barrier(count)
        with ThreadPoolExecutor(count) as pool:
            for ended in [pool.submit(self._run, number) for number in range(count)]:
                ended.result()

    def _run(self, number: int) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            self._together.wait(30)
            self._work(connection, number)
