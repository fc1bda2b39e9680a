"""A running server as the source of a database: dumped by pg_dump in one snapshot, whose instant is recorded."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..base import engine
from ..base.errors import InputError, PgdynoError
from ..machine.journal import HostJournal
from ..server.binaries import PgBinaries
from ..server.dump import DumpFacts, facts_of

if TYPE_CHECKING:
    import psycopg

_REMEDY = "check the connection string, and that its role may read all tables; pg_dump must be as new as the server"


@dataclass(frozen=True)
class ServerDump:
    """A dump of a server."""

    archive: Path
    """In the directory format."""
    roles: str | None
    """Its globals; None where the role may not read them."""
    instant: str
    """The server's time of the snapshot."""


def server_facts(dsn: str, binaries: PgBinaries) -> DumpFacts:
    """What the server's database needs, from a dump of its definitions. :class:`InputError` when it cannot be dumped."""
    with _program(binaries, "pg_dump", ["--create", "--schema-only", "-d", dsn]) as process:
        assert process.stdout is not None
        return facts_of(process.stdout)


@contextlib.contextmanager
def dumped(
    dsn: str, binaries: PgBinaries, jobs: int, journal: HostJournal, watch: Callable[[int], None]
) -> Iterator[ServerDump]:
    """Dump the database for the length of a ``with`` block, into a directory that only this user may enter."""
    import psycopg

    folder = Path(tempfile.gettempdir()).resolve() / f"pgdyno-dump-{secrets.token_hex(4)}"
    with journal.directory(folder):
        folder.chmod(0o700)
        try:
            with psycopg.connect(dsn, application_name="pgdyno dump") as connection:
                snapshot, instant = _snapshot(connection)
                archive = folder / "dump"
                options = [
                    "-F",
                    "d",
                    "-Z",
                    "1",
                    "-j",
                    str(jobs),
                    f"--snapshot={snapshot}",
                    "-f",
                    str(archive),
                    "-d",
                    dsn,
                ]
                with _program(binaries, "pg_dump", options) as process:
                    watch(process.pid)
        except psycopg.Error as error:
            raise InputError(f"the server cannot be dumped: {' '.join(str(error).split())}", remedy=_REMEDY) from None
        yield ServerDump(archive, _roles(dsn, binaries), instant)


def _snapshot(connection: psycopg.Connection[tuple[object, ...]]) -> tuple[str, str]:
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    row = connection.execute("SELECT pg_catalog.pg_export_snapshot(), pg_catalog.now()").fetchone()
    assert row is not None
    return str(row[0]), str(row[1])


def _roles(dsn: str, binaries: PgBinaries) -> str | None:
    """The server's globals without passwords; None where its role may not read them."""
    try:
        with _program(binaries, "pg_dumpall", ["--globals-only", "--no-role-passwords", "-d", dsn]) as process:
            assert process.stdout is not None
            return process.stdout.read().decode()
    except PgdynoError:
        return None


@contextlib.contextmanager
def _program(binaries: PgBinaries, name: str, arguments: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A client program at work; waited for at the end. It gets the caller's environment, by which libpq finds passwords."""
    environment = {key: value for key, value in os.environ.items() if key.startswith(("PG", "HOME", "USER"))}
    process = subprocess.Popen(
        engine.child([str(binaries.program(name)), "--no-password", *arguments]),
        env=environment | binaries.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    errors: list[bytes] = []
    hearing = threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True)
    hearing.start()
    try:
        yield process
        process.stdout.read()
        process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        hearing.join(10.0)
        process.stdout.close()
        process.stderr.close()
    if process.returncode != 0:
        why = (
            "; ".join(line.decode(errors="replace").strip() for line in errors[:5]) or f"exit code {process.returncode}"
        )
        raise InputError(f"{name} {binaries.version} cannot dump the server: {why}", remedy=_REMEDY)
