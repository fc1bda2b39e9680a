"""HammerDB's own routines beside those of the profile `hammerdb`: what a call of each type changes.

The same calls with the same drawn values go to both databases, one session at a time: rows changed by table, transaction ids and
bytes of WAL are those of the server's counters. Of WAL the records count without pages that are logged whole, because these are a
matter of checkpoints (`pg_walinspect`).
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import psycopg

from pgdyno.base.errors import PgdynoError
from pgdyno.machine.waiting import wait_until
from pgdyno.workload.tpcc_conditions import PUBLIC, TPCC_SCHEMA
from tools.tpc import loads
from tools.tpc.installed import OURS, THEIRS, WAREHOUSES, Place
from tools.tpc.record import Changed, TypeBeside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

SETTINGS = {"autovacuum_naptime": "1d", "checkpoint_timeout": "1h", "max_wal_size": "8GB"}
"""Nothing else writes meanwhile."""
_STATS_S = 30.0
_CALLS = {"new_order": 2000, "payment": 8000, "delivery": 600, "stock_level": 200, "order_status": 200}
"""How often each is called. A delivery takes an order of each of ten districts, and loaders draw how many lines an order has: of 6,000
orders the mean differs by 0.6 % at a standard error. A payment rewrites the data of about half of the customers, which loaders draw too."""
_WARM = 20
_LINES = """AS line (item integer, supply integer, quantity smallint, amount numeric, delivered timestamptz, customer integer,
last varchar, first varchar, middle varchar, balance numeric, number integer, entered timestamp, carrier integer)"""
_TEXTS = {
    THEIRS: {
        "new_order": "SELECT neword(%(w)s, %(many)s, %(d)s, %(c)s, %(lines)s, 0)",
        "payment": "SELECT payment(%(w)s, %(d)s, %(cw)s, %(cd)s, %(c)s, %(named)s, %(amount)s, '$8', '0', 0)",
        "delivery": "SELECT delivery(%(w)s, %(carrier)s)",
        "stock_level": "SELECT slev(%(w)s, %(d)s, %(threshold)s)",
        "order_status": f"SELECT * FROM ostat(%(w)s, %(d)s, %(c)s, %(named)s, '$5') {_LINES}",
    },
    OURS: {
        "new_order": "SELECT neword(%(w)s, %(many)s, %(d)s, %(c)s, %(lines)s, %(seed)s)",
        "payment": "SELECT payment(%(w)s, %(d)s, %(cw)s, %(cd)s, %(c)s, %(named)s, %(amount)s, '$8')",
        "delivery": "SELECT delivery(%(w)s, %(carrier)s)",
        "stock_level": "SELECT slev(%(w)s, %(d)s, %(threshold)s)",
        "order_status": "SELECT ostat(%(w)s, %(d)s, %(c)s, %(named)s, '$5')",
    },
}
_SCHEMAS = {THEIRS: PUBLIC, OURS: TPCC_SCHEMA}
_ROWS = """
SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables WHERE schemaname = %s ORDER BY relname"""
_NOW = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, pg_current_wal_flush_lsn()::text"
_WAL = "SELECT coalesce(sum(record_size), 0)::bigint FROM pg_get_wal_stats(%s, %s)"
_ALONE = "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'"


def types(cluster: Cluster, seed: int) -> list[TypeBeside]:
    """What a call of each type changes in both databases."""
    types = []
    for name, times in _CALLS.items():
        theirs, ours = (_changed(Place(cluster, place), place, name, times, seed) for place in (THEIRS, OURS))
        type_beside = TypeBeside(type=name, calls=times, theirs=theirs, ours=ours)
        print(f"{name}: {type_beside.worst()}", file=sys.stderr, flush=True)
        types.append(type_beside)
    return types


def _changed(place: Place, side: str, name: str, times: int, seed: int) -> Changed:
    text, values = _TEXTS[side][name].encode(), _values(name, seed)
    schema = _SCHEMAS[side]
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        connection.execute(b"VACUUM ANALYZE")
    # Caches and visibility first.
    _call(place, schema, text, [next(values) for _ in range(_WARM)])
    rows, (ids, begin) = _rows(place, schema), _now(place)
    _call(place, schema, text, [next(values) for _ in range(times)])
    after, (ids_after, end) = _rows(place, schema), _now(place)
    changes = {
        f"{table} {what}": (after[table][number] - rows[table][number]) / times
        for table in after
        for number, what in enumerate(("inserted", "updated", "deleted"))
        if after[table][number] != rows[table][number]
    }
    return Changed(rows=changes, ids=(ids_after - ids) / times, wal_bytes=_wal(place, begin, end) / times)


def _call(place: Place, schema: str, text: bytes, values: list[dict[str, int]]) -> None:
    """In one session, which hands in its counts when it ends."""
    with psycopg.connect(place.dsn, autocommit=True, prepare_threshold=0) as connection:
        connection.execute(f"SET search_path = {schema}".encode())
        for each in values:
            connection.execute(text, each)
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        if not wait_until(lambda: connection.execute(_ALONE).fetchone() == (True,), _STATS_S):
            raise PgdynoError("other sessions are there", remedy="measure on a server that nobody else uses")


def _rows(place: Place, schema: str) -> dict[str, tuple[int, int, int]]:
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        return {str(row[0]): (row[1], row[2], row[3]) for row in connection.execute(_ROWS, [schema])}


def _wal(place: Place, begin: str, end: str) -> int:
    """Bytes of the records between two places of WAL."""
    if begin == end:
        return 0
    with psycopg.connect(loads.dsn_of(place.cluster, "postgres"), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
        row = connection.execute(_WAL.encode(), [begin, end]).fetchone()
    assert row is not None
    return int(row[0])


def _now(place: Place) -> tuple[int, str]:
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        row = connection.execute(_NOW).fetchone()
    assert row is not None
    return int(row[0]), str(row[1])


def _values(name: str, seed: int) -> Iterator[dict[str, int]]:
    """Drawn as HammerDB's users draw them; all in one warehouse after the other, so that both sides have the same."""
    draw = random.Random(f"{name} {seed}")
    while True:
        w, d = draw.randint(1, WAREHOUSES), draw.randint(1, 10)
        remote = draw.random() < 0.15
        yield {
            "w": w, "d": d, "many": WAREHOUSES, "c": draw.randint(1, 3000), "lines": draw.randint(5, 15),
            "cw": w % WAREHOUSES + 1 if remote else w, "cd": draw.randint(1, 10) if remote else d,
            "named": int(draw.random() < 0.6), "amount": draw.randint(1, 5000), "carrier": draw.randint(1, 10),
            "threshold": draw.randint(10, 20), "seed": draw.randint(1, 2**31 - 1),
        }  # fmt: skip
