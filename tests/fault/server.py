"""A server with its data and its WAL on volumes of their own, and a ledger of what it acknowledged."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import psycopg

from pgdyno.base.errors import PgdynoError
from pgdyno.machine import volume
from pgdyno.machine.waiting import wait_until
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.machine.file_system import FileSystem

SETTINGS = {"shared_buffers": "16MB", "checkpoint_timeout": "1h", "autovacuum": "on", "max_wal_size": "256MB"}
"""Checkpoints come when the test asks for one."""
ROWS_AT_ONCE = 20
LET_GO_S = 10.0


def _is_free(device: str) -> bool:
    """Whether it is mounted nowhere."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False
        raise
    return True


@dataclass
class FaultyServer:
    """A cluster whose ``data`` and ``wal`` volumes can be failed, and the numbers whose commit was acknowledged."""

    cluster: Cluster
    volumes: dict[str, volume.AttachedVolume]
    acknowledged: int = 0
    """The client inserts 1, 2, 3, …; all up to this one were acknowledged."""
    sent: int = 0
    """The last number that was sent."""
    _skipped: set[int] = field(default_factory=set)
    """Numbers whose commit was never acknowledged, and that recovery did not bring back."""

    def insert(self, count: int) -> None:
        """Insert the next ``count`` numbers, one transaction each; :class:`psycopg.Error` when the server fails one."""
        with self.cluster.connect() as connection:
            for _ in range(count):
                self.sent += 1
                connection.execute("INSERT INTO ledger VALUES (%s, repeat(md5(%s::text), 30))", (self.sent, self.sent))
                self.acknowledged = self.sent

    def recover(self) -> None:
        """End the faults and the server, mount both file systems again as an administrator would, and start it."""
        for attached in self.volumes.values():
            attached.heal()
        with contextlib.suppress(PgdynoError):
            self.cluster.stop("immediate")
        for attached in self.volumes.values():
            subprocess.run(["umount", attached.mount], check=True)
            # A process that begins with private mounts keeps a copy of this one for a moment, and a file system that ended with an
            # error would be found as it was.
            assert wait_until(partial(_is_free, attached.block_device), LET_GO_S)
            subprocess.run(["mount", attached.block_device, attached.mount], check=True)
        self.cluster.start(SETTINGS)

    def lost(self) -> list[int]:
        """Acknowledged numbers that the table does not have, and numbers in it that are wrong or were never sent."""
        with self.cluster.connect() as connection:
            rows = connection.execute("SELECT id, body = repeat(md5(id::text), 30) FROM ledger").fetchall()
        results = {number for number, whole in rows if whole}
        # The next insert goes beyond what may or may not have been committed.
        doubtful = range(self.acknowledged + 1, self.sent + 1)
        missing = sorted(set(range(1, self.acknowledged + 1)) - results - self._skipped)
        wrong = sorted(number for number, whole in rows if not whole or number > self.sent)
        self._skipped |= {number for number in doubtful if number not in results}
        self.acknowledged = self.sent
        return missing + wrong

    def forget_cached(self) -> None:
        """Write everything, and drop the table from all caches: the next query reads it from the volume."""
        with self.cluster.connect() as connection:
            connection.execute("CHECKPOINT")
            path = connection.execute("SELECT pg_relation_filepath('ledger')").fetchone()
        assert path is not None
        self.cluster.stop("fast")
        file = os.open(self.cluster.data_dir / path[0], os.O_RDONLY)
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)
        self.cluster.start(SETTINGS)


@contextlib.contextmanager
def faulty_server(state: Path, file_system: FileSystem) -> Iterator[FaultyServer]:
    """A new server on two volumes without limits, with an empty ledger."""
    mounts = {role: state.parent / role for role in ("data", "wal")}
    with contextlib.ExitStack() as stack:
        volumes = {
            role: stack.enter_context(
                volume.attached("null:size=2GiB", mount=mount, name=role, file_system=file_system, calibrate=False)
            )
            for role, mount in mounts.items()
        }
        cluster = Cluster(find_binaries(), mounts["data"] / "cluster")
        stack.callback(cluster.close)
        cluster.initdb(wal_dir=mounts["wal"] / "pg_wal")
        cluster.start(SETTINGS)
        with psycopg.connect(cluster.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE ledger (id bigint PRIMARY KEY, body text NOT NULL)")
        # pgdyno's own lines in postgresql.conf are not synced: the volumes of an experiment are thrown away.
        for mount in mounts.values():
            subprocess.run(["sync", "--file-system", mount], check=True)
        yield FaultyServer(cluster, volumes)
