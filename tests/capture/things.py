"""A database whose statements were captured and counted, and copies of it as it was before, changed in ways that a replay must notice."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from ..support.commands import Ended, pgdyno
from .counted import copy_of, counted
from .logged import AS_SUPERUSER, captured

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

SESSIONS = 5
ROUNDS = 40
OWNERS = 1000
SCHEMA = """
CREATE EXTENSION pg_stat_statements;
CREATE TABLE things (id int PRIMARY KEY, owner int NOT NULL, note text) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO things SELECT n, n % 1000, 'a thing' FROM generate_series(1, 20000) n;
CREATE INDEX things_owner ON things (owner);
"""
READ = "SELECT note FROM things WHERE owner = %s"
WRITE = "UPDATE things SET note = %s WHERE id = %s"


def work(dsn: str, number: int, rounds: int) -> None:
    """One session: what each owner has is read, and one of them changed."""
    with psycopg.connect(dsn, autocommit=True, application_name=f"worker {number}") as connection:
        for round_ in range(rounds):
            result = number * rounds + round_
            connection.execute(READ, [result % OWNERS], prepare=True)
            connection.execute(WRITE, [f"changed by {number}", 1 + result], prepare=True)
            connection.execute(
                f"SELECT count(*) FROM things WHERE id IN ({result}, {result + 1}, {result + 2})".encode()
            )


@dataclass(frozen=True)
class Things:
    """The capture, and production's counters of before it and after it."""

    cluster: Cluster
    name: str
    """Of the database."""
    log: Path
    capture: Path
    stats: tuple[Path, Path]

    def copy(self, name: str, change: str = "") -> str:
        """A copy of the database before the capture, changed as asked."""
        return copy_of(self.cluster, f"{self.name}_before", name, change)

    def replay(self, name: str, *options: str, change: str = "", capture: Path | None = None) -> Ended:
        """Replay on a new copy that is changed first."""
        copy = self.copy(name, change)
        where = ("--dsn", self.cluster.dsn, "--database", f"{self.name}={copy}", "--yes-write", *AS_SUPERUSER)
        return pgdyno("capture", "replay", capture or self.capture, *where, "--stats", *self.stats, "--json", *options)

    def without(self, folder: Path, is_lost: Callable[[int, list[str]], bool]) -> Path:
        """A capture of the log without some of its lines, which are told by their number and their columns."""
        rows = [row for number, row in enumerate(self._rows()) if not is_lost(number, row)]
        path = folder / "lost.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        return captured(folder, path)[0]

    def session_id(self, application: str) -> str:
        """As the log has it, of a session's application."""
        return next(row[5] for row in self._rows() if row[22] == application)

    def _rows(self) -> list[list[str]]:
        with self.log.open(newline="") as file:
            return list(csv.reader(file))


def captured_things(cluster: Cluster, folder: Path, *, name: str = "things", rounds: int = ROUNDS) -> Things:
    """The database, used by several sessions at a time, and what the server counted."""
    with cluster.connect() as admin:
        admin.execute(f"CREATE ROLE {name}_worker LOGIN".encode())
        admin.execute(f"CREATE DATABASE {name}".encode())
        with cluster.connect(dbname=name) as owner:
            owner.execute(f"{SCHEMA}GRANT SELECT, INSERT, UPDATE ON things TO {name}_worker".encode())
            owner.execute("VACUUM ANALYZE things")
        admin.execute(f"CREATE DATABASE {name}_before TEMPLATE {name}".encode())

    def use(server: Cluster) -> None:
        dsn = server.dsn_of(f"{name}_worker", name)
        with ThreadPoolExecutor(SESSIONS) as pool:
            list(pool.map(lambda number: work(dsn, number, rounds), range(SESSIONS)))

    result = counted(cluster, name, folder, use, f"{name}_worker")
    return Things(cluster, name, result.log, result.capture, result.stats)


def document(ended: Ended) -> dict[str, Any]:
    """What a replay printed."""
    document: dict[str, Any] = json.loads(ended.out)
    return document
