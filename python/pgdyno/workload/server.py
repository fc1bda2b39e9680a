"""Server as workloads see it, environment of its pgbench, and counts of its rows."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..base import session
from ..base.endpoint import Endpoint
from ..base.errors import HostError, InputError, PgdynoError

if TYPE_CHECKING:
    import psycopg


class Binaries(Protocol):
    """Directory of PostgreSQL's programs."""

    @property
    def bin_dir(self) -> Any:
        """Directory (``pathlib.Path``) that holds ``pgbench``."""


class Server(Protocol):
    """A server; :class:`pgdyno.server.cluster.Cluster` is one."""

    @property
    def dsn(self) -> str:
        """Connection string in libpq's notation."""

    @property
    def endpoint(self) -> Endpoint:
        """Endpoint for the engine. :class:`InputError` if the engine cannot do what the connection string asks for."""

    @property
    def binaries(self) -> Binaries:
        """The programs that belong to it."""


def pgbench_path(server: Server) -> Path:
    """The server's own pgbench; :class:`HostError` when its directory has none."""
    path = Path(server.binaries.bin_dir) / "pgbench"
    if not os.access(path, os.X_OK):
        raise HostError(f"there is no pgbench in {path.parent}", remedy="install PostgreSQL's contrib programs")
    return path


def environment(server: Server, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment of pgbench: the connection, and nothing of the caller's own PG variables.

    The connection goes by the environment because command lines, and the passwords on them, are public to every
    user of a host. Messages are not translated, since some are parsed.
    """
    from psycopg import pq
    from psycopg.conninfo import conninfo_to_dict

    variables = {
        option.keyword.decode(): option.envvar.decode() for option in pq.Conninfo.get_defaults() if option.envvar
    }
    made = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    made |= {"LC_ALL": "C", "PGAPPNAME": "pgdyno pgbench"}
    for keyword, value in conninfo_to_dict(server.dsn).items():
        if value is not None and keyword in variables:
            made[variables[keyword]] = str(value)
    return made | dict(extra or {})


ROWS_COUNTED_MAX = 2_000_000
"""Rows of all tables that are counted unasked: about 0.5 GB of sysbench's, so some seconds on the slowest of the usual volumes."""


@contextlib.contextmanager
def counting(server: Server) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A session that counts, which may take longer than the role's statement_timeout; errors say what the server said."""
    import psycopg

    try:
        with psycopg.connect(server.dsn) as connection:
            connection.execute(session.SERVER_FIRST)
            connection.execute("SET LOCAL statement_timeout = 0")  # not for the session, which a pooler may hand on
            yield connection
    except psycopg.Error as error:
        text = f"the workload's tables cannot be counted: {' '.join(str(error).split())}"
        if isinstance(error, psycopg.ProgrammingError):  # no such table, no right to read it
            raise InputError(text, remedy="create the tables first, and let the role read them") from error
        raise PgdynoError(text, remedy="look at the server's log") from error


def row_counts(server: Server, tables: Iterable[str]) -> dict[str, int]:
    """Rows of each table, by scans of all of them."""
    from psycopg import sql

    row_counts = {}
    with counting(server) as connection:
        for table in tables:
            row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
            row_counts[table] = 0 if row is None else int(row[0])
    return row_counts
