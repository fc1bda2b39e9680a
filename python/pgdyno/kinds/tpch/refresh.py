"""The refresh functions of TPC-H (clauses 2.5 to 2.7): which rows, when they go, and the proof that they did.

A set is what `dbgen -U` makes: some orders with their lines to insert, and as many orders of the base data to delete.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psycopg

from pgdyno.workload.server import Server
from pgdyno.workload.tables import TPCH_SCHEMA, TpchProfile

from ...base import engine, session
from ...results.record import Check
from ...results.work_record import RefreshRecord
from ...workload.generated import TPCH, column_names
from ...workload.server import counting

Refresh = Literal["none", "power", "stream"]
SETS_MAX = 1000
"""A set deletes about a thousandth of the orders; also in crates/dataset/src/tpch/refresh.rs."""
_HAMMERDB_ORDERS_PER_COMMIT = 1000
"""HammerDB commits that many inserted orders at once, and each statement of the deletion."""
_GAP = 8
"""Keys of inserted orders are in the next eight of every 32; the base data has the first eight."""


def orders_of_set(scale_factor: float) -> int:
    """Orders of a set: dbgen rounds a thousandth down to tens; also in crates/dataset/src/tpch/scale.rs."""
    return round(scale_factor * 1000) * 15 // 100 * 10


@dataclass(frozen=True)
class RefreshFunctions:
    """The sets 1 to ``sets``, each with both functions."""

    profile: TpchProfile
    scale_factor: float
    sets: int
    schema: str = TPCH_SCHEMA

    def make(self, folder: Path) -> None:
        """Write the sets' rows into a folder, as a process that refreshes reads them."""
        texts = [*TPCH.arguments(self.scale_factor, folder), "--for-copy", f"--updates={self.sets}"]
        with contextlib.closing(engine.lines(["generate", TPCH.name, *texts], {})) as lines:
            for _ in lines:
                pass

    def document(self, folder: Path) -> dict[str, Any]:
        """Order for a process that refreshes."""
        hammerdb = self.profile == "hammerdb"
        return {
            "folder": str(folder),
            "sets": self.sets,
            "columns": {table: list(column_names()[table]) for table in ("orders", "lineitem")},
            "orders_per_commit": _HAMMERDB_ORDERS_PER_COMMIT if hammerdb else 1,
            "deferred": hammerdb,
            "statements_commit": hammerdb,
            # HammerDB inserts open orders only.
            "status": "O" if hammerdb else None,
        }

    def steps(self, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Both functions of a set, as steps of a stream."""
        return {"refresh": "insert", "set": number}, {"refresh": "delete", "set": number}

    def inserted(self, number: int) -> list[int]:
        """Keys of the orders that a set inserts."""
        return [key + _GAP * (1 + number // SETS_MAX) for key in self.deleted(number)]

    def deleted(self, number: int) -> list[int]:
        """Keys of the orders that a set deletes: the base data's, from its first order on."""
        count = orders_of_set(self.scale_factor)
        return [_key(index) for index in range((number - 1) * count + 1, number * count + 1)]

    def are_fresh(self, server: Server) -> bool:
        """True if the tables have the orders that the sets delete, and none of those that they insert."""
        with counting(server) as connection:
            inserted, _ = _count(connection, self.schema, self._keys(self.inserted))
            deleted, _ = _count(connection, self.schema, keys := self._keys(self.deleted))
        return (inserted, deleted) == (0, len(keys))

    def _keys(self, of_set: Callable[[int], list[int]]) -> list[int]:
        return [key for number in range(1, self.sets + 1) for key in of_set(number)]

    def check(self, server: Server, done: Sequence[RefreshRecord]) -> Check:
        """Check that both functions of all sets ended, that inserted orders exist, and that deleted ones do not."""
        wrong = [f"{record.function} of set {record.refresh_set}: {record.error}" for record in done if record.error]
        if len(done) < 2 * self.sets:
            wrong.append(f"{2 * self.sets - len(done):,} of {2 * self.sets:,} refresh functions were not run")
        if not wrong:
            wrong.extend(self._differences(server, done))
        detail = "; ".join(wrong) or f"{self.sets:,} sets were inserted and as many deleted"
        return Check(name="tpch_refresh", ok=not wrong, detail=detail)

    def _differences(self, server: Server, done: Sequence[RefreshRecord]) -> Iterator[str]:
        with contextlib.closing(psycopg.connect(server.dsn, autocommit=True, **session.OPTIONS)) as connection:
            inserted = _count(connection, self.schema, self._keys(self.inserted))
            deleted = _count(connection, self.schema, self._keys(self.deleted))
        counted = [record for record in done if record.function == "insert"]
        # A driver that does not tell the lines is believed those that are there.
        lines = (
            inserted[1]
            if any(record.lines is None for record in counted)
            else sum(record.lines or 0 for record in counted)
        )
        expected = (sum(record.orders for record in counted), lines)
        if inserted != expected:
            yield f"{expected[0]:,} orders with {expected[1]:,} lines were inserted, and {inserted[0]:,} with {inserted[1]:,} exist"
        if deleted != (0, 0):
            yield f"{deleted[0]:,} deleted orders and {deleted[1]:,} of their lines still exist"


def _count(connection: psycopg.Connection[Any], schema: str, keys: list[int]) -> tuple[int, int]:
    """Orders with these keys, and their lines."""
    questions = [
        connection.execute(f"SELECT count(*) FROM {schema}.{table} WHERE {column} = ANY(%s)".encode(), [keys])
        for table, column in (("orders", "o_orderkey"), ("lineitem", "l_orderkey"))
    ]
    orders, lines = (int((cursor.fetchone() or (0,))[0]) for cursor in questions)
    return orders, lines


def _key(index: int) -> int:
    """The key of the order with a number from 1: of every 32 keys the first eight are in use (clause 4.2.3)."""
    return (index >> 3 << 5) | (index & 7)


_VIEWS = f"""
SELECT relname::text FROM pg_catalog.pg_class
WHERE relnamespace = pg_catalog.to_regnamespace('{TPCH_SCHEMA}') AND relkind = 'v' ORDER BY relname"""


def left_views(server: Server) -> list[str]:
    """Views in the schema: a stream drops its own when it ends."""
    with counting(server) as connection:
        return [str(row[0]) for row in connection.execute(_VIEWS.encode()).fetchall()]
