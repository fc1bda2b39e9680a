"""What ``pgdyno load --recommend`` proposes, on a server: no checkpoint is forced, and undoing leaves nothing behind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pgdyno.loader import recommend, server
from pgdyno.loader.preflight import settings_now

from ..support.servers import throwaway_cluster
from .database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

MIB = 1 << 20
WAL_MIB = 96
"""Several segments of 16 MiB, and still a second's work."""
_FORCED = re.compile(r"checkpoint starting:.* wal\b")
_CHANGED = "SELECT regexp_replace(sourcefile, '.*/', ''), name, setting FROM pg_file_settings WHERE name ~ 'wal|checkp' ORDER BY 1, 2"


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A server whose settings are nobody else's."""
    with throwaway_cluster() as started:
        yield started


def executed(database: Database, script: str) -> None:
    """A file of SQL; ALTER SYSTEM is not for a transaction."""
    for line in script.splitlines():
        if not line.startswith("--"):
            database.run(line)


def forced(database: Database, cluster: Cluster) -> int:
    """Checkpoints that WAL forces between one that was asked for and the next."""
    database.run("CHECKPOINT")
    before = len(_FORCED.findall(cluster.log_path.read_text()))
    database.run(
        f"SELECT count(pg_logical_emit_message(false, 'pgdyno', repeat('x', {MIB}))) FROM generate_series(1, {WAL_MIB})"
    )
    database.run("CHECKPOINT")  # it waits for one that is under way
    return len(_FORCED.findall(cluster.log_path.read_text())) - before


def test_so_much_wal_forces_no_checkpoint(own: Cluster) -> None:
    """With a margin of 1.5 the server ordered one at 0.79 of the interval for which it was meant."""
    database = Database(own.dsn)
    with server.connect(own.dsn) as connection:
        enough = recommend.max_wal_bytes(settings_now(connection), WAL_MIB * MIB)
    for size, expected in ((enough, False), (1.5 * WAL_MIB * MIB, True)):
        executed(database, f"ALTER SYSTEM SET max_wal_size = '{round(size / MIB)}MB';\nSELECT pg_reload_conf();")
        assert bool(forced(database, own)) is expected, size / MIB
    executed(database, "ALTER SYSTEM RESET max_wal_size;\nSELECT pg_reload_conf();")


def test_after_undoing_nothing_shadows_the_file_of_settings(own: Cluster, tmp_path: Path) -> None:
    database = Database(own.dsn)
    # One of each: a default (wal_compression), a line of the file, and one that ALTER SYSTEM has set before.
    with (own.data_dir / "postgresql.conf").open("a") as file:
        file.write("\nmax_wal_size = '300MB'\n")
    executed(database, "ALTER SYSTEM SET checkpoint_timeout = '240s';\nSELECT pg_reload_conf();")
    before = database.rows(_CHANGED)
    with server.connect(own.dsn) as connection:
        settings = recommend.settings(
            settings_now(connection),
            wal_bytes_per_s=50.0 * MIB,
            wal_bytes_total=None,
            free_bytes=None,
            volume_binds=True,
        )
    assert [setting.origin for setting in settings] == ["file", "alter system", "default"]
    recommend.write(settings, tmp_path / "advice")
    executed(database, (tmp_path / "advice" / "settings.sql").read_text())
    assert database.rows(_CHANGED) != before
    executed(database, (tmp_path / "advice" / "settings-undo.sql").read_text())
    assert database.rows(_CHANGED) == before
