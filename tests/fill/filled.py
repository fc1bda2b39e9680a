"""Running ``pgdyno-engine fill``, and looking at what it made."""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from pgdyno.base import engine
from pgdyno.base.endpoint import Endpoint, local
from pgdyno.machine.waiting import wait_until
from tests.drive.driven import environment, told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pgdyno.server.binaries import PgBinaries
    from pgdyno.server.cluster import Cluster

TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Database:
    """A database; it has what a loader needs of a server."""

    cluster: Cluster
    name: str

    @property
    def dsn(self) -> str:
        """Where it is."""
        return self.cluster.dsn.replace("dbname=postgres", f"dbname={self.name}")

    @property
    def endpoint(self) -> Endpoint:
        """How the engine reaches it."""
        return local(self.dsn)

    @property
    def binaries(self) -> PgBinaries:
        """The server's programs."""
        return self.cluster.binaries

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query brings."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()

    def run(self, statement: str) -> None:
        """Do something that brings no rows."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement.encode())

    def tables(self) -> list[str]:
        """Names of the tables that are there."""
        rows = self.rows("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
        return sorted(str(row[0]) for row in rows)

    def wait_for_no_session_of(self, program: str) -> None:
        """Wait until the server has ended a program's sessions: that takes a moment after the program has closed them.

        An interrupted COPY is rolled back in that time.
        """
        text = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{program}'"
        assert wait_until(lambda: self.rows(text) == [(0,)], TIMEOUT_S), f"sessions of {program} are still there"

    def schema(self) -> list[str]:
        """What ``pg_dump -s`` writes, without the token that newer versions draw anew each time."""
        program = Path(self.binaries.bin_dir) / "pg_dump"
        done = subprocess.run(
            [program, "-s", "--no-comments"], env=environment(self.dsn), capture_output=True, text=True, check=True
        )
        return [line for line in done.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]

    def digest(self, table: str, order: str = "ctid") -> str:
        """SHA-256 of every row as COPY writes it, by default in the order in which the rows lie."""
        sha256 = hashlib.sha256()
        query = f"COPY (SELECT * FROM {table} ORDER BY {order}) TO STDOUT".encode()
        with psycopg.connect(self.dsn) as connection, connection.cursor() as cursor, cursor.copy(query) as copied:
            for part in copied:
                sha256.update(part)
        return sha256.hexdigest()

    def unfrozen_pages(self, table: str) -> int:
        """Pages with rows that the visibility map does not know to be frozen."""
        self.run("CREATE EXTENSION IF NOT EXISTS pg_visibility")
        pages = f"SELECT DISTINCT (ctid::text::point)[0]::bigint FROM {table}"
        query = f"SELECT count(*) FROM pg_visibility_map('{table}') WHERE NOT all_frozen AND blkno IN ({pages})"
        return int(self.rows(query)[0][0])


@dataclass(frozen=True)
class Filled:
    """What a load said."""

    ready: dict[str, Any]
    steps: list[dict[str, Any]]
    progress: list[dict[str, Any]]
    summary: dict[str, Any]


def pgbench(scale: int = 1, **more: Any) -> dict[str, Any]:
    """An order for pgbench's tables; keys that are not those of tables are the order's own."""
    of_tables = {key: more.pop(key) for key in ("fillfactor", "foreign_keys") if key in more}
    return {"tables": {"pgbench": {"scale": scale, **of_tables}}, **more}


def sysbench(tables: int = 1, rows: int = 1000, **more: Any) -> dict[str, Any]:
    """An order for sysbench's tables."""
    of_tables = {key: more.pop(key) for key in ("auto_inc", "secondary_index", "keys") if key in more}
    return {"tables": {"sysbench": {"tables": tables, "rows": rows, **of_tables}}, **more}


def fill(database: Database, document: Mapping[str, Any]) -> Filled:
    """Run to the end."""
    with filling(database, document) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    lines = [json.loads(line) for line in out.splitlines()]
    return Filled(
        lines[0]["ready"],
        [line["step"] for line in lines if "step" in line],
        [line["progress"] for line in lines if "progress" in line],
        lines[-1]["summary"],
    )


def refused(database: Database, document: Mapping[str, Any]) -> dict[str, str]:
    """Run what ends with an error of the user; returns its message and remedy."""
    with filling(database, document) as process:
        _, err = process.communicate(timeout=TIMEOUT_S)
    return error_of(process, err)


def error_of(process: subprocess.Popen[bytes], err: bytes) -> dict[str, str]:
    """The error that an ended engine told."""
    assert process.returncode == 2, err
    error: dict[str, str] = json.loads(err.splitlines()[-1])["error"]
    return error


@contextlib.contextmanager
def filling(database: Database, asked: Mapping[str, Any]) -> Iterator[subprocess.Popen[bytes]]:
    """A load that runs; it is ended with the block."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([engine.checked(), "fill"], stdin=pipe, stdout=pipe, stderr=pipe, env=environment())
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(told(database.dsn, asked, name="pgdyno fill")).encode() + b"\n")
        process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for_rows(process: subprocess.Popen[bytes]) -> None:
    """Read until rows are on their way."""
    assert process.stdout is not None
    for line in process.stdout:
        document = json.loads(line)
        if document.get("progress", {}).get("rows", 0) > 0:
            return
    raise AssertionError("it ended before it had sent a row")
