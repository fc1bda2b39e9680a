"""Process that drives streams of queries and refresh functions: ``python -m pgdyno.kinds.tpch.process``."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
from psycopg.pq import ExecStatus

from pgdyno.workload.clock import now_ns

from ...base import session
from ...base.session import Connection

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult


Row = tuple[str, ...]
Statement = tuple[str, str, Row]
"""Kind of rows it counts (``orders``, ``lines``), its text, its values."""
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
    """The sets of a document (:meth:`pgdyno.kinds.tpch.refresh.RefreshFunctions.document`)."""

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


Tell: TypeAlias = Callable[[Mapping[str, Any]], None]

_CHECK_EVERY_S = 0.1
"""How soon an end is noticed. A cancellation that comes between two statements is lost, so it is repeated as often."""
_DROP_TRIES = 3
"""A cancellation may be on its way when a stream begins to remove what it made."""
_CANCEL_TIMEOUT_S = 5.0
_SWITCH_S = 0.0005
"""How long a thread that hashes rows may keep one waiting whose query has ended, whose end is then late by as much."""
_DONE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
_TEMP_FILE = re.compile(r"(\d+)$")
"""The end of what the server says of a temporary file, in any language."""
_COUNT_SPILL = (
    # It comes first: a role that may not set it may not set the last one either.
    "SET log_temp_files = 0",
    # So this session hears of each temporary file when it is removed, those of its parallel workers too.
    "SET client_min_messages = log",
    # And to the server's log not: there is a line for each file.
    "SET log_min_messages = fatal",
)


class Stream:
    """A session that asks one query after another."""

    def __init__(
        self,
        document: Mapping[str, Any],
        connection: Connection,
        tell: Tell,
        stop: threading.Event,
        refresher: Refresher | None,
    ) -> None:
        self.document, self.connection, self._tell, self._stop = document, connection, tell, stop
        self._refresher = refresher
        self._temp_bytes = 0
        self._works = False
        connection.add_notice_handler(self._noticed)

    def run(self, *, counts_spill: bool) -> None:
        """All of its steps; ends early when it has to, or when the session is lost."""
        self._works = True
        try:
            for step in self.document["steps"]:
                if self._stop.is_set() or self.connection.closed:
                    break
                if "refresh" in step:
                    assert self._refresher is not None
                    self._tell({"refresh": self._refresher.run(step, self.connection, self._stop)})
                else:
                    self._query(step, counts_spill=counts_spill)
        finally:
            self._works = False
            for statement in self.document["after"]:
                for _ in range(_DROP_TRIES):
                    with contextlib.suppress(psycopg.Error):
                        self._execute(statement)
                        break

    def cancel(self) -> None:
        """Cancel what it has under way on the server."""
        if self._works:
            with contextlib.suppress(psycopg.Error):
                self.connection.cancel_safe(timeout=_CANCEL_TIMEOUT_S)

    def _query(self, step: Mapping[str, Any], *, counts_spill: bool) -> None:
        document = {key: step[key] for key in ("set", "place", "query", "parameters")}
        values: dict[str, Any] = {
            "rows": 0,
            "rows_hash": 0,
            "temp_bytes": None,
            "plan": "",
            "error": "",
            "cancelled": False,
        }
        begin_ns = now_ns()
        try:
            for statement in step["before"]:
                self._execute(statement)
            plan = self._execute(f"EXPLAIN (COSTS OFF) {step['text']}")
            values["plan"] = "\n".join(_text(plan, row, 0) for row in range(plan.ntuples))
            self._temp_bytes = 0
            begin_ns = now_ns()
            result = self._execute(step["text"])
            end_ns = now_ns()
            values |= {"rows": result.ntuples, "rows_hash": rows_hash(result)}
            values["temp_bytes"] = self._temp_bytes if counts_spill else None
        except psycopg.Error as error:
            end_ns = now_ns()
            values |= {"error": _words(error), "cancelled": self._stop.is_set()}
        self._tell(
            {"query": {"stream": self.document["stream"], **document, "begin_ns": begin_ns, "end_ns": end_ns, **values}}
        )

    def _execute(self, statement: str) -> PGresult:
        """Bring all rows, as the server's text. By libpq at once: a cursor's loop takes CPU that the queries may need."""
        result = self.connection.pgconn.exec_(statement.encode())
        if result.status not in _DONE:
            raise psycopg.errors.error_from_result(result)
        return result

    def _noticed(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        size = _TEMP_FILE.search(diagnostic.message_primary or "")
        if diagnostic.severity_nonlocalized == "LOG" and size:
            self._temp_bytes += int(size[1])


def rows_hash(result: PGresult) -> int:
    """The sum of a hash of each row, so that their order is none of it: 64 bits with a sign.

    No value of a server has a zero byte, so no two rows are the same bytes.
    """
    total, value, hashed, number = 0, result.get_value, hashlib.blake2b, int.from_bytes
    columns = range(result.nfields)
    nulls_begin = b"\0" * result.nfields
    for row in range(result.ntuples):
        values = [value(row, column) for column in columns]
        try:
            text = b"\0".join(values)  # type: ignore[arg-type]  # the join fails where one of them is NULL
        except TypeError:
            text = nulls_begin + b"".join(b"-" if value is None else b"%d:%b" % (len(value), value) for value in values)
        total += number(hashed(text, digest_size=8).digest(), "big")
    return (total & (2**64 - 1)) - (2**64 if total & 2**63 else 0)


def _connect(document: Mapping[str, Any], number: int) -> Connection:
    connection = psycopg.connect(
        document["dsn"], autocommit=True, application_name=f"pgdyno stream {number}", **session.OPTIONS
    )
    for statement in document["settings"]:
        connection.execute(statement.encode())
    return connection


def _spill(connection: Connection) -> str:
    """Let the server tell of temporary files; why it does not, if it does not."""
    try:
        for statement in _COUNT_SPILL:
            connection.execute(statement.encode())
    except psycopg.errors.InsufficientPrivilege:
        return "the role may not set log_temp_files"
    return ""


def drive(document: Mapping[str, Any], tell: Tell, stop: threading.Event, go: Callable[[], bool]) -> None:
    """Everything from the connections to the end."""
    with contextlib.ExitStack() as stack:
        streams, spill = [], ""
        refresher = Refresher(document["refresh"]) if document["refresh"] else None
        for number, stream in enumerate(document["streams"]):
            connection = stack.enter_context(contextlib.closing(_connect(document, number)))
            spill = spill or _spill(connection)
            streams.append(Stream(stream, connection, tell, stop, refresher))
        if refresher is not None:
            refresher.require_fresh(streams[0].connection)
        tell({"ready": True, "spill": spill or None})
        if not go():
            return
        threading.Thread(target=_stop_with_who_asked, args=(stop,), name="pgdyno-asked", daemon=True).start()
        threads = [
            threading.Thread(
                target=stream.run, kwargs={"counts_spill": not spill}, name=f"stream-{stream.document['stream']}"
            )
            for stream in streams
        ]
        cpu_ns, deadline = time.process_time_ns(), time.monotonic() + float(document["limit_s"])
        for thread in threads:
            thread.start()
        late = _wait(threads, streams, stop, deadline)
        stopped = "late" if late else "told" if stop.is_set() else ""
        tell({"end": True, "t_ns": now_ns(), "cpu_ns": time.process_time_ns() - cpu_ns, "stopped": stopped})


def _wait(threads: list[threading.Thread], streams: list[Stream], stop: threading.Event, deadline: float) -> bool:
    """Until all threads have ended; whether they were stopped because it took too long."""
    late = False
    while alive := [thread for thread in threads if thread.is_alive()]:
        if not stop.is_set() and time.monotonic() >= deadline:
            late = True
            stop.set()
        for stream in streams if stop.is_set() else ():
            stream.cancel()
        alive[0].join(_CHECK_EVERY_S)
    return late


def _stop_with_who_asked(stop: threading.Event) -> None:
    """Wait for the end of standard input, below Python's buffers, which this thread must not hold when the process ends."""
    while os.read(sys.stdin.fileno(), 1 << 10):
        pass
    stop.set()


def main() -> int:
    """Do what standard input asks for; returns the exit code."""
    document, lock, stop = json.loads(sys.stdin.readline()), threading.Lock(), threading.Event()
    sys.setswitchinterval(_SWITCH_S)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def tell(event: Mapping[str, Any]) -> None:
        with lock, contextlib.suppress(BrokenPipeError):
            sys.stdout.write(json.dumps(event) + "\n")
            sys.stdout.flush()

    try:
        drive(document, tell, stop, lambda: bool(sys.stdin.readline()))
    except psycopg.Error as error:
        tell({"error": {"message": _words(error), "remedy": "see the server's log"}})
        return 2
    except AlreadyRefreshedError as error:
        tell({"error": {"message": str(error), "remedy": "load the tables again"}})
        return 2
    return 0


def _text(result: PGresult, row: int, column: int) -> str:
    return (result.get_value(row, column) or b"").decode(errors="replace")


def _words(error: psycopg.Error) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
