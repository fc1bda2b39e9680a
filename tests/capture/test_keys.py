"""Keys that the server gives: learned from the log alone, exchanged, and waited for."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.machine.waiting import wait_until
from tools.captured.logged import log_of

from .logged import captured
from .sold import GIVEN_BEFORE, MAKERS, ORDERS, Sold

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

PATIENCE_S = 30.0


@pytest.mark.parametrize("speed", ["1", "4"])
def test_keys_are_learned_from_the_log_and_other_sessions_wait_for_them(sold: Sold, speed: str) -> None:
    replay = sold.replay("learned", "--speed", speed)
    assert (replay["newly_failed"], replay["errors"]) == (0, []), replay["errors"]
    keys = replay["keys"]
    # Numbers of all orders and tickets, and uuids of those that were told.
    assert keys["learned"] == keys["answered"] == ORDERS * (2 * len(MAKERS) + 1), keys
    assert (keys["ties"], keys["not_known"], keys["given_up"], keys["several_rows"]) == (0, 0, 0, 0), keys
    # The numbers between the dump's and the first of the log were given to rows that the dump lacks.
    fit, other = keys["fits"]
    assert (other["column"], other["missing"]) == ("tickets.id", 0), other
    # Makers at the same time take them in another order than the log's.
    assert fit["column"] == "orders.id" and abs(fit["missing"] - GIVEN_BEFORE) < len(MAKERS), fit
    assert replay["reasons"] == [f"the database is {fit['missing']:,} values of orders.id older than the capture"]
    assert sold.rows("learned") == sold.rows("sold") != sold.rows("unsold")


def test_a_database_of_after_the_capture_is_refused_before_the_first_statement(sold: Sold) -> None:
    ended = sold.replayed("later", template="sold")
    assert (ended.code, ended.error.code) == (2, "replay.database.newer"), ended.err
    assert {sequence["column"] for sequence in ended.error.data["sequences"]} <= {"orders.id", "tickets.id"}
    assert sold.rows("later") == sold.rows("sold")


def test_sent_as_captured_they_are_not_there(sold: Sold) -> None:
    replay = sold.replay("captured", "--keys", "captured")
    assert replay["keys"] is None
    assert replay["newly_failed"] > 0.01 * replay["statements"]
    assert {error["sqlstate"] for error in replay["errors"]} >= {"23503"}


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
    result = Sold(sold.cluster, capture)
    for name, wait_max, given_up in (("waits", "10", 0), ("given", "0.2", 1)):
        with sold.cluster.connect() as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(hold, sold.cluster, name, 0.8)
            replay = result.replay(name, "--wait-max", wait_max)
            held.result()
        assert (replay["keys"]["waited"], replay["keys"]["given_up"]) == (1, given_up), replay
        assert replay["newly_failed"] == given_up


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
