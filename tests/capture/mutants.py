"""Mutants: databases and logs that are not production's, each in one way that a replay must notice.

Each has a table of its own, so that one replay has many of them and what is said of a table is said of its mutant.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from ..support.commands import pgdyno
from .counted import copy_of, counted
from .logged import AS_SUPERUSER, captured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

SESSIONS = 3
ROUNDS = 50
CALLS = SESSIONS * ROUNDS
"""Of each statement."""
QUIET = "quiet"
"""A table that no mutant has."""
USER, SESSION, LINE, MESSAGE, DETAIL, APPLICATION = 1, 5, 6, 13, 14, 22
"""Columns of csvlog."""
READ = "SELECT note FROM {t} WHERE owner = %s"
CHANGE = "UPDATE {t} SET note = %s WHERE id = %s"
ADD = "INSERT INTO {t}_more VALUES (%s, %s)"
Row = list[str]


@dataclass(frozen=True)
class Mutant:
    """A change of a table, which is ``{t}``."""

    change: str
    statement: str = READ
    schema: str = ""
    """What the table has in production beside its rows."""
    sqlstate: str = ""
    """With which its statements fail; empty if they do not, and nothing but what they did tells."""


IN_DATABASE = {
    "a tenth of the rows is missing": Mutant("DELETE FROM {t} WHERE owner % 10 = 7"),
    "all rows are there twice": Mutant("INSERT INTO {t} SELECT id + 10000, owner, note, at FROM {t}"),
    "the clock is a month off": Mutant(
        "UPDATE {t} SET at = at - interval '1 month'",
        statement="SELECT note FROM {t} WHERE owner = %s AND at > now() - interval '10 days'",
    ),
    "a view has another condition": Mutant(
        "CREATE OR REPLACE VIEW {t}_view AS SELECT * FROM {t} WHERE id % 200 < 100",
        statement="SELECT note FROM {t}_view WHERE owner = %s",
        schema="CREATE VIEW {t}_view AS SELECT * FROM {t}; GRANT SELECT ON {t}_view TO tester",
    ),
    "a trigger is off": Mutant(
        "ALTER TABLE {t} DISABLE TRIGGER USER",
        statement=CHANGE,
        schema="CREATE TABLE {t}_log (note text); CREATE FUNCTION {t}_log() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO {t}_log VALUES (NEW.note); RETURN NEW; END'; GRANT ALL ON {t}_log TO tester;"
        " CREATE TRIGGER log BEFORE UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION {t}_log()",
    ),
    "a foreign key is not there": Mutant(
        "ALTER TABLE {t}_more DROP CONSTRAINT {t}_more_parent_fkey",
        statement=ADD,
        schema="CREATE TABLE {t}_more (id int PRIMARY KEY, parent int REFERENCES {t}); GRANT ALL ON {t}_more TO tester",
    ),
    "a table is unlogged": Mutant("ALTER TABLE {t} SET UNLOGGED", statement=CHANGE),
    "a privilege is missing": Mutant("REVOKE SELECT ON {t} FROM tester", sqlstate="42501"),
    "a column has another name": Mutant("ALTER TABLE {t} RENAME note TO notes", sqlstate="42703"),
    "a sequence is behind its table": Mutant(
        "SELECT setval('{t}_more_id_seq', 1)",
        statement="INSERT INTO {t}_more (note) VALUES (%s)",
        schema="CREATE TABLE {t}_more (id serial PRIMARY KEY, note text); GRANT ALL ON {t}_more, {t}_more_id_seq TO tester;"
        " INSERT INTO {t}_more (note) SELECT 'old' FROM generate_series(1, 1000)",
        sqlstate="23505",
    ),
    "a partition is missing": Mutant(
        "DROP TABLE {t}_part",
        statement=ADD,
        schema="CREATE TABLE {t}_more (id int, parent int) PARTITION BY RANGE (id); GRANT ALL ON {t}_more TO tester;"
        " CREATE TABLE {t}_part PARTITION OF {t}_more FOR VALUES FROM (0) TO (1000)",
        sqlstate="23514",
    ),
}
UNCOMMITTED, LOST, SWAPPED, CUT, TWICE, STRANGER = (
    "commits are not there",
    "a statement's lines are not there",
    "two values are swapped",
    "values are cut",
    "a session is there twice",
    "a session is another role's",
)
IN_LOG = {UNCOMMITTED: READ, LOST: READ, SWAPPED: CHANGE, CUT: READ, TWICE: READ, STRANGER: READ}
"""Name -> the statement."""
OWN_SESSION = (UNCOMMITTED, TWICE, STRANGER)
BASE = """
CREATE TABLE {t} (id int PRIMARY KEY, owner int NOT NULL, note text, at timestamptz DEFAULT now()) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO {t} SELECT n, n % 100, 'a note' FROM generate_series(1, 1000) n;
CREATE INDEX ON {t} (owner);
GRANT SELECT, UPDATE ON {t} TO tester;
"""


def table(name: str) -> str:
    """The table of a mutant."""
    return "t_" + "".join(letter if letter.isalnum() else "_" for letter in name)


def _statements() -> dict[str, str]:
    document = {name: mutant.statement for name, mutant in IN_DATABASE.items()} | IN_LOG | {QUIET: READ}
    return {name: text.format(t=table(name)) for name, text in document.items()}


def _schema() -> Iterator[str]:
    yield "CREATE EXTENSION pg_stat_statements"
    for name in _statements():
        yield BASE.format(t=table(name))
    for name, mutant in IN_DATABASE.items():
        yield mutant.schema.format(t=table(name))


def _use(dsn: str, number: int) -> None:
    """What one session does: each statement once a round, with values of its own."""
    with _session(dsn, f"tester {number}") as session:
        for item in range(number * ROUNDS, (number + 1) * ROUNDS):
            for name, text in _statements().items():
                if name not in OWN_SESSION:
                    first = "a note" if "UPDATE" in text else item
                    session.execute(text.encode(), (first, 1 + item)[: text.count("%s")])


def _use_alone(dsn: str, name: str) -> None:
    """What the session of a mutant does, which has one of its own."""
    around = (b"BEGIN", b"COMMIT") if name == UNCOMMITTED else (b"", b"")
    with _session(dsn, name) as session:
        for item in range(CALLS):
            for text, values in ((around[0], ()), (_statements()[name].encode(), (item,)), (around[1], ())):
                if text:
                    session.execute(text, values or None)


def _session(dsn: str, name: str) -> psycopg.Connection[Any]:
    return psycopg.connect(dsn, autocommit=True, prepare_threshold=None, application_name=name)


@dataclass(frozen=True)
class Mutants:
    """The capture without a mutant, and production's counters of before it and after it."""

    cluster: Cluster
    log: Path
    capture: Path
    stats: tuple[Path, Path]

    def replay(self, *changes: str, capture: Path | None = None) -> dict[str, Any]:
        """Replay on a new copy that is changed first."""
        copy_of(self.cluster, "mutants_before", "mutant", *changes)
        where = (
            "--dsn",
            self.cluster.dsn,
            "--database",
            "mutants=mutant",
            "--yes-write",
            *AS_SUPERUSER,
            "--stats",
            *self.stats,
        )
        replay: dict[str, Any] = json.loads(pgdyno("capture", "replay", capture or self.capture, *where, "--json").out)
        return replay

    def rows(self) -> list[Row]:
        """The log."""
        with self.log.open(newline="") as file:
            return list(csv.reader(file))

    def read(self, folder: Path, rows: Iterable[Row]) -> tuple[Path, dict[str, Any]]:
        """A capture of a log with these rows, and its account."""
        path = folder / "mutant.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        return captured(folder, path)


def captured_mutants(cluster: Cluster, folder: Path) -> Mutants:
    """The database, used by several sessions at a time."""
    with cluster.connect() as admin:
        admin.execute("CREATE ROLE tester LOGIN; CREATE ROLE stranger LOGIN")
        admin.execute("CREATE DATABASE mutants")
        with cluster.connect(dbname="mutants") as owner:
            for text in _schema():
                owner.execute(text.encode())
            owner.execute("VACUUM ANALYZE")
        admin.execute("CREATE DATABASE mutants_before TEMPLATE mutants")

    def use(server: Cluster) -> None:
        dsn = server.dsn_of("tester", "mutants")
        with ThreadPoolExecutor(SESSIONS) as pool:
            list(pool.map(lambda number: _use(dsn, number), range(SESSIONS)))
            list(pool.map(lambda name: _use_alone(dsn, name), OWN_SESSION))

    result = counted(cluster, "mutants", folder, use, "tester")
    return Mutants(cluster, result.log, result.capture, result.stats)


def without(rows: Iterable[Row], is_lost: Callable[[Row], bool]) -> Iterator[Row]:
    """A log without some statements, and without what was logged of their ends. Its lines are numbered as if nothing were missing."""
    lost: set[str] = set()
    number: Counter[str] = Counter()
    for row in rows:
        is_end = row[SESSION] in lost and row[MESSAGE].startswith("duration:")
        lost.discard(row[SESSION])
        if is_lost(row):
            lost.add(row[SESSION])
        elif not is_end:
            number[row[SESSION]] += 1
            yield [*row[:LINE], str(number[row[SESSION]]), *row[LINE + 1 :]]


def mutated(rows: list[Row]) -> Iterator[Row]:
    """The log with every mutant of :data:`IN_LOG`."""
    own = {row[APPLICATION]: row[SESSION] for row in rows}
    lost, swapped, cut = (f"{table(name)} " for name in (LOST, SWAPPED, CUT))

    def is_lost(row: Row) -> bool:
        return lost in row[MESSAGE] or (row[SESSION] == own[UNCOMMITTED] and row[MESSAGE] == "statement: COMMIT")

    for row in without(rows, is_lost):
        changed = list(row)
        if swapped in row[MESSAGE]:
            head, first, second = re.split(r": \$1 = |, \$2 = ", row[DETAIL])
            changed[DETAIL] = f"{head}: $1 = {second}, $2 = {first}"
        elif cut in row[MESSAGE]:
            changed[DETAIL] = f"{row[DETAIL][:-1]}...'"
        elif row[SESSION] == own[STRANGER]:
            changed[USER] = "stranger"
        yield changed
        if row[SESSION] == own[TWICE]:
            yield [*row[:SESSION], f"{row[SESSION]}0", *row[SESSION + 1 :]]
