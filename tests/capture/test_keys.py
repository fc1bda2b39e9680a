"""Keys that the server gives: learned from the log alone, exchanged, and waited for."""

from __future__ import annotations

import json
import queue
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.host.waiting import wait_until

from ..support.commands import pgdyno
from .logged import captured, log_of

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.postgres.cluster import Cluster

ORDERS = 40
"""Of each thread that makes them."""
MAKERS = ("returning", "function", "currval")
DONE = None
PATIENCE_S = 30.0
SCHEMA = """
CREATE TABLE orders (id bigserial PRIMARY KEY, ref uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(), note text, paid int);
CREATE TABLE lines (order_id bigint REFERENCES orders, number int, PRIMARY KEY (order_id, number));
CREATE TABLE payments (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ref uuid REFERENCES orders (ref), note text);
CREATE TABLE shipments (order_id bigint PRIMARY KEY REFERENCES orders, note text);
CREATE FUNCTION place(what text) RETURNS bigint LANGUAGE sql AS 'INSERT INTO orders (note) VALUES (what) RETURNING id';
GRANT ALL ON ALL TABLES IN SCHEMA public TO seller;
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO seller;
"""
ROWS = """
SELECT count(*), sum(o.paid), md5(string_agg(concat_ws(' ', o.note, l.number, p.note, s.note), ',' ORDER BY o.note, l.number, p.note))
FROM orders o LEFT JOIN lines l ON l.order_id = o.id LEFT JOIN payments p ON p.ref = o.ref LEFT JOIN shipments s ON s.order_id = o.id
"""
Made = tuple[int, Any, str]


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
    return order, ref, note


def use(connection: psycopg.Connection[Any], made: Made) -> None:
    """What another session does with an order."""
    order, ref, note = made
    connection.execute("UPDATE orders SET paid = 5 WHERE id = %s", [order])
    connection.execute("INSERT INTO shipments VALUES (%s, %s)", [order, f"ships {note}"])
    if ref is not None:
        connection.execute("INSERT INTO payments (ref, note) VALUES (%s, %s)", [ref, f"pays {note}"])
        connection.execute(f"SELECT note FROM orders WHERE ref = '{ref}'".encode())


def sell(dsn: str) -> None:
    """Threads that make orders, and as many that use them a little later."""
    orders: queue.Queue[Made | None] = queue.Queue()
    pause = threading.Event()

    def maker(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True, application_name="makers") as connection:
            for order in range(ORDERS):
                orders.put(make(connection, MAKERS[number], f"{number}-{order}"))

    def user(number: int) -> None:
        draw = random.Random(number)
        with psycopg.connect(dsn, autocommit=True, application_name="users") as connection:
            while (made := orders.get()) is not DONE:
                pause.wait(draw.uniform(0.001, 0.05))
                use(connection, made)

    with ThreadPoolExecutor(2 * len(MAKERS)) as pool:
        users = [pool.submit(user, number) for number in range(len(MAKERS))]
        for one in [pool.submit(maker, number) for number in range(len(MAKERS))]:
            one.result()
        for _ in users:
            orders.put(DONE)
        for one in users:
            one.result()


@dataclass(frozen=True)
class Sold:
    """A database whose keys were given while it was captured, and as it was before."""

    cluster: Cluster
    capture: Path

    def replay(self, name: str, *options: str) -> dict[str, Any]:
        """Replay it on a new copy."""
        with self.cluster.connect() as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name}".encode())
            admin.execute(f"CREATE DATABASE {name} TEMPLATE unsold".encode())
        where = ("--dsn", self.cluster.dsn, "--database", f"sold={name}", "--yes-write", "--json")
        found: dict[str, Any] = json.loads(pgdyno("capture", "replay", self.capture, *where, *options).out)
        return found

    def rows(self, name: str) -> Any:
        """What is in it, without its keys."""
        with self.cluster.connect(dbname=name) as connection:
            return connection.execute(ROWS.encode()).fetchone()


@pytest.fixture(scope="module")
def sold(embedded_server: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Sold:
    """Orders of several threads. Their numbers begin behind some that nothing in the log tells of."""
    with embedded_server.connect() as admin:
        admin.execute("CREATE ROLE seller LOGIN")
        admin.execute("CREATE DATABASE sold")
        with embedded_server.connect(dbname="sold") as owner:
            owner.execute(SCHEMA.encode())
            owner.execute("INSERT INTO orders (note) SELECT 'old ' || n FROM generate_series(1, 100) n")
        admin.execute("CREATE DATABASE unsold TEMPLATE sold")
    with embedded_server.connect(dbname="sold") as owner:
        owner.execute("SELECT setval('orders_id_seq', 5000)")

    logged = log_of(embedded_server, "sold", lambda cluster: sell(cluster.dsn_of("seller", "sold")))
    capture, _ = captured(tmp_path_factory.mktemp("sold"), logged.files["csv"])
    return Sold(embedded_server, capture)


@pytest.mark.parametrize("speed", ["1", "4"])
def test_keys_are_learned_from_the_log_and_other_sessions_wait_for_them(sold: Sold, speed: str) -> None:
    found = sold.replay("learned", "--speed", speed)
    assert (found["newly_failed"], found["errors"]) == (0, []), found["errors"]
    keys = found["keys"]
    # Numbers of all orders, and uuids of those that were told.
    assert keys["learned"] == keys["exchanged"] == ORDERS * (len(MAKERS) + 1), keys
    assert (keys["ties"], keys["not_known"], keys["given_up"], keys["several_rows"]) == (0, 0, 0, 0), keys
    assert sold.rows("learned") == sold.rows("sold") != sold.rows("unsold")


def test_sent_as_captured_they_are_not_there(sold: Sold) -> None:
    found = sold.replay("captured", "--keys", "captured")
    assert found["keys"] is None
    assert found["newly_failed"] > 0.01 * found["statements"]
    assert {one["sqlstate"] for one in found["errors"]} >= {"23503"}


def test_a_statement_waits_for_the_transaction_that_makes_its_key_and_no_longer_than_allowed(
    sold: Sold, tmp_path: Path
) -> None:
    def late(cluster: Cluster) -> None:
        # In production both took no time; here the maker's transaction waits for a lock that another holds.
        with connected_to(cluster, "sold") as maker, connected_to(cluster, "sold") as user:
            with maker.transaction():
                maker.execute("UPDATE orders SET paid = 1 WHERE id = 1")
                (order,) = maker.execute("INSERT INTO orders (note) VALUES ('late') RETURNING id").fetchone() or (0,)
                maker.execute("INSERT INTO lines VALUES (%s, 1)", [order])
            user.execute("INSERT INTO shipments VALUES (%s, 'late')", [order])

    logged = log_of(sold.cluster, "late", late)
    capture, _ = captured(tmp_path, logged.files["csv"])
    one = Sold(sold.cluster, capture)
    for name, wait_max, given_up in (("waits", "10", 0), ("given", "0.2", 1)):
        with sold.cluster.connect() as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(hold, sold.cluster, name, 0.8)
            found = one.replay(name, "--wait-max", wait_max)
            held.result()
        assert (found["keys"]["waited"], found["keys"]["given_up"]) == (1, given_up), found
        assert found["newly_failed"] == given_up


def connected_to(cluster: Cluster, database: str) -> psycopg.Connection[Any]:
    """A session of the role that sells."""
    return psycopg.connect(cluster.dsn_of("seller", database), autocommit=True, application_name="late")


def hold(cluster: Cluster, database: str, seconds: float) -> None:
    """Lock the first order of a database as soon as it exists, until another session has waited for it for a while."""
    assert wait_until(lambda: there(cluster, database), PATIENCE_S)
    with cluster.connect(dbname=database) as connection, connection.transaction():
        connection.execute("UPDATE orders SET paid = 0 WHERE id = 1")
        assert wait_until(lambda: waits(cluster), PATIENCE_S)
        threading.Event().wait(seconds)


def there(cluster: Cluster, database: str) -> bool:
    """Whether it can be connected to."""
    try:
        cluster.connect(dbname=database).close()
    except psycopg.OperationalError:
        return False
    return True


def waits(cluster: Cluster) -> bool:
    """Whether a session waits for a lock."""
    with cluster.connect() as connection:
        return connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone() is not None
