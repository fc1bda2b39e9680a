"""Who watches which load how."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.machine.waiting import wait_until
from tools.watched.server import Plain, pooled

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

BUSY_S = 60.0
"""How long a load may take to be under way."""


@dataclass(frozen=True)
class Scenario:
    """One watch."""

    title: str
    """The load, and from where it is watched."""
    load: Callable[[Plain], AbstractContextManager[None]]
    reach: Callable[[Plain], AbstractContextManager[str]]
    """The connection string."""
    tls: bool = False
    """Whether the server must have TLS."""


@contextlib.contextmanager
def idle(_: Plain) -> Iterator[None]:
    """No load."""
    yield


@contextlib.contextmanager
def transactions(server: Plain) -> Iterator[None]:
    """Eight clients of pgbench, in a closed loop."""
    with _running(server, server.program("pgbench", "-n", "-c", "8", "-j", "2", "-T", "600", "bench")):
        yield


@contextlib.contextmanager
def dump(server: Plain) -> Iterator[None]:
    """pg_dump, one after the other."""
    once = " ".join(server.program("pg_dump", "bench"))
    with _running(server, ["sh", "-c", f"while {once} > /dev/null; do :; done"]):
        yield


@contextlib.contextmanager
def checkpoints(server: Plain) -> Iterator[None]:
    """The same clients with so little WAL allowed that checkpoint follows checkpoint."""
    _max_wal_size(server, "'32MB'", "min_wal_size = '32MB'")
    try:
        with transactions(server):
            yield
    finally:
        server.psql("ALTER SYSTEM RESET max_wal_size")
        server.psql("ALTER SYSTEM RESET min_wal_size")
        server.psql("SELECT pg_reload_conf()")


def _max_wal_size(server: Plain, size: str, also: str) -> None:
    server.psql(f"ALTER SYSTEM SET {also}")
    server.psql(f"ALTER SYSTEM SET max_wal_size = {size}")
    server.psql("SELECT pg_reload_conf()")


@contextlib.contextmanager
def directly(server: Plain) -> Iterator[str]:
    """As a role with pg_monitor."""
    yield server.dsn(sslmode="disable")


@contextlib.contextmanager
def over_tls(server: Plain) -> Iterator[str]:
    """The same, encrypted."""
    yield server.dsn(sslmode="require")


@contextlib.contextmanager
def with_less(server: Plain) -> Iterator[str]:
    """As a role that may see its own sessions alone."""
    yield server.dsn("weak", sslmode="disable")


ALL = (
    Scenario("idle, as a role with pg_monitor", idle, directly),
    Scenario("pgbench, eight clients, as a role with pg_monitor", transactions, directly),
    Scenario("the same over TLS", transactions, over_tls, tls=True),
    Scenario("the same through PgBouncer in transaction mode", transactions, pooled),
    Scenario("the same as a role without pg_monitor", transactions, with_less),
    Scenario("pg_dump, one after the other", dump, directly),
    Scenario("pgbench with max_wal_size = 32MB: a storm of checkpoints", checkpoints, directly),
)


@contextlib.contextmanager
def _running(server: Plain, command: list[str]) -> Iterator[None]:
    """A load that is under way: it has a session in the server."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            if not wait_until(lambda: _is_busy(server), BUSY_S):
                raise TimeoutError(f"{command[0]} does nothing")
            yield
        finally:
            _end(process)
            wait_until(lambda: not _is_busy(server), BUSY_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    import os
    import signal

    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _is_busy(server: Plain) -> bool:
    import psycopg

    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name IN ('pgbench', 'pg_dump') AND state = 'active'"
    )
    with psycopg.connect(server.dsn("postgres", dbname="postgres"), autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    return bool(row and row[0])
