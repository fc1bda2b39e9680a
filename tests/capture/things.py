"""A database whose statements were captured and counted, and copies of it as it was before, changed in ways that a replay must notice."""

from __future__ import annotations

import csv
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from ..support.commands import Ended, pgdyno
from .logged import captured, counters, log_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgdyno.postgres.cluster import Cluster

SESSIONS = 5
ROUNDS = 40
SCHEMA = """
CREATE EXTENSION pg_stat_statements;
CREATE TABLE things (id int PRIMARY KEY, owner int NOT NULL, note text) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO things SELECT n, n % 1000, 'a thing' FROM generate_series(1, 20000) n;
CREATE INDEX things_owner ON things (owner);
GRANT SELECT, INSERT, UPDATE ON things TO worker;
"""
READ = "SELECT note FROM things WHERE owner = %s"
WRITE = "UPDATE things SET note = %s WHERE id = %s"


def work(dsn: str, number: int) -> None:
    """One session: what each owner has is read, and one of them changed."""
    with psycopg.connect(dsn, autocommit=True, application_name=f"worker {number}") as connection:
        for round_ in range(ROUNDS):
            one = number * ROUNDS + round_
            connection.execute(READ, [one], prepare=True)
            connection.execute(WRITE, [f"changed by {number}", 1 + one], prepare=True)
            connection.execute(f"SELECT count(*) FROM things WHERE id IN ({one}, {one + 1}, {one + 2})".encode())


@dataclass(frozen=True)
class Things:
    """The capture, and production's counters of before it and after it."""

    cluster: Cluster
    log: Path
    capture: Path
    stats: tuple[Path, Path]

    def replay(self, name: str, *options: str, change: str = "", capture: Path | None = None) -> Ended:
        """Replay on a new copy that is changed first."""
        with self.cluster.connect() as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {name}".encode())
            admin.execute(f"CREATE DATABASE {name} TEMPLATE things_before".encode())
        if change:
            with self.cluster.connect(dbname=name) as admin:
                admin.execute(change.encode())
        where = ("--dsn", self.cluster.dsn, "--database", f"things={name}", "--yes-write")
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


def captured_things(cluster: Cluster, folder: Path) -> Things:
    """The database, used by several sessions at a time, and what the server counted."""
    with cluster.connect() as admin:
        admin.execute("CREATE ROLE worker LOGIN")
        admin.execute("CREATE DATABASE things")
        with cluster.connect(dbname="things") as owner:
            owner.execute(SCHEMA.encode())
            owner.execute("VACUUM ANALYZE things")
        admin.execute("CREATE DATABASE things_before TEMPLATE things")

    def use(server: Cluster) -> None:
        dsn = server.dsn_of("worker", "things")
        with ThreadPoolExecutor(SESSIONS) as pool:
            list(pool.map(lambda number: work(dsn, number), range(SESSIONS)))

    before = counters(cluster, "things", folder / "before.json")
    logged = log_of(cluster, "things", use)
    # The server writes on into its file while the tests use it.
    log = folder / "production.csv"
    shutil.copy(logged.files["csv"], log)
    after = counters(cluster, "things", folder / "after.json")
    return Things(cluster, log, captured(folder, log)[0], (before, after))


def document(ended: Ended) -> dict[str, Any]:
    """What a replay printed."""
    found: dict[str, Any] = json.loads(ended.out)
    return found
