"""The application of the order shop in ``experiments/shop``: what its sessions ask, drawn by seed, at a rate."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable

SHOP = Path(__file__).resolve().parents[2] / "experiments" / "shop"
ROLES = ("app", "reporting")
CLIENTS = 8
"""Places of the application's pool."""
PER_CONNECTION = 300
"""Transactions after which a pool opens a new connection in a place."""
REPORT_EVERY_S = 2.0
COPIED_ROWS = 100
CUSTOMERS, PRODUCTS, ORDERS = 20_000, 5_000, 60_000
"""Of a shop of size 1 (shop.sql)."""
MIX = {
    "history": 640,
    "visit": 60,
    "place": 90,
    "order": 120,
    "pay": 75,
    "sign_up": 9,
    "refused": 4.5,
    "cancelled": 0.5,
    "copied": 1,
}
"""Weights of transactions.

A history touches 10 blocks of its customer's own, a visit 18. At 800 transactions a second, on a shop of size 24 in 512 MiB of memory, 100 visits in a
thousand transactions are 5,500 I/Os a second: io2bx of 6,000 IOPS kept up, and gp3 needed 107 s for a minute; with 250 neither kept up (2026-11-27). 60 leave
room for what differs by machine.
"""
UPDATE_TOTAL = (
    "UPDATE orders SET total = (SELECT coalesce(sum(amount), 0) FROM order_lines WHERE order_id = %s) WHERE id = %s"
)
ADD_LINE = "INSERT INTO order_lines (order_id, line, product_id, quantity, price) SELECT %s, %s, id, %s, price FROM products WHERE id = %s"
SIGN_UP = "INSERT INTO customers (email, name, address, since) VALUES (%s, %s, '{}', '2026-11-26') RETURNING id"
SEEN = "SELECT at, what, detail FROM events WHERE customer_id = %s ORDER BY at DESC LIMIT 20"
REPORT = "SELECT count(*), sum(total) FROM orders WHERE state = 'placed' AND placed_at > '2026-03-29'"
Session = psycopg.Connection[tuple[Any, ...]]


def _statement(name: str) -> str:
    """The only statement of a script, with psycopg's places for values."""
    lines = (SHOP / name).read_text(encoding="utf-8").splitlines()
    text = " ".join(line for line in lines if not line.startswith(("\\", "--")))
    return text.rstrip("; ").replace(":customer", "%s")


HISTORY = _statement("history.sql")


@dataclass
class Application:
    """What all clients share."""

    dsn_of: Callable[[str], str]
    """The connection string of a role."""
    size: float
    """Of the shop, as shop.sql has it."""
    seconds: float
    rate_per_s: float
    seed: int
    made: queue.SimpleQueue[tuple[int, Any]] = field(default_factory=queue.SimpleQueue)
    """Keys of orders that nobody has paid yet."""
    done: Counter[str] = field(default_factory=Counter)
    """Transactions by kind."""
    over: threading.Event = field(default_factory=threading.Event)

    def serve(self) -> None:
        """All of its time."""
        begin = time.monotonic() + 0.2
        with ThreadPoolExecutor(CLIENTS + 1) as pool:
            report = pool.submit(self._report)
            clients = [pool.submit(_Client(self, number).serve, begin) for number in range(CLIENTS)]
            try:
                for client in clients:
                    self.done += client.result()
            finally:
                self.over.set()
            report.result()

    def _report(self) -> None:
        with psycopg.connect(self.dsn_of("reporting"), autocommit=True, application_name="report") as session:
            while not self.over.wait(REPORT_EVERY_S):
                session.execute(REPORT.encode())


class _Client:
    """One place of the pool: its transactions arrive by itself, at random (Poisson), and wait for the one before."""

    def __init__(self, shop: Application, number: int) -> None:
        self._shop = shop
        self._number = number
        self._draw = random.Random(f"{shop.seed} {number}")

    def serve(self, begin: float) -> Counter[str]:
        """From this instant on; how many transactions of each kind it did."""
        due, end = begin, begin + self._shop.seconds
        kinds, weights = list(MIX), list(MIX.values())
        done: Counter[str] = Counter()
        while due < end:
            with psycopg.connect(self._shop.dsn_of("app"), autocommit=True, application_name="shop") as session:
                for _ in range(PER_CONNECTION):
                    due += self._draw.expovariate(self._shop.rate_per_s / CLIENTS)
                    if due >= end:
                        break
                    time.sleep(max(0.0, due - time.monotonic()))
                    (kind,) = self._draw.choices(kinds, weights)
                    getattr(self, f"_{kind}")(session)
                    done[kind] += 1
        return done

    def _customer(self) -> int:
        return self._draw.randint(1, int(CUSTOMERS * self._shop.size))

    def _product(self) -> int:
        return self._draw.randint(1, int(PRODUCTS * self._shop.size))

    def _name(self) -> str:
        """An address that no customer has."""
        return f"new{self._number}x{self._draw.getrandbits(48):x}@example.org"

    def _history(self, session: Session) -> None:
        session.execute(HISTORY.encode(), [self._customer()])

    def _visit(self, session: Session) -> None:
        """A customer's page: the last orders, and what was looked at last."""
        customer = self._customer()
        session.execute(HISTORY.encode(), [customer])
        session.execute(SEEN.encode(), [customer])

    def _place(self, session: Session) -> None:
        """An order by a function, paid at once."""
        customer = self._customer()
        with session.transaction():
            products = [self._product() for _ in range(2)]
            (order,) = _row(session.execute("SELECT place_order(%s, %s::bigint[])", [customer, products]))
            event = "INSERT INTO events (id, at, customer_id, what, detail) VALUES (nextval('events_id'), now(), %s, 'paid', jsonb_build_object('order', %s::bigint))"
            session.execute(event, [customer, order])
            session.execute("UPDATE orders SET state = 'paid' WHERE id = %s", [order])

    def _order(self, session: Session, customer: int | None = None) -> None:
        """An order by its statements, which another session pays for."""
        with session.transaction():
            made = "INSERT INTO orders (customer_id) VALUES (%s) RETURNING id, ref"
            order, ref = _row(session.execute(made, [customer or self._customer()]))
            for line in range(1, 1 + self._draw.randint(1, 3)):
                session.execute(ADD_LINE, [order, line, self._draw.randint(1, 5), self._product()])
            session.execute(UPDATE_TOTAL, [order, order])
            session.execute("SELECT state, total FROM orders WHERE ref = %s", [ref])
        self._shop.made.put((order, ref))

    def _pay(self, session: Session) -> None:
        try:
            order, ref = self._shop.made.get_nowait()
        except queue.Empty:
            self._history(session)
            return
        with session.transaction():
            session.execute("SELECT state FROM orders WHERE ref = %s FOR UPDATE", [ref])
            session.execute("UPDATE orders SET state = 'paid' WHERE id = %s", [order])

    def _sign_up(self, session: Session) -> None:
        """A new customer, and a first order."""
        (customer,) = _row(session.execute(SIGN_UP, [self._name(), "A new customer"]))
        self._order(session, customer)

    def _refused(self, session: Session) -> None:
        """An address that a customer has already."""
        try:
            session.execute(SIGN_UP, [f"customer{self._customer()}@example.org", "Again"])
        except psycopg.errors.UniqueViolation:
            return
        raise AssertionError("two customers have one address")

    def _cancelled(self, session: Session) -> None:
        """What takes longer than the application waits."""
        try:
            with session.transaction():
                session.execute("SET LOCAL statement_timeout = '20ms'")
                session.execute("SELECT pg_sleep(5)")
        except psycopg.errors.QueryCanceled:
            return
        raise AssertionError("nothing was cancelled")

    def _copied(self, session: Session) -> None:
        with (
            session.cursor() as cursor,
            cursor.copy("COPY events (id, at, customer_id, what, detail) FROM STDIN") as copy,
        ):
            for row in range(COPIED_ROWS):
                copy.write_row((-row, "2026-11-26", self._customer(), "seen", "{}"))


def _row(cursor: psycopg.Cursor[tuple[Any, ...]]) -> tuple[Any, ...]:
    row = cursor.fetchone()
    assert row is not None
    return row
