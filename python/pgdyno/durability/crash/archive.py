"""A server whose WAL is archived, and what is restored from a base backup, its archive and the WAL that a cut left.

After a cut the server itself would recover, whatever became of its archive; that segments are missing there is seen by who restores. What must be
there is the same: an administrator adds the WAL that was not archived yet (PostgreSQL, "Recovering Using a Continuous Archive Backup").
"""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path
from typing import Literal

from ...machine import program
from ...server.cluster import Cluster

Archive = Literal["", "copied", "true"]
"""How a segment is archived: not, copied and synced, or only said to be: `archive_command = true`."""
BACKUP, ARCHIVE = "backup", "archive"
"""Directories beside the server's own, on the volume of its data."""
_COPY = "cp %p {0}/%f.part && sync {0}/%f.part && mv {0}/%f.part {0}/%f && sync {0}"
_NOT_IN_BACKUP = shutil.ignore_patterns("pg_wal", "postmaster.pid", "postmaster.opts")
"""WAL, and what names the process of the running server."""
_FUNCTIONS_SINCE = 15
"""The first major version whose functions are called pg_backup_start and pg_backup_stop."""
_SEGMENT = re.compile(r"[0-9A-F]{24}")


def prepare(archive: Archive, cluster: Cluster, mount: Path) -> dict[str, str]:
    """Make the archive, which is empty; what the server that archives has beside its settings."""
    if not archive:
        return {}
    (mount / ARCHIVE).mkdir()
    cluster.give(mount / ARCHIVE)
    return {"archive_mode": "on", "archive_command": "true" if archive == "true" else _COPY.format(mount / ARCHIVE)}


def take_backup(cluster: Cluster, mount: Path) -> None:
    """Copy the data of a running server, with its label and without its WAL."""
    since = cluster.binaries.major >= _FUNCTIONS_SINCE
    start, stop = ("pg_backup_start", "pg_backup_stop") if since else ("pg_start_backup", "pg_stop_backup")
    exclusive = "" if since else ", false"
    backup = mount / BACKUP
    with cluster.connect() as connection:
        connection.execute(f"SELECT {start}('crashtest', true{exclusive})".encode())
        shutil.copytree(cluster.data_dir, backup, symlinks=True, ignore=_NOT_IN_BACKUP, copy_function=_copied)
        options = "false" if since else "false, false"
        row = connection.execute(f"SELECT labelfile FROM {stop}({options})".encode()).fetchone()
    assert row is not None
    (backup / "backup_label").write_text(row[0], encoding="utf-8")
    (backup / "pg_wal").mkdir(mode=0o700)
    program.run("chown", "-R", f"--reference={cluster.data_dir}", backup)


def restorable(backup: Path, crashed_wal: Path, *, in_place: bool) -> dict[str, str]:
    """Make a backup ready to be restored, with the WAL that the cut left; what its server has beside its settings.

    Tablespaces ``in_place`` make a server that is restored end with a PANIC unless it expects them.
    """
    for segment in sorted(crashed_wal.iterdir()):
        if _SEGMENT.fullmatch(segment.name):
            shutil.copyfile(segment, backup / "pg_wal" / segment.name)
    (backup / "recovery.signal").touch()
    program.run("chown", "-R", f"--reference={backup}", backup / "pg_wal", backup / "recovery.signal")
    expected = {"allow_in_place_tablespaces": "on"} if in_place else {}
    return expected | {
        "restore_command": f"cp {backup.parent / ARCHIVE}/%f %p",
        "recovery_target_timeline": "current",
        "hot_standby": "off",
    }


def _copied(source: str, target: str) -> None:
    with contextlib.suppress(FileNotFoundError):  # a running server removes files
        shutil.copy2(source, target)
