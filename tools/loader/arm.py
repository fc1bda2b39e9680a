"""The ways to load a file that are measured: ours, PostgreSQL's own, and other programs where they are installed."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.base import engine
from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.loader.asked import ChunkBytes
from pgdyno.workload.server import environment
from tools.driver import process
from tools.driver.load import Run as Program
from tools.loader import other

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster
    from tools.loader.files import Files, Name

SESSIONS = 2
"""The issue's bars are for two cores."""
MANY_SESSIONS = 8
TIMEOUT_S = 900.0
LEDGER = """
CREATE SCHEMA pgdyno_load;
CREATE TABLE pgdyno_load.chunk (job bigint, source int, chunk bigint, first_byte bigint, end_byte bigint,
    rows_loaded bigint, rows_rejected bigint, PRIMARY KEY (job, source, chunk))
"""
SERVER, PSQL, ENGINE, COMMAND = "two COPY of the server", "`psql \\copy`", "pgdyno", "`pgdyno load`"
PEER = "`pgdyno load` of the peer"
GZIP, ZSTD, MANY = "pgdyno, gzip", "pgdyno, zstd", f"pgdyno, {MANY_SESSIONS} sessions"
PSQL_INDEXED, COMMAND_INDEXED = "`psql \\copy`, three indexes", "`pgdyno load`, three indexes"
PSQL_SCATTERED, COMMAND_SCATTERED = "`psql \\copy`, keys in no order", "`pgdyno load`, keys in no order"
BASELINES = {COMMAND_INDEXED: PSQL_INDEXED, COMMAND_SCATTERED: PSQL_SCATTERED}
"""Arms that load into a table with three indexes -> what they are held against."""


@dataclass(frozen=True)
class Bench:
    """Where arms run."""

    cluster: Cluster
    files: Files
    folder: Path
    """For what they need."""


@dataclass(frozen=True)
class Done:
    """What a client took."""

    client_cpu_s: float
    rss_bytes_max: int | None = None


def _nothing(_bench: Bench) -> None:
    """Is missing."""


@dataclass(frozen=True)
class Arm:
    """One way."""

    name: str
    load: Callable[[Bench, Path], Done]
    """Loads :attr:`file`."""
    missing: Callable[[Bench], str | None] = _nothing
    """Why it cannot run here, if so."""
    ledger: bool = False
    """Whether it writes into :data:`LEDGER`."""
    file: Name = "whole"
    """Of ``files``. The last two go into a table with three indexes."""
    ours: bool = True
    """When it fails the record fails; another program is left out then, and that is said."""


def psql_path(cluster: Cluster) -> str | None:
    """The server's own psql, or the one that is installed."""
    own = cluster.binaries.bin_dir / "psql"
    return str(own) if own.exists() else shutil.which("psql")


def _run(bench: Bench, command: list[str], given: bytes = b"") -> process.Ended:
    extra = {name: os.environ[name] for name in ("PGDYNO_ENGINE",) if name in os.environ}
    extra["PGDYNO_STATE_DIR"] = str(bench.folder / "state")
    return process.run(Program(command, given), environment(bench.cluster, extra), TIMEOUT_S)


def _engine_of(sessions: int) -> Callable[[Bench, Path], Done]:
    def load(bench: Bench, path: Path) -> Done:
        document = {
            "server": bench.cluster.endpoint.order("loader"),
            "table": "t",
            "format": {"text": {}},
            "sources": [{"path": str(path), "name": path.name}],
            "chunk_bytes": ChunkBytes().document(),
            "connections": sessions,
            "ledger": {"table": "pgdyno_load.chunk", "job": 1},
            "settings": {"synchronous_commit": "off"},
        }
        ended = _run(bench, [str(engine.checked()), "load"], json.dumps(document).encode() + b"\n")
        end = json.loads(ended.printed.splitlines()[-1])
        return Done(ended.cpu_s, end["rss_bytes_max"])

    return load


def _command_of(*program: str) -> Callable[[Bench, Path], Done]:
    """`pgdyno load` by a program that is pgdyno."""

    def load(bench: Bench, path: Path) -> Done:
        words = ["load", str(path), "--into", bench.cluster.dsn, "--table", "t", "--format", "text"]
        words += ["--connections", str(SESSIONS), "--no-vacuum", "--json"]
        return Done(_run(bench, [*program, *words]).cpu_s)

    return load


_command = _command_of(sys.executable, "-m", "pgdyno")


def _psql(bench: Bench, path: Path) -> Done:
    command = [str(psql_path(bench.cluster)), "-qX", "-c", f"\\copy t FROM '{path}'"]
    return Done(_run(bench, command).cpu_s)


def _without_psql(bench: Bench) -> str | None:
    return None if psql_path(bench.cluster) else "psql is not installed (apt install postgresql-client)"


def _server(bench: Bench, _whole: Path) -> Done:
    """Two sessions, each with a COPY FROM one half of the file, which the server reads itself."""

    def copy(path: Path) -> None:
        with bench.cluster.connect(autocommit=True) as connection:
            connection.execute(f"COPY t FROM '{path}'".encode())

    with ThreadPoolExecutor() as threads:
        list(threads.map(copy, bench.files.halves))
    return Done(0.0)


def _other(program: other.Program) -> Arm:
    def load(bench: Bench, path: Path) -> Done:
        command = program.command(bench.cluster, path, bench.folder)
        return Done(_run(bench, command).cpu_s)

    def missing(bench: Bench) -> str | None:
        try:
            return program.missing(bench.folder)
        except PgdynoError as error:
            return error.message

    return Arm(program.name, load, missing, ours=False)


ARMS = (
    Arm(SERVER, _server),
    Arm(PSQL, _psql, _without_psql),
    Arm(ENGINE, _engine_of(SESSIONS), ledger=True),
    Arm(COMMAND, _command),
    Arm(GZIP, _engine_of(SESSIONS), ledger=True, file="gzip"),
    Arm(ZSTD, _engine_of(SESSIONS), ledger=True, file="zstd"),
    Arm(MANY, _engine_of(MANY_SESSIONS), ledger=True),
    Arm(PSQL_INDEXED, _psql, _without_psql, file="indexed"),
    Arm(COMMAND_INDEXED, _command, file="indexed"),
    Arm(PSQL_SCATTERED, _psql, _without_psql, file="scattered"),
    Arm(COMMAND_SCATTERED, _command, file="scattered"),
    *(_other(program) for program in other.PROGRAMS),
)


def beside_peer(peer: Path) -> tuple[Arm, Arm]:
    """`pgdyno load` of this checkout and of another one, whose program is ``peer``. :class:`InputError` where that is none.

    ``$PGDYNO_ENGINE`` would be the engine of both.
    """
    if not os.access(peer, os.X_OK) or peer.is_dir():
        raise InputError(f"--peer: {peer} is no program", remedy="name the `.venv/bin/pgdyno` of another checkout")
    if "PGDYNO_ENGINE" in os.environ:
        raise InputError("$PGDYNO_ENGINE would be the engine of both", remedy="unset it: each has its own")
    return Arm(COMMAND, _command), Arm(PEER, _command_of(str(peer.absolute())))
