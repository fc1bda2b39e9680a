"""The loads that driver and originals are given, and their command lines."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pgdyno.base import endpoint, engine
from pgdyno.base.errors import PgdynoError
from pgdyno.workload.server import pgbench_path

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

Tool = Literal["pgdyno", "pgbench", "sysbench"]

CLIENTS = 8
SCALE = 10
"""Of pgbench's tables: more branches than clients, so that waiting for one another does not decide."""
TABLES = 4
ROWS = 10_000
"""Of each of sysbench's tables: its default."""


@dataclass(frozen=True)
class Load:
    """A workload at a rate, the original that it comes from, and how the driver's CPU may compare."""

    name: str
    original: Tool
    rate_per_s: int
    tps_ratio_max: float
    """CPU of the driver's process for each transaction, as a multiple of the original's."""


LOADS = (
    Load("select-only", "pgbench", 4000, 1.1),
    Load("tpcb-like", "pgbench", 600, 1.1),
    Load("oltp_read_write", "sysbench", 200, 0.8),
)
"""About 4,000 statements a second each: a fifth of what two cores can serve beside a server, so that neither tool waits
for a core, and enough to weigh beside what a process costs once."""


@dataclass(frozen=True)
class Run:
    """A program to start."""

    command: list[str]
    given: bytes
    """For its standard input."""


def run_of(load: Load, tool: Tool, cluster: Cluster, seconds: int, seed: int) -> Run:
    """How ``tool`` runs ``load``: Poisson arrivals, prepared statements, one thread where it can choose."""
    if tool == "pgdyno":
        server = endpoint.local(cluster.dsn)
        document = native(_workload(load), seconds, seed, server, rate_per_s=load.rate_per_s)
        return Run([str(engine.checked()), "drive"], document)
    if tool == "pgbench":
        options = ["-n", "-c", str(CLIENTS), "-j", "1", "-M", "prepared", "-R", str(load.rate_per_s)]
        options += ["-T", str(seconds), "--random-seed", str(seed), "-b", load.name]
        return Run([str(pgbench_path(cluster)), *options], b"")
    options = [f"--threads={CLIENTS}", f"--rate={load.rate_per_s}", f"--time={seconds}", f"--rand-seed={seed}"]
    return Run([*_sysbench(cluster, load.name), *options, "run"], b"")


def native(
    workload: object, seconds: int, seed: int, server: endpoint.Endpoint | None = None, **arrivals: float
) -> bytes:
    """A specification for the driver; without a ``server`` its clients are idle. ``arrivals`` is its ``rate_per_s``; without it each client begins
    when it is done with the last.
    """
    document: dict[str, Any] = {
        "workload": workload,
        "clients": CLIENTS,
        "protocol": "prepared",
        "duration_ms": seconds * 1000,
        "seed": seed,
    }
    if arrivals:
        document["arrivals"] = {"poisson": arrivals}
    if server is not None:
        document["server"] = server.order("pgdyno drive")
    return json.dumps(document).encode() + b"\n"


def transactions_in(tool: Tool, printed: str) -> int:
    """How many transactions a tool says that it did."""
    if tool == "pgdyno":
        return int(json.loads(printed.splitlines()[-1])["summary"]["succeeded"])
    pattern = {"pgbench": r"actually processed: (\d+)", "sysbench": r"transactions: +(\d+)"}[tool]
    match = re.search(pattern, printed)
    if match is None:
        raise PgdynoError(f"{tool} did not say how many transactions it did: {printed[-500:]}", remedy="run it alone")
    return int(match[1])


def prepare_sysbench(cluster: Cluster) -> list[str]:
    """The command that makes sysbench's tables."""
    return [*_sysbench(cluster, "oltp_read_write"), "prepare"]


def missing(tool: Tool) -> str | None:
    """Why this machine cannot run an original, if so."""
    if tool == "sysbench" and shutil.which("sysbench") is None:
        return "sysbench is not installed (apt install sysbench)"
    return None


def _workload(load: Load) -> dict[str, Any]:
    if load.original == "sysbench":
        return {"sysbench": {"test": load.name, "tables": TABLES, "rows": ROWS}}
    return {"pgbench": {"scripts": [{"builtin": load.name}], "scale": SCALE}}


def _sysbench(cluster: Cluster, test: str) -> list[str]:
    connection = [f"--pgsql-host={cluster.socket_dir}", f"--pgsql-port={cluster.port}", "--pgsql-user=postgres"]
    size = [f"--tables={TABLES}", f"--table-size={ROWS}"]
    return ["sysbench", test, "--db-driver=pgsql", *connection, "--pgsql-db=postgres", *size]
