"""The server that the documents call `db.example` and the services `pgdyno` and `app`: an ordinary role's database, and a role that watches it."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.small import SCALE
from tests.support.servers import throwaway_cluster

HOST = "host=db.example"
SERVICE = "pgdyno"
DATABASE, ROLE = "app", "bench"
WATCHED, WATCHER = "app", "monitor"
"""The service and the role of whoever watches."""


@dataclass(frozen=True)
class SomebodysServer:
    """Where it is."""

    where: str
    """What stands for :data:`HOST` in a connection string."""
    services: Path
    """A service file that names it."""


@contextlib.contextmanager
def somebodys_server(folder: Path) -> Iterator[SomebodysServer]:
    """A server with pgbench's tables in the database of a role that is not a superuser, and pg_stat_statements."""
    with throwaway_cluster(None, {"shared_preload_libraries": "pg_stat_statements"}) as cluster:
        with cluster.connect() as connection:
            connection.execute(f"CREATE ROLE {ROLE} LOGIN")
            connection.execute(f"CREATE ROLE {WATCHER} LOGIN IN ROLE pg_monitor")
            connection.execute(f"CREATE DATABASE {DATABASE} OWNER {ROLE}")
        with cluster.connect(dbname=DATABASE) as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
        arguments = ["-h", str(cluster.socket_dir), "-p", str(cluster.port), "-U", ROLE, "-i", "-s", SCALE, DATABASE]
        subprocess.run(
            [cluster.binaries.program("pgbench"), *arguments],
            check=True,
            capture_output=True,
            env=os.environ | cluster.binaries.environment,
        )
        services = folder / "pg_service.conf"
        place = f"host={cluster.socket_dir}\nport={cluster.port}"
        users = {SERVICE: ROLE, WATCHED: WATCHER}
        named = (f"[{service}]\n{place}\ndbname={DATABASE}\nuser={user}\n" for service, user in users.items())
        services.write_text("\n".join(named))
        yield SomebodysServer(f"host={cluster.socket_dir} port={cluster.port}", services)
