"""A server that logs an application in several formats, and the captures that are made of them."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Protocol

from tools.captured.logged import SUPERUSER, log_everything

from ..support.commands import pgdyno
from ..support.servers import throwaway_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg

    from pgdyno.server.cluster import Cluster

FULL_PREFIX = "%m|%p|%u|%d|%a|%h|%c|%l|%v|%e|"
RDS_PREFIX = "%t:%r:%u@%d:[%p]:"
CLOUD_SQL_PREFIX = "%m [%p]: [%l-1] db=%d,user=%u "
AZURE_PREFIX = "%t-%c-"
CLIENT = "a client of the test"
AS_SUPERUSER = ("--allow-outside", *SUPERUSER)
"""A superuser begins and ends the logs of these tests, and its sessions are replayed with the others."""
ITSELF = ("--database", "postgres=postgres")
"""The database that was captured is also the copy: the test has put it back."""


class Reached(Protocol):
    """A server that clients connect to."""

    @property
    def dsn(self) -> str:
        """Its connection string."""


@contextlib.contextmanager
def logging_cluster(pg_bin: Path | None, **settings: str) -> Iterator[Cluster]:
    """A started server that logs in all formats that it has."""
    with throwaway_cluster(pg_bin) as cluster:
        log_everything(cluster, **settings)
        yield cluster


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


def counters(cluster: Cluster, database: str, path: Path) -> Path:
    """What `capture stats` says of a database now, in a file."""
    path.write_text(pgdyno("capture", "stats", cluster.dsn_of("postgres", database), code=0).out)
    return path


def sessions(capture: Path, name: str | None = CLIENT) -> list[dict[str, Any]]:
    """Each session of an application with its statements, values included; of all without a name."""
    shown = json.loads(pgdyno("capture", "show", capture, "--json", code=0).out)
    sessions = []
    for number in range(1, shown["sessions"] + 1):
        document = json.loads(
            pgdyno("capture", "show", capture, "--session", str(number), "--values", "--json", code=0).out
        )
        if name is None or document["session"]["application"] == name:
            sessions.append(document)
    return sessions


def sent(capture: Path, name: str | None = CLIENT) -> list[list[Any]]:
    """What was sent: protocol, text, values and error of each statement, session by session."""
    return [
        [(call["protocol"], call["text"], call["values"], call["error"]) for call in session["calls"]]
        for session in sorted(sessions(capture, name), key=lambda session: session["session"]["begin_us"])
    ]
