"""The refresh functions in the process that drives streams: rows in memory, and a report of each function."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import psycopg

from pgdyno.workload.clock import now_ns

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

Row = tuple[str, ...]
Statement = tuple[str, str, Row]
"""What rows it counts (``orders``, ``lines``), its text, its values."""
_STATUS = 2
"""Place of an order's status in its row."""


class AlreadyRefreshedError(Exception):
    """The tables are not as they were loaded."""


@dataclass(frozen=True)
class RefreshSet:
    """The rows of a set."""

    number: int
    orders: Sequence[tuple[Row, Sequence[Row]]]
    """Each order with its lines."""
    deleted: Sequence[str]
    """Keys of orders."""


class Refresher:
    """The sets of a document (:meth:`pgdyno.workload.tpch.refresh.RefreshFunctions.document`)."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._insert = {table: _insert(table, names) for table, names in document["columns"].items()}
        self._sets = {number: self._read(number) for number in range(1, int(document["sets"]) + 1)}

    def require_fresh(self, connection: Connection) -> None:
        """Refuse tables that were refreshed before: the keys to insert are taken, or those to delete are gone."""
        inserted = [row[0] for other in self._sets.values() for row, _ in other.orders]
        deleted = [key for other in self._sets.values() for key in other.deleted]
        for keys, expected in ((inserted, 0), (deleted, len(deleted))):
            text = "SELECT count(*) FROM orders WHERE o_orderkey = ANY(%s::bigint[])"
            result = connection.execute(text.encode(), [keys]).fetchone()
            if result != (expected,):
                raise AlreadyRefreshedError("the tables were refreshed before: their orders are not those of the load")

    def run(self, step: Mapping[str, Any], connection: Connection, stop: threading.Event) -> dict[str, Any]:
        """Do a step until its end, or until ``stop``; returns its report. What was not committed is not counted."""
        counted, error = Counter[str](), ""
        begin_ns = now_ns()
        try:
            self._do(step, connection, stop, counted)
        except psycopg.Error as caught:
            error = " ".join(str(caught).split())
        done = {name: counted[name] for name in ("orders", "lines", "transactions")}
        document = {"function": step["refresh"], "refresh_set": step["set"], "begin_ns": begin_ns, "end_ns": now_ns()}
        return {**document, **done, "error": "cancelled" if stop.is_set() else error}

    def _do(
        self, step: Mapping[str, Any], connection: Connection, stop: threading.Event, counted: Counter[str]
    ) -> None:
        number = self._sets[int(step["set"])]
        work = self._inserting(number) if step["refresh"] == "insert" else self._deleting(number)
        for statements in work:
            done = Counter(transactions=1)
            with connection.transaction():
                if self._document["deferred"]:
                    connection.execute(b"SET CONSTRAINTS ALL DEFERRED")
                for rows, statement, values in statements:
                    done[rows] += connection.execute(statement.encode(), values, prepare=True).rowcount
            counted.update(done)
            if stop.is_set():
                break

    def _inserting(self, refresh_set: RefreshSet) -> Iterator[list[Statement]]:
        """The statements of each transaction."""
        many = int(self._document["orders_per_commit"])
        for first in range(0, len(refresh_set.orders), many):
            statements: list[Statement] = []
            for order, lines in refresh_set.orders[first : first + many]:
                of_lines: list[Statement] = [("lines", self._insert["lineitem"], line) for line in lines]
                of_order: Statement = ("orders", self._insert["orders"], order)
                statements.extend([*of_lines, of_order] if self._document["deferred"] else [of_order, *of_lines])
            yield statements

    def _deleting(self, refresh_set: RefreshSet) -> Iterator[list[Statement]]:
        for key in refresh_set.deleted:
            both: list[Statement] = [
                ("lines", "DELETE FROM lineitem WHERE l_orderkey = %s", (key,)),
                ("orders", "DELETE FROM orders WHERE o_orderkey = %s", (key,)),
            ]
            if self._document["statements_commit"]:
                yield from ([statement] for statement in both)
            else:
                yield both

    def _read(self, number: int) -> RefreshSet:
        folder = Path(self._document["folder"])
        lines: dict[str, list[Row]] = {}
        for line in _rows(folder / f"lineitem.tbl.u{number}"):
            lines.setdefault(line[0], []).append(line)
        orders = [(self._as_inserted(row), lines[row[0]]) for row in _rows(folder / f"orders.tbl.u{number}")]
        return RefreshSet(number, orders, [key for (key,) in _rows(folder / f"delete.{number}")])

    def _as_inserted(self, order: Row) -> Row:
        status = self._document["status"] or order[_STATUS]
        return (*order[:_STATUS], status, *order[_STATUS + 1 :])


def _rows(path: Path) -> list[Row]:
    return [tuple(line.split("|")) for line in path.read_text().splitlines()]


def _insert(table: str, names: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"
