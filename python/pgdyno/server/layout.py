"""Where a cluster keeps its parts when an instance has several volumes: data, WAL, temporary files, tablespaces, archive.

The parts are found by symbolic links in the data directory (``pg_wal``, ``pg_tblspc/OID``), which hold absolute paths. A
clone is mounted elsewhere than what it was cloned from, so the links are pointed to this run's mounts before each start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..base.errors import InputError, PgdynoError
from .cluster import Cluster

DATA_FOLDER = "pgdata"
"""Below the data's mount: the root of an ext4 holds ``lost+found``, and initdb wants an empty directory."""
WAL_FOLDER = "pg_wal"
ARCHIVE_FOLDER = "archive"
TEMP_TABLESPACE = "pgdyno_temp"
_TABLESPACE = "tablespace."


def data_dir(mounts: Mapping[str, Path]) -> Path:
    """The data directory on the data's volume."""
    return mounts["data"] / DATA_FOLDER


def tablespaces(mounts: Mapping[str, Path]) -> dict[str, Path]:
    """Each tablespace by name with its location: those of ``tablespace.NAME``, and one for temporary files.

    The last part of a location is the role, by which :func:`arrange` knows the link again.
    """
    named = {
        role.removeprefix(_TABLESPACE): mount / role for role, mount in mounts.items() if role.startswith(_TABLESPACE)
    }
    return named | ({TEMP_TABLESPACE: mounts["temp"] / "temp"} if "temp" in mounts else {})


def settings(mounts: Mapping[str, Path]) -> dict[str, str]:
    """Settings for the volumes: where temporary files go, and where the WAL is archived.

    A backup volume receives the WAL continuously, each segment synced before it counts as archived, as the manual asks of
    an archive command.
    """
    chosen = {"temp_tablespaces": TEMP_TABLESPACE} if "temp" in mounts else {}
    if "backup" in mounts:
        target = f"{mounts['backup'] / ARCHIVE_FOLDER}/%f"
        chosen |= {
            "archive_mode": "on",
            "archive_command": f'test ! -f "{target}" && cp "%p" "{target}" && sync "{target}"',
        }
    return chosen


def initdb(cluster: Cluster, mounts: Mapping[str, Path]) -> None:
    """Make a new cluster whose WAL is on its own volume, if there is one."""
    cluster.initdb(wal_dir=mounts["wal"] / WAL_FOLDER if "wal" in mounts else None)


def create_tablespaces(cluster: Cluster, mounts: Mapping[str, Path]) -> None:
    """Make the tablespaces of a running new cluster."""
    from psycopg import sql

    with cluster.connect() as connection:
        for name, location in tablespaces(mounts).items():
            location.mkdir()
            cluster.give(location)
            statement = sql.SQL("CREATE TABLESPACE {} LOCATION {}")
            connection.execute(statement.format(sql.Identifier(name), sql.Literal(str(location))))


def arrange(cluster: Cluster, mounts: Mapping[str, Path]) -> None:
    """Point a stopped cluster's links to ``mounts``, and make the folder of the archive.

    :class:`InputError` when the cluster was made for other volumes: its parts cannot be found, or would lie elsewhere
    than was asked.
    """
    if cluster.alive:
        raise PgdynoError("a running server's files cannot be moved", remedy="stop it first")
    wal = cluster.data_dir / WAL_FOLDER
    links = sorted(link for link in (cluster.data_dir / "pg_tblspc").iterdir() if link.is_symlink())
    has = {"wal"} if wal.is_symlink() else set()
    has |= {Path(os.readlink(link)).name for link in links}
    wanted = {role for role in mounts if role in ("wal", "temp") or role.startswith(_TABLESPACE)}
    if has != wanted:
        raise InputError(
            f"the cluster has parts for the volumes {_words(has)}, and there are {_words(wanted)}",
            remedy="fill a data set for these volumes",
        )
    for link in links:
        role = Path(os.readlink(link)).name
        _point(link, mounts[role] / role)
    if "wal" in mounts:
        _point(wal, mounts["wal"] / WAL_FOLDER)
    if "backup" in mounts:
        archive = mounts["backup"] / ARCHIVE_FOLDER
        archive.mkdir(exist_ok=True)
        cluster.give(archive)


def _point(link: Path, target: Path) -> None:
    if not target.is_dir():
        raise InputError(
            f"there is no {target} on its volume", remedy="attach the volume with the image that belongs to it"
        )
    owner = link.lstat()
    link.unlink()
    link.symlink_to(target)
    os.lchown(link, owner.st_uid, owner.st_gid)


def _words(roles: set[str]) -> str:
    return ", ".join(sorted(roles)) or "none"
