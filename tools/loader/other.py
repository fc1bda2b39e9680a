"""Other loaders, as their documents say how to load a tab-separated file. None is installed for this."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from psycopg.conninfo import conninfo_to_dict

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

LOOK_TIMEOUT_S = 60.0
WORKERS = 2
_DUCKDB = """
import sys
import duckdb
folder, dsn, path = sys.argv[1:]
connection = duckdb.connect(config={"extension_directory": folder})
connection.execute("INSTALL postgres; LOAD postgres")
if path:
    connection.execute(f"ATTACH '{dsn}' AS pg (TYPE postgres)")
    connection.execute(
        "INSERT INTO pg.t SELECT * FROM read_csv(?, delim = '\\t', header = false, quote = '', escape = '', nullstr = '\\\\N',"
        " columns = {'id': 'BIGINT', 'amount': 'DECIMAL(18, 2)', 'at': 'TIMESTAMPTZ', 'note': 'VARCHAR', 'tag': 'VARCHAR'})",
        [path],
    )
"""
"""One stream of binary COPY in one transaction: its reader may use several threads, its writer is one."""
_PGLOADER = """
LOAD CSV FROM '{path}' HAVING FIELDS (id, amount, at, note, tag)
INTO postgresql://{user}@unix:{host}:{port}/{dbname} TARGET TABLE t TARGET COLUMNS (id, amount, at, note, tag)
WITH workers = {workers}, concurrency = 1, fields terminated by '\\t';
"""


@dataclass(frozen=True)
class Program:
    """One of them."""

    name: str
    command: Callable[[Cluster, Path, Path], list[str]]
    """For a server, a file, and a folder of its own."""
    missing: Callable[[Path], str | None]
    """Why it cannot run here, if so; the folder is its own."""


def _absent(program: str) -> Callable[[Path], str | None]:
    return lambda _folder: None if shutil.which(program) else "not installed"


def _parallel_copy(cluster: Cluster, path: Path, _folder: Path) -> list[str]:
    words = ["--connection", f"{cluster.dsn} sslmode=disable", "--table", "t", "--file", str(path)]
    return ["timescaledb-parallel-copy", *words, "--split", "\\t", "--workers", str(WORKERS)]


def _pgloader(cluster: Cluster, path: Path, folder: Path) -> list[str]:
    where = conninfo_to_dict(cluster.dsn)
    result = folder / "load.pgloader"
    result.write_text(_PGLOADER.format(path=path, workers=WORKERS, **where))
    return ["pgloader", "--quiet", "--root-dir", str(folder / "pgloader"), str(result)]


def _duckdb(cluster: Cluster, path: Path, folder: Path) -> list[str]:
    return [sys.executable, "-c", _DUCKDB, str(folder / "duckdb"), cluster.dsn, str(path)]


def _without_duckdb(folder: Path) -> str | None:
    """Its extension comes from the network, once."""
    command = [sys.executable, "-c", _DUCKDB, str(folder / "duckdb"), "", ""]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LOOK_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"its extension for PostgreSQL did not come within {LOOK_TIMEOUT_S:g} s"
    if done.returncode == 0:
        return None
    text = next((line for line in reversed(done.stderr.splitlines()) if "Exception" in line), "it cannot be loaded")
    return f"its extension for PostgreSQL cannot be had: {text.split(': ', 1)[-1].split(' at URL')[0]}"


PROGRAMS = (
    Program("timescaledb-parallel-copy", _parallel_copy, _absent("timescaledb-parallel-copy")),
    Program("pgloader", _pgloader, _absent("pgloader")),
    Program("DuckDB", _duckdb, _without_duckdb),
)
