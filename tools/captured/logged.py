"""A server that logs all that it is asked, the log of one use of it, and its dump."""

from __future__ import annotations

import csv
import functools
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from pgdyno.base.errors import PgdynoError
from pgdyno.machine.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

LOGGED = {
    "logging_collector": "on",
    "log_directory": "log",
    "log_rotation_age": "0",
    "log_rotation_size": "0",
    "log_connections": "on",
    "log_disconnections": "on",
    "log_statement": "all",
    "log_duration": "on",
    "log_parameter_max_length_on_error": "-1",
    "log_file_mode": "0644",
}
PATIENCE_S = 30.0
DUMP_S_MAX = 600.0
ENDS = {"log": "stderr", "csv": "csvlog", "json": "jsonlog"}
"""How the names of a log's files end, by its format."""
SUPERUSER = ("role:postgres",)
"""Its sessions are in most logs, and what it may reach must be allowed."""
LAST = "the last session"
"""Name of a session behind all others, by whose end a log is known to be whole."""
TAIL_BYTES = 1 << 20
"""What little comes behind the last session has room in it."""
LAST_WORDS = "this is the last statement of the log"


def log_everything(cluster: Cluster, **settings: str) -> None:
    """Start a server again that logs in all formats that it has, unless ``log_destination`` says another.

    pgdyno sets logging itself for its own servers, so this is in the file of ALTER SYSTEM, which is read last; other settings too, as
    those of before are not set again.
    """
    destination = "stderr,csvlog" + (",jsonlog" if cluster.binaries.major >= 15 else "")
    _set(cluster, LOGGED | {"log_destination": destination} | settings)
    cluster.stop()
    cluster.start()


def _set(cluster: Cluster, settings: dict[str, str]) -> None:
    with cluster.connect() as admin:
        for key, value in settings.items():
            admin.execute(f"ALTER SYSTEM SET {key} = '{value}'".encode())
        admin.execute("SELECT pg_reload_conf()")


@dataclass(frozen=True)
class Logged:
    """The logs of one use of a server, by the ends of their names: ``log``, ``csv``, ``json``."""

    files: dict[str, Path]


def log_of(cluster: Cluster, name: str, use: Callable[[Cluster], None], **settings: str) -> Logged:
    """Let ``use`` work while the server logs into files of this name."""
    _set(cluster, {"log_filename": f"{name}.log", **settings})
    folder = cluster.data_dir / "log"
    formats = _setting(cluster, "log_destination").split(",")
    files = {end: folder / f"{name}.{end}" for end, item in ENDS.items() if item in formats}
    _require(lambda: all(path.exists() for path in files.values()), f"the server does not log into {folder}")
    # Sessions that began before the reload log by the old settings.
    _require(lambda: _setting(cluster, "log_filename") == f"{name}.log", "the server did not read its settings again")
    use(cluster)
    with psycopg.connect(cluster.dsn, autocommit=True, application_name=LAST) as last:
        last.execute(f"SELECT '{LAST_WORDS}'".encode())
    for path in files.values():
        _require(functools.partial(_is_whole, path), f"{path} does not end with the last session")
    return Logged(files)


def _require(result: Callable[[], bool], otherwise: str) -> None:
    if not wait_until(result, PATIENCE_S):
        raise PgdynoError(otherwise, remedy="look at the server's log")


def _setting(cluster: Cluster, name: str) -> str:
    with cluster.connect() as admin:
        (value,) = admin.execute(f"SHOW {name}".encode()).fetchone() or ("",)
        return str(value)


def _is_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        text = file.read().decode(errors="replace")
    end = text.rfind(LAST_WORDS)
    return end >= 0 and "disconnection: session time" in text[end:]


def of_roles(log: Path, roles: set[str], copy: Path) -> Path:
    """The lines of a csvlog that are about some roles. The server writes on into its file while others read it, and what a busy machine
    makes of the sessions that set logging and end the log is nobody's load.
    """
    with log.open(newline="") as file, copy.open("w", newline="") as out:
        csv.writer(out).writerows(row for row in csv.reader(file) if row[1] in roles)
    return copy


def dumped(cluster: Cluster, database: str, folder: Path) -> tuple[Path, Path]:
    """A dump of a database, and the roles."""
    dump, roles = folder / f"{database}.dump", folder / f"{database}.roles"
    where = ["-h", str(cluster.socket_dir), "-p", str(cluster.port), "-U", "postgres"]
    for name, *words in (("pg_dump", "-Fc", "-C", "-f", str(dump), database), ("pg_dumpall", "-g", "-f", str(roles))):
        command = [str(cluster.binaries.program(name)), *where, *words]
        subprocess.run(command, env=cluster.binaries.environment, check=True, timeout=DUMP_S_MAX)
    return dump, roles
