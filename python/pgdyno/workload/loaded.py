"""The result of filling or loading tables, by any program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from pgdyno.workload.server import Server

Progress = Callable[[float, str], None]
"""Called with the share that is done, 0 to 1, and what is being done."""


@dataclass(frozen=True)
class LoadStep:
    """One thing that one session did."""

    what: str
    """``drop``, ``create``, ``copy``, ``vacuum``, ``primary key``, ``index``, ``foreign key``, ``analyze``."""
    table: str | None
    """None where it is of all tables."""
    session: int
    begin_ns: int
    end_ns: int
    """CLOCK_MONOTONIC, as in all records."""
    rows: int
    """That were copied."""


@dataclass(frozen=True)
class LoadMoment:
    """How far it was."""

    t_ns: int
    rows: int
    """That had been sent."""
    bytes: int
    """Bytes of those rows, as sent to COPY."""


@dataclass(frozen=True)
class LoadOutcome:
    """What loading took, and what is there now."""

    seconds: dict[str, float]
    """By step, in which at least one session was at it; of pgbench by its own words: ``client-side generate``,
    ``vacuum``, ``primary keys``. And ``checkpoint`` if it was made."""
    rows: dict[str, int]
    """Rows of each table."""
    loader: Literal["native", "pgbench", "restore"] = "pgbench"
    sessions: int = 1
    """Maximum number of sessions that worked at the same time."""
    row_bytes: int | None = None
    """Bytes of all rows, as sent to COPY; None if not reported."""
    digests: dict[str, str] = field(default_factory=dict)
    """Table -> digest of its rows, as sent to COPY, in any order; empty if not reported."""
    steps: tuple[LoadStep, ...] = ()
    moments: tuple[LoadMoment, ...] = ()
    """About one each second; none if not reported."""


def checkpoint(server: Server) -> dict[str, float]:
    """Put all of it on the volume now, so that the first replicate does not pay for it; the seconds that it took.

    Nothing where the role may not: on a server that is not ours.
    """
    import time

    import psycopg

    begin = time.monotonic()
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        try:
            connection.execute("CHECKPOINT")
        except psycopg.errors.InsufficientPrivilege:
            return {}
    return {"checkpoint": time.monotonic() - begin}
