"""Production: an order shop on a server that logs everything, its dump of before, and the capture of what its application did."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.base import engine
from pgdyno.base.errors import PgdynoError
from pgdyno.server.restore import Restorer
from tools.captured.application import CUSTOMERS, ORDERS, ROLES, SHOP, Application
from tools.captured.logged import dumped, log_everything, log_of, of_roles

if TYPE_CHECKING:
    from pathlib import Path

    import psycopg

    from pgdyno.server.cluster import Cluster

DATABASE = "shop"
BEFORE = "shop_before"
"""A copy of the database of before, where one is asked for."""
SEED = 20261126
SETTINGS = {
    "log_destination": "csvlog",
    "shared_buffers": "256MB",
    "synchronous_commit": "off",
    "max_wal_size": "4GB",
    "random_page_cost": "1.1",
}
"""Production's hardware is of no interest here: its log is."""
_MADE = """
SELECT (SELECT count(*) FROM shop.orders WHERE id > {last}), (SELECT sum(customer_id)::int8 FROM shop.orders WHERE id > {last} AND customer_id <= {customers}),
       (SELECT sum(total)::int8 FROM shop.orders WHERE id > {last}), (SELECT count(*) FROM shop.order_lines WHERE order_id > {last}),
       (SELECT sum(product_id * line * quantity)::int8 FROM shop.order_lines WHERE order_id > {last}),
       (SELECT sum(amount)::int8 FROM shop.order_lines WHERE order_id > {last})
"""


@dataclass(frozen=True)
class Made:
    """What the application left, without keys: orders and lines, and sums of what is in them."""

    orders: int
    customers: int
    """Sum of the customers of orders, of those who were there before."""
    total: int
    lines: int
    products: int
    """Sum of product times line times quantity."""
    amount: int

    @classmethod
    def of(cls, session: psycopg.Connection[Any], size: float) -> Made:
        """What is there beyond the orders that a shop of this size begins with."""
        row = session.execute(
            _MADE.format(last=int(ORDERS * size), customers=int(CUSTOMERS * size)).encode()
        ).fetchone()
        assert row is not None
        return cls(*(value or 0 for value in row))


@dataclass(frozen=True)
class Production:
    """What is left of it: files, and figures."""

    dump: Path
    globals: Path
    log: Path
    """The csvlog, of the application's roles alone."""
    capture: Path
    account: dict[str, Any]
    """The capture's."""
    size: float
    size_bytes: int
    transactions: int
    made: Made


def build(cluster: Cluster, log: Path, size: float) -> None:
    """Make the shop's roles and its database on a server. ``log`` receives errors; one ends it."""
    restorer = Restorer(cluster, log)
    _run(restorer, (SHOP / "globals.sql").read_bytes(), "postgres")
    with cluster.connect() as admin:
        admin.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0".encode())
    _run(restorer, f"\\set size {size:g}\n".encode() + (SHOP / "shop.sql").read_bytes(), DATABASE)


def _run(restorer: Restorer, script: bytes, database: str) -> None:
    if texts := restorer.psql([script], database, stop=True).messages:
        raise PgdynoError(f"the shop was not made: {texts[0]}", remedy="look at experiments/shop")


def produce(
    cluster: Cluster, folder: Path, size: float, seconds: float, rate_per_s: float, *, copied: bool = False
) -> Production:
    """Make the shop, dump it, and let its application work. With ``copied`` a copy of before stays beside it (:data:`BEFORE`)."""
    log_everything(cluster, **SETTINGS)
    build(cluster, folder / "build.log", size)
    with cluster.connect() as admin:
        with cluster.connect(dbname=DATABASE) as owner:
            owner.execute("VACUUM ANALYZE")
        if copied:
            admin.execute(f"CREATE DATABASE {BEFORE} TEMPLATE {DATABASE}".encode())
        admin.execute("CHECKPOINT")
    dump, roles = dumped(cluster, DATABASE, folder)
    with cluster.connect(dbname=DATABASE) as session:
        (size_bytes,) = session.execute("SELECT pg_database_size(current_database())").fetchone() or (0,)
    application = Application(
        functools.partial(cluster.dsn_of, database=DATABASE),
        size=size,
        seconds=seconds,
        rate_per_s=rate_per_s,
        seed=SEED,
    )
    logged = log_of(cluster, "production", lambda _: application.serve())
    log = of_roles(logged.files["csv"], set(ROLES), folder / "production.csv")
    capture = folder / "shop.capture"
    account = read(log, capture)
    with cluster.connect(dbname=DATABASE) as session:
        made = Made.of(session, size)
    return Production(dump, roles, log, capture, account, size, int(size_bytes), application.done.total(), made)


def read(log: Path, capture: Path) -> dict[str, Any]:
    """Read a log into a capture; its account."""
    account: dict[str, Any] = {}
    for line in engine.lines(["capture", "read"], {"logs": [str(log)], "output": str(capture), "prefix": None}):
        account = line.get("summary", account)
    return account
