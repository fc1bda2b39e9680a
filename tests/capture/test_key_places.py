"""Keys are exchanged where they are keys: quantities, amounts and account numbers stay what they are, or the replay says that it cannot tell."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from .ordered import SERIAL, Busy, captured_orders, one

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

    from .ordered import Connection

MINI = """
CREATE TABLE o (id serial PRIMARY KEY, note text UNIQUE, used int NOT NULL DEFAULT 0);
CREATE TABLE stock (id int PRIMARY KEY, n int);
INSERT INTO stock VALUES (1, 1000);
GRANT ALL ON ALL TABLES IN SCHEMA public TO ordering;
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO ordering;
"""
MINI_ROWS = {"o": "SELECT note, used FROM o", "stock": "SELECT id, n FROM stock"}


def starting(at: int) -> list[str]:
    """Sequences whose next value is this."""
    return [f"ALTER SEQUENCE {name} RESTART WITH {at}" for name in SERIAL]


@pytest.mark.parametrize(
    ("name", "starts"),
    [
        ("from_1", starting(1)),
        ("from_20", starting(20)),
        ("from_50000", starting(50_000)),
        ("one_from_1", [*starting(50_000), "ALTER SEQUENCE orders_id_seq RESTART WITH 1"]),
    ],
)
def test_an_order_shop_comes_out_the_same_wherever_its_sequences_start(
    embedded_server: Cluster, tmp_path: Path, name: str, starts: list[str]
) -> None:
    orders = captured_orders(embedded_server, tmp_path, name, starts=starts)
    replay = orders.replay("--speed", "2")
    assert (replay["reasons"], orders.differing()) == ([], set()), replay["keys"]
    keys = replay["keys"]
    assert (replay["newly_failed"], keys["doubtful"], keys["given_up"]) == (0, 0, 0), keys
    # Every order and every fifth customer is used, at a dozen places each.
    assert keys["answered"] == keys["learned"] and keys["exchanged"] > 5 * keys["learned"], keys


def test_numbers_that_happen_to_be_keys_are_not_exchanged(embedded_server: Cluster, tmp_path: Path) -> None:
    def work(connection: Connection, number: int) -> None:
        draw = random.Random(number)
        for round_ in range(20):
            order = one(connection.execute("INSERT INTO o (note) VALUES (%s) RETURNING id", [f"{number}-{round_}"]))
            connection.execute("UPDATE stock SET n = n - %s WHERE id = 1", [draw.randint(1, 10)])
            connection.execute("UPDATE o SET used = used + 1 WHERE id = %s", [order])

    def use(dsn: str) -> None:
        Busy(dsn, 4, work)

    orders = captured_orders(embedded_server, tmp_path, "mini", use, schema=MINI, of=MINI_ROWS)
    replay = orders.replay()
    assert (replay["reasons"], orders.differing()) == ([], set()), replay["keys"]
    assert (replay["keys"]["learned"], replay["keys"]["exchanged"], replay["keys"]["doubtful"]) == (80, 80, 0), replay[
        "keys"
    ]


def test_a_replay_whose_keys_cannot_be_told_from_other_numbers_is_invalid_and_names_them(
    embedded_server: Cluster, tmp_path: Path
) -> None:
    schema = (
        MINI
        + "CREATE FUNCTION used(number int) RETURNS void LANGUAGE sql AS 'UPDATE o SET used = used + 1 WHERE id = number';"
    )

    def work(connection: Connection, number: int) -> None:
        for round_ in range(20):
            order = one(connection.execute("INSERT INTO o (note) VALUES (%s) RETURNING id", [f"{number}-{round_}"]))
            connection.execute("UPDATE o SET used = 0 WHERE id = %s", [order])
            connection.execute("SELECT used(%s)", [order])

    def use(dsn: str) -> None:
        Busy(dsn, 4, work)

    low = captured_orders(embedded_server, tmp_path, "low", use, schema=schema, of=MINI_ROWS).replay()
    assert low["keys"]["doubtful_places"], low
    (place,) = low["keys"]["doubtful_places"]
    assert (place["statement"], place["place"], place["count"]) == ("SELECT used($1)", "$1", 80), place
    assert any("used($1)" in reason for reason in low["reasons"]), low["reasons"]
    # Where no other number is near, there is nothing that it could be but a key.
    starts = ["ALTER SEQUENCE o_id_seq RESTART WITH 50000"]
    high = captured_orders(embedded_server, tmp_path, "high", use, schema=schema, starts=starts, of=MINI_ROWS)
    replay = high.replay()
    assert (replay["reasons"], high.differing()) == ([], set()), replay["keys"]


def doubts(document: dict[str, Any]) -> set[str]:
    """Statements with places that are in doubt."""
    return {one["statement"] for one in document["keys"]["doubtful_places"]}


@pytest.mark.parametrize("start", [1, 50_000])
def test_keys_in_documents_and_texts_are_right_or_named(embedded_server: Cluster, tmp_path: Path, start: int) -> None:
    schema = MINI + "CREATE TABLE events (body jsonb, subject text); GRANT ALL ON events TO ordering;"

    def work(connection: Connection, number: int) -> None:
        for round_ in range(10):
            order = one(connection.execute("INSERT INTO o (note) VALUES (%s) RETURNING id", [f"{number}-{round_}"]))
            connection.execute("UPDATE o SET used = 5 WHERE id = %s", [order])
            connection.execute("INSERT INTO events (body) VALUES (%s::jsonb)", [f'{{"order": {order}, "quantity": 3}}'])

    def use(dsn: str) -> None:
        Busy(dsn, 2, work)

    starts = [f"ALTER SEQUENCE o_id_seq RESTART WITH {start}"]
    orders = captured_orders(
        embedded_server, tmp_path, f"events_{start}", use, schema=schema, starts=starts, of=MINI_ROWS
    )
    replay = orders.replay()
    assert orders.differing() == set()
    assert doubts(replay) == {"INSERT INTO events (body) VALUES ($1::jsonb)"} and replay["reasons"], replay["keys"]
