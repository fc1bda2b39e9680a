"""Orders whose keys the server gave while they were captured, in several ways, and that other sessions used."""

from __future__ import annotations

import json
import queue
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from tools.captured.logged import log_of

from ..support.commands import Ended, pgdyno
from .counted import copy_of
from .logged import AS_SUPERUSER, captured

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

ORDERS = 40
"""Of each thread that makes them."""
OLD_ORDERS = 100
OLD_EACH = 2
"""Of these, used with each new one: at this place of a statement fewer than half of the numbers are new keys."""
GIVEN_BEFORE = 4900
"""Numbers that nothing in the log tells of."""
MAKERS = ("returning", "function", "currval")
DONE = None
SCHEMA = """
CREATE TABLE orders (id bigserial PRIMARY KEY, ref uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(), note text, paid int);
CREATE TABLE lines (order_id bigint REFERENCES orders, number int, PRIMARY KEY (order_id, number));
CREATE TABLE payments (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ref uuid REFERENCES orders (ref), note text);
CREATE TABLE shipments (order_id bigint PRIMARY KEY REFERENCES orders, note text);
CREATE TABLE tickets (id bigint GENERATED ALWAYS AS IDENTITY (START 100001 CACHE 50) PRIMARY KEY, note text, used int);
CREATE TABLE seats (ticket bigint PRIMARY KEY REFERENCES tickets);
CREATE FUNCTION place(what text) RETURNS bigint LANGUAGE sql AS 'INSERT INTO orders (note) VALUES (what) RETURNING id';
GRANT ALL ON ALL TABLES IN SCHEMA public TO seller;
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO seller;
"""
ROWS = """
SELECT count(*), sum(o.paid), (SELECT sum(used) FROM tickets JOIN seats ON ticket = id),
  (SELECT md5(string_agg(note, ',' ORDER BY note)) FROM tickets WHERE used = 7), md5(string_agg(concat_ws(' ', o.note, l.number, p.note, s.note), ',' ORDER BY o.note, l.number, p.note))
FROM orders o LEFT JOIN lines l ON l.order_id = o.id LEFT JOIN payments p ON p.ref = o.ref LEFT JOIN shipments s ON s.order_id = o.id
"""
Made = tuple[int, Any, str, int]


def make(connection: psycopg.Connection[Any], how: str, note: str) -> Made:
    """An order with two lines, in a transaction; its keys come in one of several ways."""
    with connection.transaction():
        if how == "returning":
            with connection.transaction(force_rollback=True):
                connection.execute("INSERT INTO orders (note) VALUES (%s) RETURNING id, ref", [f"{note} undone"])
            row = connection.execute("INSERT INTO orders (note) VALUES (%s) RETURNING id, ref", [note]).fetchone()
            assert row is not None
            order, ref = row
            connection.execute("SELECT note FROM orders WHERE ref = %s", [ref])
        else:
            if how == "function":
                row = connection.execute("SELECT place(%s)", [note]).fetchone()
            else:
                connection.execute("INSERT INTO orders (note) VALUES (%s)", [note])
                row = connection.execute("SELECT currval('orders_id_seq')").fetchone()
            assert row is not None
            (order,), ref = row, None
        connection.execute("INSERT INTO lines VALUES (%s, 1)", [order])
        # As a text, where the key is a literal of it.
        connection.execute(f"INSERT INTO lines VALUES ({order}, 2)".encode())
        # Each session has fifty numbers of its own, so they come in no order.
        row = connection.execute("INSERT INTO tickets (note) VALUES (%s) RETURNING id", [note]).fetchone()
        assert row is not None
        connection.execute("INSERT INTO seats VALUES (%s)", row)
    return order, ref, note, row[0]


def use(connection: psycopg.Connection[Any], made: Made, old: list[int]) -> None:
    """What another session does with an order, and with more of them that were there before."""
    order, ref, note, ticket = made
    for number in [order, *old]:
        connection.execute("UPDATE orders SET paid = 5 WHERE id = %s", [number])
    connection.execute("INSERT INTO shipments VALUES (%s, %s)", [order, f"ships {note}"])
    connection.execute("UPDATE tickets SET used = 7 WHERE id = %s", [ticket])
    if ref is not None:
        connection.execute("INSERT INTO payments (ref, note) VALUES (%s, %s)", [ref, f"pays {note}"])
        connection.execute(f"SELECT note FROM orders WHERE ref = '{ref}'".encode())


def sell(dsn: str, each: int = ORDERS, users_each: int = 1) -> None:
    """Threads that make orders, so many each, and threads that use them a little later, so many for each of those."""
    orders: queue.Queue[Made | None] = queue.Queue()
    pause = threading.Event()

    def maker(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True, application_name="makers") as connection:
            for order in range(each):
                orders.put(make(connection, MAKERS[number], f"{number}-{order}"))

    def user(number: int) -> None:
        draw = random.Random(number)
        with psycopg.connect(dsn, autocommit=True, application_name="users") as connection:
            while (made := orders.get()) is not DONE:
                pause.wait(draw.uniform(0.001, 0.05))
                use(connection, made, [draw.randint(1, OLD_ORDERS) for _ in range(OLD_EACH)])

    with ThreadPoolExecutor(len(MAKERS) * (1 + users_each)) as pool:
        users = [pool.submit(user, number) for number in range(len(MAKERS) * users_each)]
        for item in [pool.submit(maker, number) for number in range(len(MAKERS))]:
            item.result()
        for _ in users:
            orders.put(DONE)
        for other in users:
            other.result()


@dataclass(frozen=True)
class Sold:
    """A database whose keys were given while it was captured, and as it was before."""

    cluster: Cluster
    capture: Path

    def replay(self, name: str, *options: str, template: str = "unsold") -> dict[str, Any]:
        """Replay it on a new copy; what it printed."""
        replay: dict[str, Any] = json.loads(self.replayed(name, *options, template=template).out)
        return replay

    def replayed(self, name: str, *options: str, template: str = "unsold") -> Ended:
        """Replay it on a new copy."""
        copy_of(self.cluster, template, name)
        where = ("--dsn", self.cluster.dsn, "--database", f"sold={name}", "--yes-write", *AS_SUPERUSER, "--json")
        return pgdyno("capture", "replay", self.capture, *where, *options)

    def rows(self, name: str) -> Any:
        """What is in it, without its keys."""
        with self.cluster.connect(dbname=name) as connection:
            return connection.execute(ROWS.encode()).fetchone()


def captured_sold(cluster: Cluster, folder: Path, each: int = ORDERS, users_each: int = 1) -> Sold:
    """Orders of several threads, as :func:`sell` has them. Their numbers begin behind some that nothing in the log tells of."""
    with cluster.connect() as admin:
        admin.execute("CREATE ROLE seller LOGIN")
        admin.execute("CREATE DATABASE sold")
        with cluster.connect(dbname="sold") as owner:
            owner.execute(SCHEMA.encode())
            owner.execute("INSERT INTO orders (note) SELECT 'old ' || n FROM generate_series(1, %s) n", [OLD_ORDERS])
        admin.execute("CREATE DATABASE unsold TEMPLATE sold")
    with cluster.connect(dbname="sold") as owner:
        owner.execute(f"SELECT setval('orders_id_seq', {OLD_ORDERS + GIVEN_BEFORE})".encode())

    logged = log_of(cluster, "sold", lambda server: sell(server.dsn_of("seller", "sold"), each, users_each))
    capture, _ = captured(folder, logged.files["csv"])
    return Sold(cluster, capture)
