"""Running ``pgdyno-engine load``, and looking at what it made."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import psycopg

from tests.drive.driven import environment, telling, told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TIMEOUT_S = 120.0
LEDGER = """
    CREATE SCHEMA IF NOT EXISTS pgdyno_load;
    CREATE TABLE pgdyno_load.chunk (job bigint, source int, chunk bigint, first_byte bigint, end_byte bigint,
        rows_loaded bigint, rows_rejected bigint, PRIMARY KEY (job, source, chunk))
"""
LEDGER_TABLE = '"pgdyno_load"."chunk"'


@dataclass
class Target:
    """A database that files are loaded into."""

    dsn: str
    jobs: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def run(self, *statements: str) -> None:
        """Do something that brings no rows."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query brings."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()

    def one(self, query: str) -> Any:
        """The only value that a query brings."""
        return self.rows(query)[0][0]

    def content(self, table: str) -> list[str]:
        """Every row of a table as text, sorted."""
        return sorted(row[0] for row in self.rows(f"SELECT x::text FROM {table} x"))

    def ledger(self) -> dict[str, Any]:
        """A ledger of a new job."""
        return {"table": LEDGER_TABLE, "job": next(self.jobs)}


@dataclass(frozen=True)
class Loaded:
    """What a load said."""

    begin: dict[str, Any]
    progress: list[dict[str, Any]]
    end: dict[str, Any]
    lost: int

    @property
    def rows(self) -> tuple[int, int]:
        """Loaded and rejected."""
        return self.end["rows_loaded"], self.end["rows_rejected"]


def order(*sources: Path, table: str = "t", **more: Any) -> dict[str, Any]:
    """An order to load CSV files, with keys changed or added."""
    named = [{"path": str(source), "name": source.name} for source in sources]
    return {"table": table, "format": {"csv": {}}, "sources": named, "interval_ms": 100} | more


def loading(
    dsn: str, document: Mapping[str, Any], *, pass_fds: Sequence[int] = (), out: int | IO[Any] = subprocess.PIPE
) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    """A load that runs; it is ended with the block."""
    return telling("load", told(dsn, document, name="pgdyno load"), environment(), pass_fds=pass_fds, out=out)


def ended(process: subprocess.Popen[bytes]) -> Loaded | dict[str, str]:
    """What a load comes to: what it said, or its error."""
    out, err = process.communicate(timeout=TIMEOUT_S)
    if process.returncode == 2:
        error: dict[str, str] = json.loads(err.splitlines()[-1])["error"]
        return error
    assert process.returncode == 0, err
    lines = [json.loads(line) for line in out.splitlines()]
    kinds = {kind: [line for line in lines if line["event"] == kind] for kind in ("begin", "progress", "end", "lost")}
    assert (lines[-1], len(kinds["end"])) == (kinds["end"][0], 1)
    return Loaded(kinds["begin"][0], kinds["progress"], lines[-1], len(kinds["lost"]))


def outcome(dsn: str, document: Mapping[str, Any], *, pass_fds: Sequence[int] = ()) -> Loaded | dict[str, str]:
    """Run to whatever end."""
    with loading(dsn, document, pass_fds=pass_fds) as process:
        return ended(process)


def load(dsn: str, document: Mapping[str, Any], *, pass_fds: Sequence[int] = ()) -> Loaded:
    """Run to the end."""
    result = outcome(dsn, document, pass_fds=pass_fds)
    assert isinstance(result, Loaded), result
    return result


def refused(dsn: str, document: Mapping[str, Any]) -> dict[str, str]:
    """Run what ends with an error of the user; returns its message and remedy."""
    result = outcome(dsn, document)
    assert isinstance(result, dict), result.end
    assert result["remedy"]
    return result


def copied(session: psycopg.Connection[Any], table: str, options: str, content: bytes) -> str | None:
    """Give a file to COPY as it is; what COPY says against it, if it does."""
    try:
        with (
            session.cursor() as cursor,
            cursor.copy(f"COPY {table} FROM STDIN WITH ({options})".encode()) as copy,
        ):
            copy.write(content)
    except psycopg.Error as error:
        return str(error)
    return None
