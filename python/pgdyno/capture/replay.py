"""Sends the statements of a capture to an existing server, and judges what came of them."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pgdyno.analysis import reading
from pgdyno.analysis.replay import reasons

from ..base import endpoint, engine, session
from ..base.errors import InputError
from ..kinds.replay.capture import Copied, counted
from ..kinds.replay.outside import require_inside
from ..kinds.replay.production import VERSION, ProductionWork, compared, identity, production, require_other
from ..kinds.replay.run import Waits, record_of
from ..kinds.replay.selection import NEWER, WAIT_MAX_S, Keys, Pace, Place, ReplaySelection, require_known
from ..results.work_record import LikenessRecord, ReplayRecord
from ..server import remote

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True)
class ReplayResult:
    """Outcome of a replay."""

    summary: Mapping[str, Any]
    """As the engine says it; no value is in it."""
    speed: float
    clock_ahead_s: float = 0.0
    """Seconds by which the server's clock was ahead of production's when the capture began."""
    likeness: LikenessRecord | None = None
    """None where production's counters were not given."""
    accept_losses: bool = False
    """Whether what the capture lacks is no reason against it."""

    @cached_property
    def record(self) -> ReplayRecord:
        """As a run would record it."""
        result = record_of(self.summary, self.speed, accept_losses=self.accept_losses)
        return result.model_copy(update={"likeness": self.likeness})

    def reasons(self) -> list[str]:
        """Reasons why it was not the captured load; empty if it was."""
        return list(reasons(self.record))

    @property
    def remedy(self) -> str:
        """Remedy if it was not."""
        result = self.record
        of_capture = list(reading.reasons(result.reading)) if result.reading is not None else []
        if of_capture == self.reasons():
            return f"read its log again as `pgdyno capture show` says, or {reading.ACCEPT}"
        return "restore the database of the time when the capture began, with its roles and settings"

    def remarks(self) -> list[str]:
        """Further parts that the capture lacks."""
        assert self.record.reading is not None
        return list(reading.remarks(self.record.reading))

    def document(self) -> dict[str, Any]:
        """As JSON."""
        reasons = self.reasons()
        likeness = None if self.likeness is None else self.likeness.model_dump(mode="json")
        document = {"clock_ahead_s": self.clock_ahead_s, "likeness": likeness}
        account = {"reading": self.record.model_dump(mode="json")["reading"], "remarks": self.remarks()}
        return {**self.summary, **document, **account, "valid": not reasons, "reasons": reasons}


def replay(
    capture: str,
    dsn: str,
    *,
    speed: float = 1.0,
    pace: Pace = "due",
    keys: Keys = "learned",
    wait_max_s: float = WAIT_MAX_S,
    copied: Copied = "left_out",
    allowed: Collection[str] = (),
    users: Mapping[str, str] | None = None,
    databases: Mapping[str, str] | None = None,
    stats: tuple[str, str] | None = None,
    accept_losses: bool = False,
    progress: Callable[[float, str], None] | None = None,
    started: Callable[[int], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> ReplayResult:
    """Send the statements of ``capture`` to the server of ``dsn``, as their users and in their databases.

    ``users`` and ``databases`` give others in their places. ``stats`` are production's counters of before and after the capture: then
    the role of ``dsn`` must be one that may read those of this server. ``started`` gets the process id of the engine,
    ``note`` what keeps the statements waiting that is not theirs.

    :class:`InputError` or :class:`~pgdyno.base.errors.HostError` when one of the users cannot connect, or could reach what is not ``allowed`` outside
    its database (:mod:`pgdyno.kinds.replay.outside`); then nothing was sent.
    """
    if copied == "made" and stats is None:
        raise InputError(
            "--copy made needs --stats: only production's counters tell how many rows a COPY has",
            remedy="name two files of `pgdyno capture stats`, or omit --copy",
        )
    made = production(stats).work(set()) if copied == "made" and stats is not None else None
    selection = ReplaySelection(capture, speed, pace, keys=keys, wait_max_s=wait_max_s, made=made)
    planned = selection.planned()
    places = planned.places
    results = list(_endpoints(places, dsn, users or {}, databases or {}))
    known = None if stats is None else production(stats).server
    for place, (_, own) in zip(places, results, strict=True):
        with remote.connect(own) as connection:
            require_other(connection, place, planned.recorded_at, databases or {}, known)
    require_inside(_sessions(results), allowed)
    # A database is asked by the first of its roles: what that may not see is not exchanged.
    first = {endpoint["server"]["dbname"]: own for endpoint, own in reversed(results)}
    with contextlib.ExitStack() as ending:
        connections = [ending.enter_context(remote.connect(own)) for own in first.values()]
        about_keys, about_copies = selection.keys_document(connections), selection.copies_document(connections)
    with remote.connect(results[0][1]) as connection:
        clock_ahead_s = _unix_s(connection) - planned.begin_unix_us / 1e6
    order = selection.document() | {
        "endpoints": [endpoint for endpoint, _ in results],
        "keys": about_keys,
        "copies": about_copies,
        "speed": speed,
        "limit_s": selection.limit_s,
        "newer": NEWER,
    }
    counting: ProductionWork | None = None
    before: list[dict[str, Any]] = []
    if stats is not None:
        names = [(str(document["server"]["user"]), str(document["server"]["dbname"])) for document, _ in results]
        counting = compared(stats, [(place, *here) for place, here in zip(places, names, strict=True)], whole=True)
        before = _counted(dsn, counting.database)
    summary: Mapping[str, Any] = {}
    with contextlib.ExitStack() as ending:
        waits = Waits(ending.enter_context(remote.connect(results[0][1])))
        for line in ending.enter_context(
            contextlib.closing(engine.lines(["capture", "replay"], order, on_start=started))
        ):
            if note is not None:
                for notice in waits.notices():
                    note(notice)
            if "progress" in line and progress is not None:
                progress(line["progress"]["share"], f"replay: {line['progress']['answered']:,} statements")
            summary = line.get("summary", summary)
    if counting is None:
        return ReplayResult(summary, speed, clock_ahead_s, accept_losses=accept_losses)
    likeness = counting.with_rows(before, _counted(dsn, counting.database), summary["left_out_statements"])
    return ReplayResult(summary, speed, clock_ahead_s, likeness, accept_losses=accept_losses)


def _sessions(result: Sequence[tuple[dict[str, Any], str]]) -> Iterator[tuple[str, psycopg.Connection[Any]]]:
    """A session of each role in its database, one after the other: there may be more of them than the server takes sessions."""
    for document, own in result:
        with remote.connect(own) as connection:
            yield str(document["server"]["user"]), connection


def _unix_s(connection: psycopg.Connection[Any]) -> float:
    """The server's time."""
    row = connection.execute("SELECT extract(epoch FROM pg_catalog.clock_timestamp())::float8").fetchone()
    assert row is not None
    return float(row[0])


def _counted(dsn: str, database: str) -> list[dict[str, Any]]:
    """Counters of a database, from the server."""
    from psycopg.conninfo import make_conninfo

    with remote.connect(make_conninfo(dsn, dbname=database)) as connection:
        return counted(connection)


def _endpoints(
    places: Sequence[Place], dsn: str, users: Mapping[str, str], databases: Mapping[str, str]
) -> Iterator[tuple[dict[str, Any], str]]:
    """Connection string of each user to each database; each is tried."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    require_known(users, {place.user for place in places}, "user")
    require_known(databases, {place.database for place in places}, "database")
    given = conninfo_to_dict(dsn)
    for place in places:
        user = users.get(place.user, place.user) or given.get("user")
        database = databases.get(place.database, place.database) or given.get("dbname")
        named = {key: value for key, value in (("user", user), ("dbname", database)) if value}
        own = make_conninfo(dsn, **named)
        with remote.connect(own) as connection:
            server = endpoint.of_session(connection, own).order("pgdyno replay")
        yield {"user": place.user, "database": place.database, "server": server}, own


_SEQUENCES = """
SELECT schemaname, sequencename, last_value, increment_by, cache_size FROM pg_catalog.pg_sequences ORDER BY 1, 2
"""
_SIZES = """
SELECT space.nspname, class.relname, class.relkind::pg_catalog.text, pg_catalog.pg_relation_size(class.oid)
FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
WHERE class.relkind::pg_catalog.text OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'm', 'i', 't'])
  AND space.nspname OPERATOR(pg_catalog.<>) ALL (ARRAY['pg_catalog', 'information_schema'])
ORDER BY 1, 2
"""
_NOW = """
SELECT pg_catalog.current_setting('server_version'), pg_catalog.current_database(),
       (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::pg_catalog.int8,
       pg_catalog.pg_database_size(pg_catalog.current_database())
"""
_SECRET_SETTING = re.compile(r"conninfo|command|passphrase|password", re.IGNORECASE)
"""Settings whose values may name a password."""


def stats(dsn: str) -> dict[str, Any]:
    """Read one document from a server, in one transaction that writes nothing.

    :class:`InputError` when pg_stat_statements is missing or does not show other roles' statements.
    """
    with remote.connect(dsn) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(session.SERVER_NAMES_LOCAL)
        version, database, at_us, size_bytes = remote.row_of(connection, _NOW)
        statements = counted(connection)
        settings = connection.execute(
            "SELECT name, setting, unit, source FROM pg_catalog.pg_settings ORDER BY name"
        ).fetchall()
        sequences = connection.execute(_SEQUENCES).fetchall()
        server = identity(connection)
        sizes = connection.execute(_SIZES).fetchall()
        connection.execute("ROLLBACK")
    return {
        "stats_version": VERSION,
        "taken_unix_ns": time.time_ns(),
        "server_time_us": at_us,
        "server_version": version,
        "database": database,
        "server": server,
        "size_bytes": size_bytes,
        "statements": statements,
        "settings": [
            dict(zip(("name", "setting", "unit", "source"), row, strict=True))
            for row in settings
            if not _SECRET_SETTING.search(row[0])
        ],
        "sequences": [
            dict(zip(("schema", "name", "last_value", "increment", "cache"), row, strict=True)) for row in sequences
        ],
        "relations": [dict(zip(("schema", "name", "kind", "size_bytes"), row, strict=True)) for row in sizes],
    }
