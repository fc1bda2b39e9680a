"""Stands in for HammerDB's command line with TPROC-H: takes its scripts, asks the 22 queries, and prints its lines (4.12 to 6.0).

It is run as a program by :func:`installed`. A word in ``HAMMERDB_STANDIN_FAULT`` lets it err.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from pgdyno.kinds.tpch.queries import QUERIES, Streams
from pgdyno.kinds.tpch.refresh import RefreshFunctions

from ..tpcc.hammerdb_standin import PROGRAM, Program, say, started_in_its_folder

SLOW = "SELECT pg_sleep(600)"
_LAUNCH = """\
#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.tpch.hammerdb_standin import main
main()
"""
_COLUMNS = {
    "orders": "o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk, o_shippriority, o_comment",
    "lineitem": "l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus,"
    " l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment",
}


def installed(home: Path) -> Path:
    """Put it where a release would be."""
    home.mkdir(exist_ok=True)
    program = home / PROGRAM
    program.write_text(_LAUNCH.format(python=sys.executable, root=str(Path(__file__).parents[2])))
    program.chmod(0o755)
    return home


class Queries(Program):
    """What a script for TPROC-H makes of it."""

    def connect(self) -> psycopg.Connection:
        """As its users do."""
        named = {key: self.settings[f"pg_{key}"] for key in ("host", "port", "sslmode")}
        named["user"] = self.settings["pg_tpch_user"]
        password = {"password": self.settings["pg_tpch_pass"]} if self.settings["pg_tpch_pass"] else {}
        dsn = make_conninfo(dbname=self.settings["pg_tpch_dbase"], **named, **password)
        return psycopg.connect(dsn, autocommit=True)

    def run(self) -> None:
        """All users at once."""
        self.refreshing = self.settings["pg_refresh_on"] == "true"
        threads = [threading.Thread(target=self.user, args=(number,)) for number in range(1, self.users + 1)]
        for number in range(1, self.users + 1):
            say(f"Vuser {number}:RUNNING")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        say("ALL VIRTUAL USERS COMPLETE")

    def user(self, number: int) -> None:
        """One of them."""
        if self.fault == "no server" or (self.fault == "loses a user" and number == self.users):
            say(f"Error in Virtual User {number}: connection to server failed")
            say(f"Vuser {number}:FINISHED FAILED")
            return
        alone = self.users == 1
        with self.connect() as connection:
            connection.execute(
                f"SET max_parallel_workers_per_gather = {self.settings['pg_degree_of_parallel']}".encode()
            )
            if self.refreshing and alone:
                self.refresh(number, connection, "New")
            if self.refreshing and number == 1 and not alone:
                self.refresh(number, connection, "New", "Old")
            else:
                self.ask(number, 0 if alone else number - self.refreshing, connection)
            if self.refreshing and alone:
                self.refresh(number, connection, "Old")
        say(f"Vuser {number}:FINISHED SUCCESS")

    def ask(self, number: int, position: int, connection: psycopg.Connection) -> None:
        """Its sets of queries, in the order of its position."""
        say(f"Vuser {number}:Verifying the scale factor of the existing schema...")
        if self.fault == "other scale":
            say(
                f"Vuser {number}:The setting of the scale factor (1) is different from the scale factor of the existing schema (3)"
            )
        # One stream alone has the position 0.
        clients, sets = position + 1, int(self.settings["pg_total_querysets"])
        streams = Streams("hammerdb", 1.0, clients, sets, tuple(QUERIES), 2, 77, schema="public")
        (stream,) = (stream for stream in streams.document("", 1.0)["streams"] if stream["stream"] == position)
        seconds: list[float] = []
        for step in stream["steps"]:
            if step["place"] == 1:
                seconds.clear()
            took = self.query(number, connection, step)
            seconds += [took] if took else []
            if step["place"] == len(QUERIES):
                say(f"Vuser {number}:Completed {step['set']} query set(s) in {round(sum(seconds))} seconds")
                self.mean(number, seconds)

    def query(self, number: int, connection: psycopg.Connection, step: dict[str, Any]) -> float:
        """One of them; its seconds as they are printed, 0 where it failed. All others return rows, it says."""
        query, text = step["query"], step["text"]
        say(f"Vuser {number}:Executing Query {query} ({step['place']} of 22)")
        if self.fault == "hangs" and step["place"] == 3:
            text = SLOW
        if self.fault == "fails" and query == 6:
            text = text.replace("lineitem", "no_such_table")
        for statement in step["before"]:
            connection.execute(statement.encode())
        begin, failed = time.monotonic(), False
        try:
            connection.execute(text.encode()).fetchall()
        except psycopg.Error as error:
            failed = True
            say(f"Vuser {number}:Query Failed : {' '.join(text.split())} : ERROR:  {error}")
        took = max(0.001, round(time.monotonic() - begin, 3))
        if self.fault == "says little" and query == 6:
            return took
        say(f"Vuser {number}:query {query} completed in {took} seconds")
        return 0.0 if failed else took

    def mean(self, number: int, seconds: list[float]) -> None:
        """What it says after a set."""
        if self.fault == "no mean":
            return
        value = math.exp(math.fsum(map(math.log, seconds)) / len(seconds)) * (1.5 if self.fault == "wrong mean" else 1)
        say(f'Vuser {number}:Geometric mean of query times returning rows ({len(seconds)}) is "{value:.5f}"')

    def refresh(self, number: int, connection: psycopg.Connection, *names: str) -> None:
        """So many sets: new orders are copies of those that go."""
        functions = RefreshFunctions("hammerdb", 1.0, int(self.settings["pg_update_sets"]), "public")
        for item in range(1, functions.sets + 1):
            for name in names:
                begin = time.monotonic()
                say(f"Vuser {number}:{name} Sales refresh")
                if name == "New":
                    keys = functions.deleted(item)[self.fault == "loses orders" :]
                    for table, prefix in (("orders", "o"), ("lineitem", "l")):
                        named = _COLUMNS[table]
                        connection.execute(
                            f"INSERT INTO {table} ({prefix}_orderkey, {named}) SELECT {prefix}_orderkey + 8, {named}"
                            f" FROM {table} WHERE {prefix}_orderkey = ANY(%s)".encode(),
                            [keys],
                        )
                else:
                    for table, prefix in (("lineitem", "l"), ("orders", "o")):
                        connection.execute(
                            f"DELETE FROM {table} WHERE {prefix}_orderkey = ANY(%s)".encode(), [functions.deleted(item)]
                        )
                say(f"Vuser {number}:{name} Sales refresh complete in {round(time.monotonic() - begin, 3)} seconds")
        say(f"Vuser {number}:Completed {functions.sets} update set(s)")


def main() -> None:
    """The program."""
    started_in_its_folder()
    Queries(Path(sys.argv[3]))
    sys.stdout.flush()
    os._exit(0)
