"""Production's statements while they were captured, from the two documents of ``pgdyno capture stats``; and their comparison with a replay's."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pgdyno.workload.server import Server

from ...base.errors import InputError
from ...base.text import parsed_json
from ...results.work_record import LikenessRecord
from .capture import Counts, counted, fallen, grown
from .run import likeness_of
from .selection import Place, file_stamp

if TYPE_CHECKING:
    import psycopg


VERSION = 1
"""The form of the documents."""
FALLEN_MOST = 0.5
"""Statements with half of the calls have smaller counters than before: they were reset in between, or the files are in the wrong order."""
PLACES_MIN = 20_000
"""Statements that a server under test counts: four times PostgreSQL's default, so that none is evicted."""
LIBRARY = "pg_stat_statements"
_REMEDY = "name two files of `pgdyno capture stats`, the one from before the capture first"


@dataclass(frozen=True)
class Production:
    """The statements of one database of production, before a capture and after it."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def database(self) -> str:
        """The name that it has in production."""
        return str(self.after["database"])

    @property
    def server(self) -> Mapping[str, Any] | None:
        """Identity of their database and server; None if the documents lack it."""
        server: Mapping[str, Any] | None = self.after.get("server")
        return server

    def work(self, roles: Collection[str]) -> dict[str, Counts]:
        """Shape -> what its statements did, of some roles; of all if none is named."""
        return grown(self.before["statements"], self.after["statements"], roles)

    def server_settings(self) -> dict[str, str]:
        """Settings with which another server counts as production did, from zero at its start."""
        document = {setting["name"]: setting["setting"] for setting in self.after["settings"]}
        track = ("pg_stat_statements.track", "pg_stat_statements.track_utility")
        return {
            "shared_preload_libraries": LIBRARY,
            "pg_stat_statements.save": "off",
            "pg_stat_statements.max": str(PLACES_MIN),
            **{name: document[name] for name in track if name in document},
        }


def production(paths: tuple[str, str]) -> Production:
    """Statements between two files. :class:`InputError` when they are not two of one database in their order."""
    before, after = (_read(path, file_stamp(path)) for path in paths)
    if before["database"] != after["database"]:
        raise InputError(
            f"{paths[0]} is of the database {before['database']}, {paths[1]} of {after['database']}", remedy=_REMEDY
        )
    if before["server_time_us"] >= after["server_time_us"]:
        raise InputError(f"{paths[0]} was not made before {paths[1]}", remedy=_REMEDY)
    if fallen(before["statements"], after["statements"]) > FALLEN_MOST:
        raise InputError(
            f"pg_stat_statements was reset between {paths[0]} and {paths[1]}",
            remedy="omit the two files, or capture again without a reset",
        )
    return Production(before, after)


def digest(paths: tuple[str, ...]) -> str:
    """Digest of the files."""
    whole = hashlib.sha256()
    for path in paths:
        whole.update(_bytes(path) + b"\0")
    return whole.hexdigest()


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", remedy=_REMEDY) from error


@functools.lru_cache(maxsize=8)
def _read(path: str, stamp: tuple[int, int]) -> dict[str, Any]:
    del stamp
    try:
        result = parsed_json(_bytes(path))
    except ValueError as error:
        raise InputError(f"{path} is not JSON", remedy=_REMEDY) from error
    if not isinstance(result, dict) or result.get("stats_version") != VERSION:
        raise InputError(f"{path} is not a document of `pgdyno capture stats`", remedy=_REMEDY)
    return result


_EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"


@dataclass(frozen=True)
class ProductionWork:
    """Statements of a replay that production's are compared with."""

    production: Mapping[str, Counts]
    """Shape -> what the statements of the roles that are replayed did."""
    database: str
    """Here."""
    roles: frozenset[str]
    """Here; empty: all."""
    whole: bool
    """True if all of the capture is sent."""

    def with_rows(
        self, before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]], left_out: Iterable[str]
    ) -> LikenessRecord:
        """Beside two readings of the server that was replayed on."""
        here = grown(before, after, self.roles)
        return likeness_of(self.production, here, left_out, whole=self.whole)


def compared(stats: tuple[str, str], destinations: Sequence[tuple[Place, str, str]], *, whole: bool) -> ProductionWork:
    """Statements of sessions that go to ``destinations``: places, roles here, databases here.

    :class:`InputError` when they are of another database than those.
    """
    result = production(stats)
    own = [destination for destination in destinations if destination[0].database in (result.database, "")]
    if not own:
        names = sorted({place.database for place, _, _ in destinations})
        raise InputError(
            f"{stats[0]} is of the database {result.database}, and sessions of {', '.join(names)} are replayed",
            remedy="name `pgdyno capture stats` of the database that was captured",
        )
    captured = {place.user for place, _, _ in own}
    return ProductionWork(
        # A log that does not name roles is of all.
        production=result.work(set() if "" in captured else captured),
        database=own[0][2],
        roles=frozenset(user for _, user, _ in own),
        whole=whole,
    )


def of_server(work: ProductionWork, server: Server, left_out: Iterable[str]) -> LikenessRecord:
    """Beside what ``server`` has counted since it was started. Its superuser reads it, once the load is over."""
    import psycopg
    from psycopg.conninfo import make_conninfo

    with psycopg.connect(make_conninfo(server.dsn, dbname=work.database), autocommit=True) as connection:
        connection.execute(_EXTENSION)
        return work.with_rows((), counted(connection), left_out)


Connection: TypeAlias = "psycopg.Connection[Any]"

_IDENTITY = """
SELECT (SELECT system_identifier::pg_catalog.text FROM pg_catalog.pg_control_system()),
       CASE WHEN NOT pg_catalog.pg_is_in_recovery()
            THEN pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8) END,
       (extract(epoch FROM pg_catalog.pg_postmaster_start_time()) * 1000000)::pg_catalog.int8,
       pg_catalog.host(pg_catalog.inet_server_addr()) || ':' || pg_catalog.inet_server_port(),
       (SELECT oid::pg_catalog.int8 FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
"""
"""All of it is the same only in the database itself: a base backup has the system identifier and the database's number, but another start and
another address; a database that was restored in its place has another number, one that was set back has another timeline."""
_NAMES = ("system_identifier", "timeline", "started_us", "address", "database_oid")


def identity(connection: Connection) -> dict[str, Any] | None:
    """Identity of a session's database and server; None if the role may not read it, as on some managed services."""
    import psycopg

    with contextlib.suppress(psycopg.Error), connection.transaction():
        row = connection.execute(_IDENTITY).fetchone()
        if row is not None:
            return dict(zip(_NAMES, row, strict=True))
    return None


def is_same(document: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """True if both are the same database, not a copy of it."""
    if document is None or other is None:
        return False
    same = {name: document[name] is not None and document[name] == other[name] for name in _NAMES}
    return (
        same["system_identifier"]
        and same["timeline"]
        and same["database_oid"]
        and (same["started_us"] or same["address"])
    )


def require_other(
    connection: Connection, place: Place, recorded_at: str, named: Mapping[str, str], known: Mapping[str, Any] | None
) -> None:
    """Refuse the database that was captured. ``named`` are databases that the user has given another one for, ``known`` what production's
    counters say of their server. :class:`InputError` with code ``replay.server.captured``; nothing has been sent then.
    """
    database = connection.info.dbname
    if is_same(known, identity(connection)):
        evidence = "production's counters are of this database of this server"
    elif recorded_at in _addresses(connection) and database == place.database and place.database not in named:
        evidence = f"the capture was recorded at {recorded_at}, in the database of this name"
    else:
        return
    raise InputError(
        f"{database} is the database that was captured: {evidence}. Nothing was sent",
        remedy="restore a copy from the time when the capture began, on another server or under another name, and name that copy; if this is"
        f" such a copy, confirm it: --database {place.database}={database} (in a file: workload.databases)",
        code="replay.server.captured",
        data={"database": database, "recorded_at": recorded_at},
    )


def _addresses(connection: Connection) -> Iterable[str]:
    """Name that a relay gives to a session's server."""
    info = connection.info
    if info.host.startswith("/"):
        return {f"{info.host}/.s.PGSQL.{info.port}"}
    return {f"{info.hostaddr}:{info.port}", f"[{info.hostaddr}]:{info.port}"}
