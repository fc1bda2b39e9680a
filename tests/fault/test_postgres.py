"""I/O errors under PostgreSQL: what it does while they last, and that no acknowledged commit is missing afterwards.

What is expected is the manual's: a failed write or fsync of WAL and a failed fsync of data end in a PANIC and in crash recovery
(``data_sync_retry`` is off by default); a failed read is an error of the query alone.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import psycopg
import pytest

from ..host.needs import needs_fuse
from .server import ROWS_AT_ONCE, FaultyServer, faulty_server

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.machine.file_system import FileSystem

pytestmark = needs_fuse

WRITES_FAIL = {"kind": {"error": {}}, "reads_ppm": 0}
READS_FAIL = {"kind": {"error": {}}, "writes_ppm": 0}


def fail_wal(server: FaultyServer, rng: random.Random) -> None:
    """Writes of the WAL fail, from any insert on."""
    server.insert(rng.randrange(1, ROWS_AT_ONCE))
    server.volumes["wal"].fail(WRITES_FAIL)
    with pytest.raises(psycopg.Error):
        server.insert(ROWS_AT_ONCE)


def fail_data(server: FaultyServer, rng: random.Random) -> None:
    """Writes of the data fail: commits go on, and the next checkpoint does not."""
    server.insert(rng.randrange(1, ROWS_AT_ONCE))
    server.volumes["data"].fail(WRITES_FAIL)
    server.insert(1)
    with pytest.raises(psycopg.Error), server.cluster.connect() as connection:
        connection.execute("CHECKPOINT")


def fail_reads(server: FaultyServer, rng: random.Random) -> None:
    """Reads of the data fail: the query ends with an error, the server does not."""
    server.insert(rng.randrange(1, ROWS_AT_ONCE))
    server.forget_cached()
    with server.cluster.connect() as connection:
        # The catalogue is read before: without it there is no session and no plan. Of the table nothing is, whatever a plan for
        # its size would be.
        connection.execute("SET enable_seqscan = off")
        connection.execute("SELECT sum(length(body)) FROM ledger WHERE id < 0")
        connection.execute("RESET enable_seqscan")
        server.volumes["data"].fail(READS_FAIL)
        with pytest.raises(psycopg.errors.IoError, match="could not read"):
            connection.execute("SELECT sum(length(body)) FROM ledger")
        server.volumes["data"].heal()
        connection.execute("SELECT sum(length(body)) FROM ledger")
    assert server.cluster.alive


FAILURES: dict[str, Callable[[FaultyServer, random.Random], None]] = {
    "wal": fail_wal,
    "data": fail_data,
    "reads": fail_reads,
}


@pytest.mark.parametrize("file_system", ["ext4", "xfs"])
def test_no_acknowledged_commit_is_lost_to_an_io_error(state: Path, file_system: FileSystem) -> None:
    rng = random.Random(1)
    with faulty_server(state, file_system) as server:
        for failure in FAILURES.values():
            failure(server, rng)
            server.recover()
            assert server.lost() == []
        assert server.acknowledged > 3


def test_a_ledger_that_lost_a_commit_is_caught(state: Path) -> None:
    with faulty_server(state, "xfs") as server:
        server.insert(5)
        with server.cluster.connect() as connection:
            connection.execute("DELETE FROM ledger WHERE id = 2")
            connection.execute("UPDATE ledger SET body = 'torn' WHERE id = 4")
        assert server.lost() == [2, 4, 4]


@pytest.mark.bench
@pytest.mark.parametrize("file_system", ["ext4", "xfs"])
@pytest.mark.parametrize("failure", FAILURES)
def test_two_hundred_io_errors(state: Path, file_system: FileSystem, failure: str) -> None:
    """``make bench ONLY=fault``: 200 of each kind on each file system, ``PGDYNO_FAULTS`` for another number."""
    rng = random.Random(2)
    with faulty_server(state, file_system) as server:
        for _ in range(int(os.environ.get("PGDYNO_FAULTS", "200"))):
            FAILURES[failure](server, rng)
            server.recover()
            assert server.lost() == []
