"""PgBouncer for tests: a real one, before a server of theirs."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from pgdyno.machine import preflight
from pgdyno.machine.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

START_S = 20.0
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
_KEPT = """
SELECT pg_backend_pid(), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
       (SELECT count(*) FROM pg_prepared_statements),
       (SELECT string_agg(name, ', ') FROM pg_settings WHERE source IN ('session', 'interactive') AND NOT name = ANY(
            '{application_name,client_encoding,DateStyle,TimeZone,standard_conforming_strings}'))
FROM pg_sleep(0.05)
"""
"""What a session of the server has of earlier clients; it takes a moment, so that several at a time get a session each.
PgBouncer itself sets the parameters that are left out."""


@dataclass(frozen=True)
class Pooler:
    """Where it listens, and how many sessions of the server it has for all clients."""

    socket_dir: Path
    port: int
    user: str
    pool_size: int

    def dsn(self, database: str = "postgres") -> str:
        """A connection string through it."""
        return f"host={self.socket_dir} port={self.port} user={self.user} dbname={database}"

    def leftovers(self, database: str = "postgres") -> list[tuple[Any, ...]]:
        """(advisory locks, prepared statements, settings) that the next clients meet, one row for each session of the pool."""
        document: dict[str, tuple[Any, ...]] = {}

        def look() -> bool:
            """Ask once from each of so many clients at a time: one statement each, as all modes allow."""
            with contextlib.ExitStack() as stack:
                clients = [stack.enter_context(_client(self.dsn(database))) for _ in range(self.pool_size)]
                for client in clients:
                    client.pgconn.send_query(_KEPT.encode())
                for client in clients:
                    process, *kept = _answer(client)
                    document[process] = tuple(kept)
            return len(document) == self.pool_size

        assert wait_until(look, START_S), f"{len(document)} of {self.pool_size} sessions answered"
        return list(document.values())


def _client(dsn: str) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(dsn, autocommit=True, prepare_threshold=None)


def _answer(client: psycopg.Connection[tuple[Any, ...]]) -> list[str]:
    last: list[str] = []
    while (result := client.pgconn.get_result()) is not None:
        assert not result.error_message, result.error_message
        last = [(result.get_value(0, column) or b"").decode() for column in range(result.nfields)]
    return last


CLEAN = ("0", "0", "")
"""A session of which nothing is left."""


@contextlib.contextmanager
def pgbouncer(cluster: Cluster, mode: str = "transaction", pool_size: int = 3) -> Iterator[Pooler]:
    """Yield a pooler before ``cluster`` that has started, gone afterwards."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory(prefix="pgdyno-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        pooler = Pooler(folder, preflight.free_port(), "postgres", pool_size)
        (folder / "users.txt").write_text('"postgres" ""\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host={cluster.socket_dir} port={cluster.port}\n[pgbouncer]\nlisten_addr =\n"
            f"listen_port = {pooler.port}\nunix_socket_dir = {folder}\nauth_type = trust\nauth_file = {folder}/users.txt\n"
            f"pool_mode = {mode}\ndefault_pool_size = {pool_size}\nadmin_users = postgres\n"
        )
        command = [PROGRAM, "-q", str(folder / "pgbouncer.ini")]
        if cluster.user is not None:
            os.chown(folder, cluster.user.uid, cluster.user.gid)
            command[1:1] = ["-u", cluster.user.name]
        log = folder / "pgbouncer.log"
        with log.open("wb") as result, subprocess.Popen(command, stdout=result, stderr=result) as process:
            try:
                assert wait_until(lambda: _answers(pooler), START_S), log.read_text()
                yield pooler
            finally:
                process.kill()  # at once: no client is left to wait for
                process.wait()


def _answers(pooler: Pooler) -> bool:
    with contextlib.suppress(psycopg.OperationalError), _client(pooler.dsn()) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)
    return False
