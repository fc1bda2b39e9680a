"""Runs a driver on its own CPU against the restored database, and reads what it counted."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from pgdyno import _engine
from pgdyno.errors import PgdynoError
from tools.equivalence.workloads import connected

if TYPE_CHECKING:
    from tools.equivalence.bench import Bench
    from tools.equivalence.workloads import Length, Workload

Side = Literal["original", "native"]
_PATIENCE_S = 120.0
"""Beyond its length: a driver that takes this long to begin and end hangs."""


class Run(BaseModel, frozen=True):
    """What a driver says it did."""

    transactions: int
    tps: float
    """Of the time after all clients were connected, by the driver's own rule."""


def run(bench: Bench, workload: Workload, side: Side, seed: int, length: Length) -> Run:
    """Run to the end. :class:`PgdynoError` when the driver fails or loses any transaction."""
    prefix = ["taskset", "-c", str(bench.driver_cpu)]
    if side == "native":
        document = workload.native(seed, length) | {"server": bench.server | {"dbname": bench.database}}
        out = _output([*prefix, str(_engine.checked()), "drive"], document, bench, length)
        return _native(out)
    command = workload.command(bench.pgbench, seed, length)
    if workload.original == "sysbench":
        command[1:1] = connected(bench.server, bench.database)
    out = _output([*prefix, *command], None, bench, length)
    return _pgbench(out) if workload.original == "pgbench" else _sysbench(out)


def _output(command: list[str], document: dict[str, Any] | None, bench: Bench, length: Length) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    environment |= bench.environment | {"LC_ALL": "C"}
    done = subprocess.run(
        command,
        input=None if document is None else json.dumps(document) + "\n",
        env=environment,
        capture_output=True,
        text=True,
        timeout=(length.seconds or 0) + _PATIENCE_S,
        check=False,
    )
    if done.returncode != 0:
        raise PgdynoError(
            f"`{command[3]}` ended with {done.returncode}: {done.stderr.strip()[-500:]}", remedy="run it by hand"
        )
    return done.stdout


def _native(out: str) -> Run:
    summary = json.loads(out.splitlines()[-1])["summary"]
    if summary["failed"] or summary["connections_lost"]:
        raise PgdynoError(f"the driver lost transactions: {summary['errors']}", remedy="look at the server's log")
    return Run(transactions=summary["succeeded"], tps=summary["tps"])


def _pgbench(out: str) -> Run:
    transactions = _number(r"number of transactions actually processed: (\d+)", out)
    return Run(transactions=int(transactions), tps=_number(r"^tps = ([\d.]+) \(without", out))


def _sysbench(out: str) -> Run:
    return Run(
        transactions=int(_number(r"transactions:\s+(\d+)\s", out)),
        tps=_number(r"transactions:\s+\d+\s+\(([\d.]+) per sec", out),
    )


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise PgdynoError(f"no `{pattern}` in what the driver printed: {text[-500:]}", remedy="look at its version")
    return float(found[1])
