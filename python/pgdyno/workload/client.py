"""How pgbench is started: which program, with what environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pgdyno.workload.server import Server

from ..base.errors import HostError


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
