"""One server on a CPU of its own, in memory, with a database that is a fresh clone for every run."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psycopg.conninfo import make_conninfo

from pgdyno.base.endpoint import Endpoint, local
from pgdyno.base.errors import HostError, PgdynoError
from pgdyno.machine import paths
from pgdyno.machine.process import working_below
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import SUPERUSER, Cluster
from pgdyno.server.throwaway import throwaway
from pgdyno.workload.fill import fill
from tools.equivalence.workloads import SCALE, Workload, connected

if TYPE_CHECKING:
    import psycopg

    from pgdyno.server.binaries import PgBinaries
    from pgdyno.server.cluster import Cluster

SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "16GB",
    "min_wal_size": "2GB",
    "checkpoint_timeout": "1h",
    "autovacuum_naptime": "1h",
    "jit": "off",
}
"""Three clones are in shared buffers at once; no checkpoint and no vacuum falls into a run, where it would meet one and not the others."""
DATABASE = "bench"
_PREWARM = """
SELECT sum(pg_prewarm(oid::regclass)) FROM pg_class
WHERE relkind IN ('r', 'i') AND relnamespace::regnamespace::text IN ('public', 'pgdyno_tpcc')
"""


@dataclass(frozen=True)
class Bench:
    """The server, ready for runs."""

    cluster: Cluster
    driver_cpu: int
    server_cpus: frozenset[int]
    database: str = DATABASE

    @property
    def server(self) -> dict[str, str]:
        """Where it is, in libpq's keywords."""
        return {"host": str(self.cluster.socket_dir), "port": str(self.cluster.port), "user": SUPERUSER}

    @property
    def endpoint(self) -> Endpoint:
        """How the engine reaches it."""
        return local(self.dsn)

    @property
    def binaries(self) -> PgBinaries:
        """The server's programs."""
        return self.cluster.binaries

    @property
    def dsn(self) -> str:
        """The database, for libpq."""
        return make_conninfo(**self.server, dbname=self.database)

    @property
    def environment(self) -> dict[str, str]:
        """The same for pgbench, with the database."""
        return {f"PG{name.upper()}": value for name, value in self.server.items()} | {
            "PGDATABASE": self.database,
            **self.cluster.binaries.environment,
        }

    @property
    def pgbench(self) -> Path:
        """The server's own pgbench."""
        return Path(self.cluster.binaries.program("pgbench"))

    def restore(self, workload: Workload) -> None:
        """Make the database anew, all of it in shared buffers and on the disk."""
        with self.cluster.connect() as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)".encode())
            clone = f"CREATE DATABASE {self.database} TEMPLATE {workload.template} STRATEGY FILE_COPY"
            connection.execute(clone.encode())
        with self.cluster.connect(dbname=self.database) as connection:
            connection.execute(_PREWARM)
            connection.execute("CHECKPOINT")

    def ask(self, query: str, *values: Any) -> Any:
        """The first value of a query's answer."""
        with self.cluster.connect() as connection:
            return _value(connection, query, values)


def _value(connection: psycopg.Connection[tuple[Any, ...]], query: str, values: tuple[Any, ...]) -> Any:
    row = connection.execute(query.encode(), values).fetchone()
    if row is None:
        raise PgdynoError(f"no answer to `{query}`", remedy="look at the server's log")
    return row[0]


@contextlib.contextmanager
def bench(workloads: Iterable[Workload]) -> Iterator[Bench]:
    """A server with the tables of ``workloads``, in memory; gone after the ``with`` block."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise HostError("driver and server need a CPU each, and there is one", remedy="use a machine with two")
    with throwaway(find_binaries(), SETTINGS, paths.image_dir()) as cluster:
        bench = Bench(cluster, cores[0], frozenset(cores[1:]))
        _bind(bench)
        for workload in {workload.template: workload for workload in workloads}.values():
            _load(bench, workload)
        yield bench


def _bind(bench: Bench) -> None:
    """Keep the server off the driver's CPU; what it starts later inherits that."""
    for pid in (bench.cluster.pid, *(process.pid for process in working_below(bench.cluster.data_dir))):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(pid, bench.server_cpus)


def _load(bench: Bench, workload: Workload) -> None:
    with bench.cluster.connect() as connection:
        connection.execute(f"CREATE DATABASE {workload.template}".encode())
    if workload.filled is not None:
        fill(replace(bench, database=workload.template), workload.filled)
        _finish(bench, workload)
        return
    if workload.original == "pgbench":
        command = [str(bench.pgbench), "-i", "-q", "-s", str(SCALE)]
    else:
        words = connected(bench.server, workload.template)
        command = ["sysbench", *words, *workload.prepare(), "prepare"]
    environment = os.environ | bench.environment | {"PGDATABASE": workload.template}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        text = (done.stderr + done.stdout)[-500:]
        raise PgdynoError(f"the tables of {workload.name} could not be loaded: {text}", remedy="run it by hand")
    _finish(bench, workload)


def _finish(bench: Bench, workload: Workload) -> None:
    """Leave nothing to be done by the first run."""
    with bench.cluster.connect(dbname=workload.template) as connection:
        connection.execute("CREATE EXTENSION pg_prewarm")
        connection.execute("VACUUM (FREEZE, ANALYZE)")
