"""The record of one load of a data set (``load.json``), by the rules of :mod:`pgdyno.results.record`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from .record import SCHEMA_VERSION, Anchor, Check, PostgresRecord
from .record_base import Count, Record


class LoadedStep(Record):
    """One thing that one session did while a data set was loaded."""

    what: str
    """``drop``, ``create``, ``copy``, ``vacuum``, ``primary key``, ``index``, ``foreign key``, ``analyze``."""
    table: str | None = None
    """None where it is of all tables."""
    session: Count
    begin_ns: int
    end_ns: int
    rows: Count
    """That were copied."""


class LoadedMoment(Record):
    """How far a load was."""

    t_ns: int
    rows: Count
    """That had been sent."""
    bytes: Count
    """Bytes of those rows, as sent to COPY."""


class LoadRecord(Record):
    """The filling of one data set, or of the tables on an existing server. What the devices did meanwhile is
    in the tables beside it.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    load_id: str
    """Name of its directory, unique within its experiment."""
    experiment_id: str
    title: str
    """What was loaded."""
    tables: dict[str, Any]
    """The tables, as in the program's input."""
    loader: Literal["native", "pgbench", "restore"]
    sessions: Count
    """Maximum number of sessions that worked at the same time."""
    anchor: Anchor
    begin_ns: int
    end_ns: int
    """When the program ended, including the checkpoint."""
    rows: dict[str, Count]
    """Rows of each table."""
    row_bytes: Count | None = None
    """Bytes of all rows, as sent to COPY; None if not reported."""
    digests: dict[str, str] = Field(default_factory=dict)
    """Table -> digest of its rows, as sent to COPY: equal rows have equal digests in any order. Empty if not reported, and in older records."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """By step, in which at least one session was at it."""
    steps: tuple[LoadedStep, ...] = ()
    moments: tuple[LoadedMoment, ...] = ()
    """About one each second; none if not reported."""
    postgres: PostgresRecord
    limited: bool = False
    """Whether it was filled on an arm's own volumes with their limits, in its instance and with its settings."""
    dilation: Annotated[int, Field(ge=1)] = 1
    """The factor by which its time was slowed; instants and seconds are in slowed time."""
    volumes: dict[str, str] = Field(default_factory=dict)
    """Role -> specification of the volumes, if they have their limits."""
    memory_bytes: int | None = None
    """Memory of the instance, if the volumes have their limits."""
    checks: tuple[Check, ...] = ()
    """What was asked of the tables afterwards beside their rows. All are ok: other tables are refused, and have no record."""
