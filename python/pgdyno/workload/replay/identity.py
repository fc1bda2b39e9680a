"""Whether a server is the one that was captured: a replay there would do a second time what production did, to production.

A log does not say which server wrote it. Production's counters (``pgdyno capture stats``) and a recording do. What a database itself tells, its sequences,
is looked at by the engine before the first statement.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from pgdyno.workload.replay.asked import Place

from ...base.errors import InputError

if TYPE_CHECKING:
    import psycopg

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
    """Which database of which server a session is in; None where it may not be asked, as on some managed services."""
    import psycopg

    with contextlib.suppress(psycopg.Error), connection.transaction():
        row = connection.execute(_IDENTITY).fetchone()
        if row is not None:
            return dict(zip(_NAMES, row, strict=True))
    return None


def is_same(document: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Whether both are the same database, not a copy of it."""
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
        remedy="restore a copy of the time when the capture began, on another server or under another name, and name that one; where this is"
        f" such a copy, say so: --database {place.database}={database} (in a file: workload.databases)",
        code="replay.server.captured",
        data={"database": database, "recorded_at": recorded_at},
    )


def _addresses(connection: Connection) -> Iterable[str]:
    """How a relay would name the server of a session."""
    info = connection.info
    if info.host.startswith("/"):
        return {f"{info.host}/.s.PGSQL.{info.port}"}
    return {f"{info.hostaddr}:{info.port}", f"[{info.hostaddr}]:{info.port}"}
