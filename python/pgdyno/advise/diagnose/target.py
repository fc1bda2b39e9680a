"""The server that is watched: what it is, through what it is reached, and whether it may be watched at all."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.probe.sampler import is_full, no_session

from ...base import session
from ...base.errors import HostError, InputError, RunInvalid
from ...server.remote import RemoteServer, connect
from .silence import event_of, were_reset

if TYPE_CHECKING:
    import pyarrow as pa

_CONSOLE = "pgbouncer"
"""The database of PgBouncer that is its own console."""
_IDENTITY = """
SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE'), current_user::pg_catalog.text
"""
_RTT = slice(68, 72)
"""Where the kernel's tcp_info has the smoothed round trip in microseconds (tcpi_rtt)."""


@dataclass(frozen=True)
class ServerTarget:
    """A server as one connection showed it."""

    server: RemoteServer
    standby: bool
    pooler: bool
    """Whether a connection pooler is between."""
    role: str
    sees_all: bool
    """Whether the role may see what other roles' sessions do."""
    rtt_ms: float | None = None
    """What a message takes to the server, or to the pooler, and back, by the kernel; None where it is on this host."""


def target_of(dsn: str) -> ServerTarget:
    """Connect and look. :class:`~pgdyno.base.errors.InputError` or :class:`~pgdyno.base.errors.HostError` where it cannot be watched."""
    import psycopg

    try:
        server = RemoteServer.open(dsn)
        with connect(dsn) as connection:
            row = connection.execute(_IDENTITY).fetchone()
            pooled = session.is_pooled(connection)
            rtt_ms = _rtt_ms(connection.pgconn.socket)
    except HostError as error:
        if is_full(error.message):
            raise no_session(error, "looked at") from error
        raise
    except psycopg.Error as error:
        if _is_console(dsn):
            raise InputError(
                "this is the console of PgBouncer, and no database", remedy="connect to a database through it"
            ) from error
        raise HostError(
            f"the server cannot be looked at: {str(error).strip().partition(chr(10))[0]}",
            remedy="check the connection string, and that it is PostgreSQL",
        ) from error
    assert row is not None
    return ServerTarget(server, standby=row[0], pooler=pooled, role=row[2], sees_all=row[1], rtt_ms=rtt_ms)


def require_one_piece(tables: Mapping[str, pa.Table]) -> None:
    """Refuse counters that were reset while the server was watched: :class:`~pgdyno.base.errors.RunInvalid`. A server that was
    restarted, or crashed, passes: that is what the watch then says.
    """
    if were_reset(tables) and event_of(tables) is None:
        raise RunInvalid(
            "the server's statistics were reset while it was watched",
            remedy="watch it again: counters that begin again at 0 cannot be judged",
            code="diagnose.statistics.reset",
        )


def _rtt_ms(descriptor: int) -> float | None:
    """The round trip of a connection; None where it is not a TCP connection."""
    with contextlib.suppress(OSError), socket.socket(fileno=socket.dup(descriptor)) as same:
        info = same.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RTT.stop)
        return int.from_bytes(info[_RTT], sys.byteorder) / 1e3 if len(info) == _RTT.stop else None
    return None


def _is_console(dsn: str) -> bool:
    from ...base import endpoint

    return endpoint.effective(dsn).get("dbname") == _CONSOLE
