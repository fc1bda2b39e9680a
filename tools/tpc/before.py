"""Loads of pgbench's and sysbench's tables by an older engine and by today's, in turns: what the loader for TPC-C and TPC-H cost them.

The older engine is a binary, or is built from a commit; before rows came by driving rows (an order with its lines) that is
:data:`COMMIT`. Both are linked as `make setup` links.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pgdyno.base import engine as _engine
from pgdyno.base.endpoint import local
from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.workload.server import environment
from pgdyno.workload.tables import PgbenchTables, SysbenchTables
from tools.driver import process
from tools.driver.load import Run
from tools.tpc import loads
from tools.tpc.record import BeforeLoads, BeforePair

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

COMMIT = "52d8fcb"
"""The last one whose loader writes a table row by row."""
PAIRS = 20
LOADS: dict[str, PgbenchTables | SysbenchTables] = {
    "pgbench, scale 20": PgbenchTables(20),
    "sysbench, 4 tables of 250,000 rows": SysbenchTables(4, 250_000),
}
_ROOT = Path(__file__).resolve().parents[2]
_BUILDS = _ROOT / "results" / "tpc" / "engines"
_ENGINE = "pgdyno-engine"
_DATABASE = "before"


@dataclass(frozen=True)
class Engine:
    """A binary that fills tables, its name without anything of this machine, and how it is told of the server."""

    path: Path
    name: str
    by_environment: bool = False
    """An older one asks libpq's variables where the server is; today's gets it with its order."""

    @classmethod
    def today(cls) -> Self:
        """That of this checkout."""
        return cls(_engine.checked(), "today")

    @classmethod
    def named(cls, text: str) -> Self:
        """A binary's path, or a commit, which is built where that was not done before."""
        path = Path(text)
        if path.is_file() and os.access(path, os.X_OK):
            stdout = subprocess.run([path.absolute(), "version"], capture_output=True, text=True, check=True).stdout
            return cls(path.absolute(), f"engine {json.loads(stdout)['build_hash'][:12]}")
        return cls(built(text), text)

    def fill(self, cluster: Cluster, tables: PgbenchTables | SysbenchTables) -> tuple[float, float]:
        """Seconds of a load into a new database, and those of the process's CPU."""
        loads.make(cluster, _DATABASE)
        dsn = loads.dsn_of(cluster, _DATABASE)
        order: dict[str, Any] = {"tables": tables.document(), "connections": loads.SESSIONS}
        variables: dict[str, str] = {}
        if self.by_environment:
            variables = environment(cluster) | {"PGDATABASE": _DATABASE}
        else:
            order["server"] = local(dsn).named("pgdyno fill")
        begin = time.monotonic()
        ended = process.run(Run([str(self.path), "fill"], json.dumps(order).encode() + b"\n"), variables, loads.LOAD_S)
        return time.monotonic() - begin, ended.cpu_s

    def as_it_is_told(self, cluster: Cluster) -> Engine:
        """The same in the way in which it takes orders: a small load is tried. :class:`PgdynoError` if there is none."""
        try:
            self.fill(cluster, PgbenchTables(1))
        except PgdynoError:
            result = replace(self, by_environment=True)
            result.fill(cluster, PgbenchTables(1))
            return result
        return self


def built(commit: str) -> Path:
    """The engine of a commit, in a folder that is kept. :class:`InputError` for one that git does not know."""
    known = subprocess.run(
        ["git", "rev-parse", "--verify", f"{commit}^{{commit}}"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    if known.returncode != 0:
        raise InputError(f"{commit} is neither a program nor a commit", remedy="name an engine's binary, or a commit")
    whole = known.stdout.strip()
    folder = _BUILDS / whole[:12]
    path = folder / "target" / "release" / _ENGINE
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        sources = subprocess.run(["git", "archive", whole], cwd=_ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", str(folder)], input=sources, check=True)
        command = [
            "cargo",
            "build",
            "--release",
            "--locked",
            "--package",
            _ENGINE,
            "--target-dir",
            str(folder / "target"),
        ]
        if subprocess.run(command, cwd=folder, check=False).returncode != 0:
            raise PgdynoError(f"the engine of {commit} was not built", remedy="see what cargo said above")
    return path


def measure(cluster: Cluster, older: Engine, pairs: int, seed: int) -> dict[str, BeforeLoads]:
    """Pairs of loads of each set of tables, in an order that the seed draws. The first load of each is not counted."""
    order, now = random.Random(seed), Engine.today()
    before = older.as_it_is_told(cluster)
    loads: dict[str, BeforeLoads] = {}
    for name, tables in LOADS.items():
        before_loads = BeforeLoads(tables=str(tables), older=older.name)
        for number in range(pairs + 1):
            now_first = order.random() < 0.5
            taken = {
                engine.name: engine.fill(cluster, tables) for engine in ((now, before) if now_first else (before, now))
            }
            (now_s, now_cpu_s), (before_s, before_cpu_s) = taken[now.name], taken[before.name]
            pair = BeforePair(
                now_s=now_s, before_s=before_s, now_cpu_s=now_cpu_s, before_cpu_s=before_cpu_s, now_first=now_first
            )
            text = f"{number}/{pairs} {name}: {now_s:.2f} s, {before_s:.2f} s before"
            print(text, file=sys.stderr, flush=True)
            if number:
                before_loads.pairs.append(pair)
        loads[name] = before_loads
    with cluster.connect() as connection:
        connection.execute(f"DROP DATABASE {_DATABASE} WITH (FORCE)".encode())
    return loads
