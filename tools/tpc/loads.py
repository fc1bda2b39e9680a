"""Loads of both kinds by pgdyno, beside the least that such a load can be: two server-side COPYs from ready files.

COPY reads files of the server's own disk, into tables made in its transaction, with frozen rows; two sessions take the tables, the
largest first, and add the same keys and indexes after the same vacuum.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import make_conninfo

from pgdyno.base import engine
from pgdyno.base.endpoint import local
from pgdyno.base.errors import PgdynoError
from pgdyno.workload.server import environment
from pgdyno.workload.tables import TpccTables, TpchTables
from tools.driver import process
from tools.driver.load import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

SESSIONS = 2
LOAD_S = 600.0
"""No load takes longer."""
LOADS: dict[str, TpccTables | TpchTables] = {
    "TPC-C, 10 warehouses": TpccTables(10),
    "TPC-H, scale factor 1": TpchTables(1.0, "spec"),
}
_TABLES = """
SELECT c.oid::regclass::text FROM pg_class AS c
WHERE relkind = 'r' AND relnamespace = %s::regnamespace ORDER BY pg_relation_size(c.oid) DESC"""
_KEYS = """
SELECT format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE conrelid = %s::regclass AND contype = %s"""
_INDEXES = """
SELECT pg_get_indexdef(i.indexrelid) FROM pg_index AS i
WHERE i.indrelid = %s::regclass AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid AND contype = 'p')"""


def fill(cluster: Cluster, tables: TpccTables | TpchTables, database: str) -> tuple[float, int]:
    """Seconds of pgdyno's load into a new database, and its peak resident KiB."""
    make(cluster, database)
    server = local(dsn_of(cluster, database)).named("pgdyno fill")
    order = {"server": server, "tables": tables.document(), "connections": SESSIONS}
    command = [str(engine.checked()), "fill"]
    begin = time.monotonic()
    ended = process.run(Run(command, json.dumps(order).encode() + b"\n"), {}, LOAD_S)
    return time.monotonic() - begin, ended.peak_kib


@dataclass(frozen=True)
class Ready:
    """What a load by COPY begins with: files of the server, and what makes the tables."""

    folder: Path
    schema: str
    tables: tuple[str, ...]
    """The largest first."""
    before: str
    keys: dict[str, list[str]]
    """Table -> its keys and indexes."""
    references: list[str]

    def copy(self, cluster: Cluster, database: str) -> float:
        """Seconds of the load by COPY into a new database."""
        make(cluster, database)
        left: queue.SimpleQueue[str] = queue.SimpleQueue()
        for table in self.tables:
            left.put(table)
        failed: list[Exception] = []
        begin = time.monotonic()
        with psycopg.connect(dsn_of(cluster, database), autocommit=True) as connection:
            connection.execute(self.before.encode())
            threads = [
                threading.Thread(target=self._session, args=(dsn_of(cluster, database), left, failed))
                for _ in range(SESSIONS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if failed:
                raise failed[0]
            for statement in self.references:
                connection.execute(statement.encode())
        return time.monotonic() - begin

    def _session(self, dsn: str, left: queue.SimpleQueue[str], failed: list[Exception]) -> None:
        try:
            with psycopg.connect(dsn, autocommit=True) as connection:
                while not failed:
                    table = left.get_nowait()
                    with connection.transaction():
                        # Of a table that is emptied in its transaction COPY may write frozen rows.
                        connection.execute(f"TRUNCATE {table}".encode())
                        connection.execute(f"COPY {table} FROM '{self.folder / table}' (FREEZE)".encode())
                    connection.execute(f"VACUUM ANALYZE {table}".encode())
                    for statement in self.keys[table]:
                        connection.execute(statement.encode())
        except queue.Empty:
            pass
        except psycopg.Error as error:
            failed.append(error)


@contextlib.contextmanager
def ready(cluster: Cluster, tables: TpccTables | TpchTables, database: str) -> Iterator[Ready]:
    """The files of a database that pgdyno has filled; they are gone after the ``with`` block."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-tpc-", dir=cluster.data_dir.parent) as name:
        folder = Path(name)
        folder.chmod(0o777)  # the server's user writes there
        with psycopg.connect(dsn_of(cluster, database), autocommit=True) as connection:
            names = [row[0] for row in connection.execute(_TABLES, [tables.schema])]
            for table in names:
                connection.execute(f"COPY {table} TO '{folder / table}'".encode())
            keys = {
                table: [
                    row[0]
                    for item, values in ((_KEYS, [table, "p"]), (_INDEXES, [table]))
                    for row in connection.execute(item, values)
                ]
                for table in names
            }
            references = [row[0] for table in names for row in connection.execute(_KEYS, [table, "f"])]
        yield Ready(folder, tables.schema, tuple(names), _definitions(cluster, database), keys, references)


def _definitions(cluster: Cluster, database: str) -> str:
    """SQL that makes schema, tables and routines."""
    program = str(cluster.binaries.program("pg_dump"))
    command = [program, "--section=pre-data", "--restrict-key=pgdyno", "-d", database]
    done = subprocess.run(
        command, env=environment(cluster), capture_output=True, text=True, check=False, timeout=LOAD_S
    )
    if done.returncode != 0:
        raise PgdynoError(f"pg_dump failed: {done.stderr[-500:]}", remedy="see the server's log")
    # What psql alone understands.
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("\\"))


def make(cluster: Cluster, database: str) -> None:
    """A new database without anything; one of this name is dropped."""
    with cluster.connect() as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {database}".encode())
        connection.execute(b"CHECKPOINT")


def dsn_of(cluster: Cluster, database: str) -> str:
    """How the database is reached."""
    return make_conninfo(cluster.dsn, dbname=database)
