"""A server that logs an application in several formats, and the captures that are made of them."""

from __future__ import annotations

import contextlib
import csv
import functools
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pgdyno.host.waiting import wait_until

from ..support.commands import pgdyno
from ..support.servers import throwaway_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

    from pgdyno.postgres.cluster import Cluster

FULL_PREFIX = "%m|%p|%u|%d|%a|%h|%c|%l|%v|%e|"
RDS_PREFIX = "%t:%r:%u@%d:[%p]:"
CLOUD_SQL_PREFIX = "%m [%p]: [%l-1] db=%d,user=%u "
AZURE_PREFIX = "%t-%c-"
LOGGED = {
    "logging_collector": "on",
    "log_directory": "log",
    "log_rotation_age": "0",
    "log_connections": "on",
    "log_disconnections": "on",
    "log_statement": "all",
    "log_duration": "on",
    "log_parameter_max_length_on_error": "-1",
    "log_file_mode": "0644",
}
PATIENCE_S = 30.0
CLIENT = "a client of the test"
LAST = "the last session"
"""Name of a session behind all others, by whose end a log is known to be whole."""


class Reached(Protocol):
    """A server that clients connect to."""

    @property
    def dsn(self) -> str:
        """Its connection string."""


@contextlib.contextmanager
def logging_cluster(pg_bin: Path | None, **settings: str) -> Iterator[Cluster]:
    """A started server that logs in all formats that it has.

    pgdyno sets logging itself for its own servers, so this is in the file of ALTER SYSTEM, which is read last.
    """
    with throwaway_cluster(pg_bin) as cluster:
        destination = "stderr,csvlog" + (",jsonlog" if cluster.binaries.major >= 15 else "")
        with cluster.connect() as admin:
            admin.autocommit = True
            for key, value in (LOGGED | {"log_destination": destination} | settings).items():
                admin.execute(f"ALTER SYSTEM SET {key} = '{value}'".encode())
        cluster.stop()
        cluster.start()
        yield cluster


@dataclass(frozen=True)
class Logged:
    """The logs of one use of a server, by the ends of their names: ``log``, ``csv``, ``json``."""

    files: dict[str, Path]


def log_of(cluster: Cluster, name: str, use: Callable[[Cluster], None], **settings: str) -> Logged:
    """Let ``use`` work while the server logs into files of this name."""
    with cluster.connect() as admin:
        admin.autocommit = True
        for key, value in {"log_filename": f"{name}.log", **settings}.items():
            admin.execute(f"ALTER SYSTEM SET {key} = '{value}'".encode())
        admin.execute("SELECT pg_reload_conf()")
    folder = cluster.data_dir / "log"
    ends = ["log", "csv", *(["json"] if "jsonlog" in _setting(cluster, "log_destination") else [])]
    files = {end: folder / f"{name}.{end}" for end in ends}
    assert wait_until(lambda: all(path.exists() for path in files.values()), PATIENCE_S)
    # Sessions that began before the reload log by the old settings.
    assert wait_until(lambda: _setting(cluster, "log_filename") == f"{name}.log", PATIENCE_S)
    use(cluster)
    with connected(cluster, LAST) as last:
        last.execute("SELECT 'this is the last statement of the log'")
    for path in files.values():
        assert wait_until(functools.partial(_is_whole, path), PATIENCE_S), path
    return Logged(files)


def _setting(cluster: Cluster, name: str) -> str:
    with cluster.connect() as admin:
        (value,) = admin.execute(f"SHOW {name}".encode()).fetchone() or ("",)
        return str(value)


def _is_whole(path: Path) -> bool:
    text = path.read_text(errors="replace")
    end = text.rfind("this is the last statement of the log")
    return end >= 0 and "disconnection: session time" in text[end:]


@contextlib.contextmanager
def connected(cluster: Reached, name: str = CLIENT) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A session that commits each statement, as an application of this name."""
    import psycopg

    with psycopg.connect(cluster.dsn, autocommit=True, application_name=name) as connection:
        yield connection


def captured(folder: Path, *logs: Path, options: tuple[str, ...] = ()) -> tuple[Path, dict[str, Any]]:
    """A capture of logs, and its account."""
    output = folder / f"{logs[0].name}.capture"
    output.unlink(missing_ok=True)
    ended = pgdyno("capture", "read", *logs, "--output", output, "--json", *options, code=0)
    return output, json.loads(ended.out)


def copied_of_role(log: Path, role: str, copy: Path) -> Path:
    """The lines of a csvlog that are about a role. The server writes on into its file while tests use it, and what a busy machine makes
    of the sessions that set logging and end the log is nobody's load.
    """
    with log.open(newline="") as file, copy.open("w", newline="") as out:
        csv.writer(out).writerows(row for row in csv.reader(file) if row[1] == role)
    return copy


def counters(cluster: Cluster, database: str, path: Path) -> Path:
    """What `capture stats` says of a database now, in a file."""
    path.write_text(pgdyno("capture", "stats", cluster.dsn_of("postgres", database), code=0).out)
    return path


def dumped(cluster: Cluster, database: str, folder: Path) -> tuple[Path, Path]:
    """A dump of a database, and the roles."""
    dump, roles = folder / f"{database}.dump", folder / f"{database}.roles"
    where = ["-h", str(cluster.socket_dir), "-p", str(cluster.port), "-U", "postgres"]
    for name, *words in (("pg_dump", "-Fc", "-C", "-f", dump, database), ("pg_dumpall", "-g", "-f", roles)):
        command = [cluster.binaries.program(name), *where, *words]
        subprocess.run(command, env=cluster.binaries.environment, check=True, timeout=120)
    return dump, roles


def sessions(capture: Path, name: str | None = CLIENT) -> list[dict[str, Any]]:
    """Each session of an application with its statements, values included; of all without a name."""
    shown = json.loads(pgdyno("capture", "show", capture, "--json", code=0).out)
    found = []
    for number in range(1, shown["sessions"] + 1):
        one = json.loads(pgdyno("capture", "show", capture, "--session", str(number), "--values", "--json", code=0).out)
        if name is None or one["session"]["application"] == name:
            found.append(one)
    return found


def sent(capture: Path, name: str | None = CLIENT) -> list[list[Any]]:
    """What was sent: protocol, text, values and error of each statement, session by session."""
    return [
        [(call["protocol"], call["text"], call["values"], call["error"]) for call in session["calls"]]
        for session in sorted(sessions(capture, name), key=lambda one: one["session"]["begin_us"])
    ]
