"""A cluster's files as a source: a base backup or a stopped data directory, copied onto volumes.

Nothing of its configuration that reaches out of the machine survives: the server gets a new configuration file, in which only the
libraries that it preloads are kept, of these those that are here.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..base import engine
from ..base.errors import InputError, PgdynoError
from ..machine.launch import user_prefix
from ..server import layout
from ..server import settings as settings_module
from ..server.binaries import PgBinaries
from ..server.cluster import CONF_FILE, DATABASE, SUPERUSER, Cluster
from ..server.lacking import available_extensions, has_library
from ..workload.database import opened

_STATE = re.compile(r"^Database cluster state:\s+(.*)$", re.MULTILINE)
_STOPPED = ("shut down", "shut down in recovery")
_START_SEGMENT = re.compile(r"^START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)", re.MULTILINE)
_PRELOAD = re.compile(r"^\s*shared_preload_libraries\s*=?\s*'([^']*)'", re.MULTILINE)
_NOT_COPIED = ("postmaster.pid", "postmaster.opts", "standby.signal", "recovery.signal", "recovery.conf")
"""What would make it another server's, or a standby of one."""
_CONFIGURATIONS = ("postgresql.conf", "postgresql.auto.conf")
_TIMEOUT_S = 60.0
_SUPERUSER_MADE = (
    f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '{SUPERUSER}' AND rolsuper) THEN"
    f" IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '{SUPERUSER}') THEN ALTER ROLE {SUPERUSER} SUPERUSER LOGIN;"
    f" ELSE CREATE ROLE {SUPERUSER} SUPERUSER LOGIN; END IF; END IF; END $$\n"
)


def require_usable(path: Path, binaries: PgBinaries) -> None:
    """Refuse files that this PostgreSQL cannot start from. :class:`InputError`; nothing is changed."""
    tarred = _archive(path, "base")
    version = _text(path, tarred, "PG_VERSION").strip()
    if version != str(binaries.major):
        raise InputError(
            f"{path} is of PostgreSQL {version or 'an unknown version'}, and {binaries.version} starts only files of its own major version",
            remedy="name the programs of that version with --pg-bin, or use a dump",
        )
    if (path / "backup_label").is_file() or tarred is not None:
        _require_wal(path, tarred)
        return
    if (path / "postmaster.pid").exists():
        raise InputError(f"a server may be running in {path}", remedy="stop it cleanly, or name a base backup of it")
    done = subprocess.run(
        [str(binaries.program("pg_controldata")), "-D", str(path)],
        env=binaries.environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    state = _STATE.search(done.stdout)
    if state is None or state[1].strip() not in _STOPPED:
        what = state[1].strip() if state else " ".join(done.stderr.split()) or "unknown"
        raise InputError(
            f"the server of {path} was not shut down (its state is: {what})",
            remedy="start it, stop it cleanly, and name it again; or name a base backup",
        )


def _require_wal(path: Path, tarred: Path | None) -> None:
    """A base backup has the WAL that it begins with."""
    segment = _START_SEGMENT.search(_text(path, tarred, "backup_label"))
    if segment is None:
        raise InputError(
            f"the backup_label of {path} does not say where its WAL begins", remedy="make the backup again"
        )
    wal = _archive(path, "pg_wal")
    if wal is not None:
        with opened(wal) as file, tarfile.open(fileobj=file, mode="r|") as archive:
            there = any(Path(item.name).name == segment[1] for item in archive)
    elif tarred is not None:
        there = _text(path, tarred, f"pg_wal/{segment[1]}", missing=None) is not None
    else:
        there = (path / "pg_wal" / segment[1]).is_file()
    if not there:
        raise InputError(
            f"{path} lacks the WAL that its backup begins with ({segment[1]})",
            remedy="make it with pg_basebackup -X stream",
        )


def copy(path: Path, cluster: Cluster, watch: Callable[[int], None]) -> None:
    """Copy the files to the cluster's data directory, tablespaces into it, and give all of it to the server's user."""
    target = cluster.data_dir
    target.mkdir()
    base = _archive(path, "base")
    if base is None:
        _copied(path, target, watch)
        for link in sorted((path / "pg_tblspc").iterdir()):
            if link.is_symlink():
                (target / "pg_tblspc" / link.name).unlink()
                _copied(link.resolve(), target / "pg_tblspc" / link.name, watch)
        if (path / layout.WAL_FOLDER).is_symlink():
            (target / layout.WAL_FOLDER).unlink()
            _copied((path / layout.WAL_FOLDER).resolve(), target / layout.WAL_FOLDER, watch)
    else:
        watch(os.getpid())
        _unpacked(base, target)
        for archive in sorted(path.iterdir()):
            name = archive.name.split(".", 1)[0]
            if name == "pg_wal":
                _unpacked(archive, target / layout.WAL_FOLDER)
            elif name.isdigit():
                _unpacked(archive, target / "pg_tblspc" / name)
        (target / "tablespace_map").unlink(missing_ok=True)
    for name in _NOT_COPIED:
        (target / name).unlink(missing_ok=True)
    (target / "tablespace_map").unlink(missing_ok=True)
    _given(target, cluster)


def settle(cluster: Cluster, mounts: Mapping[str, Path]) -> list[str]:
    """Give the cluster a new configuration, and its WAL a volume if there is one. Returns libraries that it preloaded and that are not here."""
    kept, dropped = _preloaded(cluster)
    for name in _CONFIGURATIONS:
        (cluster.data_dir / name).write_text("", encoding="utf-8")
    own = f"shared_preload_libraries = {settings_module.quote(','.join(kept))}\n" if kept else ""
    (cluster.data_dir / "postgresql.conf").write_text(f"{own}include_if_exists = '{CONF_FILE}'\n", encoding="utf-8")
    (cluster.data_dir / "pg_ident.conf").write_text("", encoding="utf-8")
    if "wal" in mounts:
        wal = mounts["wal"] / layout.WAL_FOLDER
        shutil.move(cluster.data_dir / layout.WAL_FOLDER, wal)
        (cluster.data_dir / layout.WAL_FOLDER).symlink_to(wal)
        _given(wal, cluster)
    _given(cluster.data_dir, cluster)
    return dropped


def preloaded(cluster: Cluster) -> dict[str, str]:
    """The setting with the libraries that the files of a cluster preload; empty of others."""
    kept, _ = _preloaded(cluster)
    return {settings_module.PRELOAD: ",".join(kept)} if kept else {}


def ensure_superuser(cluster: Cluster, settings: Mapping[str, str]) -> None:
    """The role ``postgres`` is there and a superuser: of a cluster that was made by another user it may not be.

    Done by the server's single-user mode, which asks for no role; it also applies the WAL of a backup.
    """
    cluster.write_configuration(settings)
    command = [
        *user_prefix(cluster.user),
        *(str(cluster.binaries.program("postgres")), "--single", "-D", str(cluster.data_dir), DATABASE),
    ]
    with cluster.log_path.open("ab") as log:
        process = subprocess.Popen(
            engine.child(command),
            env=cluster.binaries.environment,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
        try:
            process.communicate(_SUPERUSER_MADE.encode())
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode != 0:
        raise PgdynoError(
            f"PostgreSQL cannot recover the cluster; its log ends:\n{cluster.log_tail()}",
            remedy="a backup without all of its WAL cannot be used: make it with pg_basebackup -X stream",
        )


def tablespaces(cluster: Cluster) -> dict[str, str]:
    """OID -> name of the tablespaces of a running cluster."""
    with cluster.connect() as connection:
        rows = connection.execute(
            "SELECT oid, spcname FROM pg_catalog.pg_tablespace WHERE spcname NOT IN ('pg_default', 'pg_global')"
        ).fetchall()
    return {str(oid): str(name) for oid, name in rows}


def arrange_tablespaces(cluster: Cluster, mounts: Mapping[str, Path], names: Mapping[str, str]) -> None:
    """Move tablespaces to the volumes of their roles; the others stay with the data. :class:`InputError` for a role without one."""
    wanted = {
        role.removeprefix("tablespace."): mount for role, mount in mounts.items() if role.startswith("tablespace.")
    }
    unknown = sorted(wanted.keys() - set(names.values()))
    if unknown:
        raise InputError(
            f"the cluster has no tablespace {unknown[0]}; it has {', '.join(sorted(names.values())) or 'none'}",
            remedy="omit that volume in world.volumes",
        )
    for oid, name in names.items():
        if name not in wanted:
            continue
        link, place = cluster.data_dir / "pg_tblspc" / oid, wanted[name] / f"tablespace.{name}"
        shutil.move(link, place)
        link.symlink_to(place)
        _given(place, cluster)
        if cluster.user is not None:
            os.lchown(link, cluster.user.uid, cluster.user.gid)


def require_extensions(cluster: Cluster, binaries: PgBinaries) -> None:
    """Refuse a database with extensions that are not installed: their functions would fail when they are called."""
    with cluster.connect() as connection:
        there = {str(row[0]) for row in connection.execute("SELECT extname FROM pg_catalog.pg_extension").fetchall()}
    missing = sorted(there - available_extensions(binaries))
    if missing:
        raise InputError(
            f"PostgreSQL {binaries.version} in {binaries.source} lacks what {cluster.database} needs: extension {', '.join(missing)}",
            remedy="install it for this PostgreSQL, or name another with --pg-bin",
        )


def _copied(path: Path, target: Path, watch: Callable[[int], None]) -> None:
    target.mkdir(exist_ok=True)
    process = subprocess.Popen(
        engine.child(["cp", "-R", "-P", "--preserve=mode,timestamps", "--sparse=auto", f"{path}/.", str(target)]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        watch(process.pid)
        _, error = process.communicate()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode != 0:
        lines = error.decode(errors="replace").strip().splitlines() or ["cp failed"]
        raise PgdynoError(f"{path} cannot be copied: {lines[-1]}", remedy="use a larger volume, or look at the source")


def _unpacked(archive: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    try:
        with opened(archive) as file, tarfile.open(fileobj=file, mode="r|") as content:
            content.extractall(target, filter="tar")
    except (OSError, EOFError, tarfile.TarError) as error:
        raise PgdynoError(
            f"{archive} cannot be unpacked: {error}", remedy="use a larger volume, or copy the backup again"
        ) from None


def _preloaded(cluster: Cluster) -> tuple[list[str], list[str]]:
    """Libraries that the cluster preloaded: those that are here, and the others."""
    names: list[str] = []
    for configuration in _CONFIGURATIONS:
        with contextlib.suppress(OSError):
            findall = _PRELOAD.findall((cluster.data_dir / configuration).read_text(encoding="utf-8", errors="replace"))
            if findall:
                names = [name.strip() for name in findall[-1].split(",") if name.strip()]
    kept = [name for name in names if has_library(cluster.binaries, name)]
    return kept, [name for name in names if name not in kept]


def _archive(path: Path, name: str) -> Path | None:
    """``base.tar`` of a base backup in tar format, however it is compressed."""
    return next((file for file in sorted(path.iterdir()) if file.name.startswith(f"{name}.tar")), None)


def _text(path: Path, tarred: Path | None, name: str, *, missing: Any = "") -> Any:
    """A small file of the cluster; ``missing`` where there is none."""
    if tarred is None:
        try:
            return (path / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return missing
    try:
        with opened(tarred) as file, tarfile.open(fileobj=file, mode="r|") as archive:
            for item in archive:
                if item.name.removeprefix("./") == name and (content := archive.extractfile(item)) is not None:
                    return content.read().decode(errors="replace")
    except (OSError, EOFError, tarfile.TarError) as error:
        raise InputError(f"{tarred} is torn: {error}", remedy="copy the backup again") from None
    return missing


def _given(folder: Path, cluster: Cluster) -> None:
    """Everything below a directory is the server's user's."""
    folder.chmod(0o700)
    if cluster.user is None:
        return
    for root, directories, files in os.walk(folder):
        for name in (*directories, *files):
            os.lchown(Path(root) / name, cluster.user.uid, cluster.user.gid)
    os.chown(folder, cluster.user.uid, cluster.user.gid)
