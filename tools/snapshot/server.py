"""PostgreSQL on two volumes, of which sets of snapshots are taken: clients that know what was acknowledged, and restored servers."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg

from pgdyno.machine import program, snapshot, volume
from pgdyno.machine.waiting import wait_until
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pgdyno.machine.file_system import FileSystem
    from pgdyno.machine.snapshot_file import VolumeSnapshot

SETTINGS = {"shared_buffers": "16MB", "checkpoint_timeout": "30s", "max_wal_size": "64MB", "min_wal_size": "32MB"}
"""Checkpoints come while it runs: of the data, too, something changes between two snapshots."""
CLIENTS = 3
WRITTEN_BETWEEN = 40
"""Commits of each client from one set to the next."""
FAST_MIB_PER_S = 1e6
"""Completed at once."""
COMMITS_TIMEOUT_S = 60.0


@dataclass
class Ledger:
    """Clients that commit 1, 2, 3, … each, and what was acknowledged to them."""

    cluster: Cluster
    acknowledged: list[int] = field(default_factory=lambda: [0] * CLIENTS)
    failed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def commit(self, client: int) -> None:
        """One client, until the end."""
        try:
            with self.cluster.connect() as connection:
                while not self._stop.is_set():
                    number = self.acknowledged[client] + 1
                    connection.execute(
                        "INSERT INTO ledger VALUES (%s, %s, repeat(md5(%s::text), 60))", (client, number, number)
                    )
                    connection.execute("UPDATE hot SET number = number + 1 WHERE id = %s", (client,))
                    self.acknowledged[client] = number
        except psycopg.Error as error:
            self.failed.append(str(error))

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """All clients, while something else happens."""
        threads = [threading.Thread(target=self.commit, args=(client,)) for client in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
        assert self.failed == []

    def reach(self, more: int) -> None:
        """Wait for so many further commits of each client."""
        goal = [number + more for number in self.acknowledged]
        reached = wait_until(
            lambda: bool(self.failed) or all(have >= want for have, want in zip(self.acknowledged, goal, strict=True)),
            COMMITS_TIMEOUT_S,
        )
        assert reached, f"no {more} commits of each client in {COMMITS_TIMEOUT_S:g} s"


@contextlib.contextmanager
def server(folder: Path, file_system: FileSystem) -> Iterator[tuple[Ledger, list[volume.AttachedVolume]]]:
    """A new server, data and WAL on volumes of one instance."""
    mounts = {role: folder / role for role in ("data", "wal")}
    with contextlib.ExitStack() as stack:
        volumes = [
            stack.enter_context(
                volume.attached(
                    "null:size=2GiB", mount=mount, name=role, file_system=file_system, instance="db", calibrate=False
                )
            )
            for role, mount in mounts.items()
        ]
        cluster = Cluster(find_binaries(), mounts["data"] / "cluster")
        stack.callback(cluster.close)
        cluster.initdb(wal_dir=mounts["wal"] / "pg_wal")
        cluster.start(SETTINGS)
        with cluster.connect() as connection:
            connection.execute(
                "CREATE TABLE ledger (client int, number int, body text NOT NULL, PRIMARY KEY (client, number))"
            )
            connection.execute("CREATE TABLE hot (id int PRIMARY KEY, number int) WITH (fillfactor = 50)")
            connection.execute("INSERT INTO hot SELECT i, 0 FROM generate_series(0, 99) i")
        # pgdyno's own lines in postgresql.conf are not synced: the volumes of an experiment are thrown away.
        for mount in mounts.values():
            program.run("sync", "--file-system", mount)
        yield Ledger(cluster), volumes


@contextlib.contextmanager
def recovered(folder: Path, data: VolumeSnapshot, wal: VolumeSnapshot) -> Iterator[Cluster]:
    """The server of a pair of snapshots, on volumes that are restored from them, after its crash recovery."""
    mounts = {role: folder / f"{role}-{data.name}" for role in ("data", "wal")}
    with contextlib.ExitStack() as stack:
        for role, item in (("data", data), ("wal", wal)):
            attached = snapshot.restore(
                item, mount=mounts[role], name=f"{role}-{data.name}", instance=f"of-{data.name}", calibrate=False
            )
            stack.callback(attached.detach)
        cluster = Cluster(find_binaries(), mounts["data"] / "cluster")
        stack.callback(cluster.close)
        link = cluster.data_dir / "pg_wal"
        link.unlink()
        link.symlink_to(mounts["wal"] / "pg_wal")
        # It names the first server's process, which runs.
        (cluster.data_dir / "postmaster.pid").unlink(missing_ok=True)
        cluster.start(SETTINGS, given_up={"fsync": "off"})  # its volumes are thrown away
        yield cluster
        cluster.stop("fast")


def lost(cluster: Cluster, acknowledged: Sequence[int]) -> list[str]:
    """What a restored server lacks of what was acknowledged before, and what is wrong in it."""
    lost = []
    with cluster.connect() as connection:
        rows = connection.execute(
            "SELECT client, array_agg(number ORDER BY number), bool_and(body = repeat(md5(number::text), 60))"
            " FROM ledger GROUP BY client"
        ).fetchall()
        hot = dict(connection.execute("SELECT id, number FROM hot").fetchall())
    numbers = {client: (list(have), whole) for client, have, whole in rows}
    for client, least in enumerate(acknowledged):
        have, whole = numbers.get(client, ([], True))
        if have != list(range(1, len(have) + 1)) or len(have) < least:
            lost.append(f"client {client} has {len(have)} commits, and {least} were acknowledged")
        if not whole:
            lost.append(f"a row of client {client} is damaged")
        if not max(least, len(have) - 1) <= hot[client] <= len(have):
            lost.append(f"client {client} has counted to {hot[client]} of {len(have)}")
    return lost
