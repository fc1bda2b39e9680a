"""pgreplay, where it is installed, beside pgdyno: the same log of an order shop, sent to the same database of before."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

from pgdyno import __version__
from pgdyno.base.errors import PgdynoError
from pgdyno.capture.replay import replay
from pgdyno.server.binaries import find_binaries
from pgdyno.server.throwaway import throwaway
from pgdyno.workload.server import environment
from tools.captured.logged import SUPERUSER
from tools.captured.production import BEFORE, DATABASE, Made, Production, produce
from tools.captured.record import Beside, Tool
from tools.driver import process
from tools.driver.load import Run

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

PROGRAM = "pgreplay"
SIZE = 1.0
SECONDS = 20.0
RATE_PER_S = 400.0
PATIENCE_S = 10.0
SAID_MOST = 300
MESSAGE, DETAIL = 13, 14
"""Columns of a csvlog."""
_SENT = ("executed", "failed_as_recorded", "newly_failed", "no_longer_failed")


def beside(folder: Path) -> Beside | None:
    """Both tools, one after the other, each on a new copy; None where pgreplay is not installed."""
    if shutil.which(PROGRAM) is None:
        return None
    with throwaway(find_binaries(None), {}) as cluster:
        production = produce(cluster, folder, SIZE, SECONDS, RATE_PER_S, copied=True)
        copied(cluster)
        summary = replay(str(production.capture), cluster.dsn, allowed=SUPERUSER).summary
        ours = Tool(
            name=f"pgdyno {__version__}",
            statements=sum(summary[name] for name in _SENT),
            errors=summary["failed_as_recorded"] + summary["newly_failed"],
            orders_missing=_missing(cluster, production),
            cpu_s=summary["cpu_s"],
            took_s=summary["took_s"],
            late_s_max=summary["behind_us"]["max"] / 1e6,
        )
        copied(cluster)
        theirs = _pgreplay(cluster, production, folder)
    return Beside(
        transactions=production.transactions,
        statements=production.account["calls"],
        failed=summary["failed_as_recorded"] + summary["no_longer_failed"],
        seconds=SECONDS,
        tools=[ours, theirs],
    )


def copied(cluster: Cluster) -> None:
    """Put the database as it was under its own name: pgreplay sends to databases of the log's names."""
    with cluster.connect() as admin:
        admin.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)".encode())
        admin.execute(f"CREATE DATABASE {DATABASE} TEMPLATE {BEFORE}".encode())
        admin.execute("CHECKPOINT")


def _missing(cluster: Cluster, production: Production) -> int:
    with cluster.connect(dbname=DATABASE) as session:
        return production.made.orders - Made.of(session, production.size).orders


def _pgreplay(cluster: Cluster, production: Production, folder: Path) -> Tool:
    """The log is parsed and sent in one go. Where that breaks off, its last words are all that is known."""
    version = subprocess.run([PROGRAM, "-v"], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    log = _readable(production.log, folder / "pgreplay.csv")
    command = [PROGRAM, "-c", "-h", str(cluster.socket_dir), "-p", str(cluster.port), str(log)]
    begin = time.monotonic()
    try:
        ended = process.run(Run(command, b""), environment(cluster), SECONDS)
    except PgdynoError as error:
        ended = process.Ended(0.0, f"{error.message}", 0)
    took_s = time.monotonic() - begin
    return Tool(
        name=version.stdout.strip() or PROGRAM,
        statements=_figure(r"SQL statements executed: (\d+)", ended.printed),
        errors=_figure(r"\((\d+) or [\d.]+% of these completed with error\)", ended.printed),
        orders_missing=_missing(cluster, production),
        cpu_s=ended.cpu_s,
        took_s=took_s,
        late_s_max=_figure(r"Maximum lag behind schedule: (\d+) seconds", ended.printed),
        said="" if ended.cpu_s else ended.printed[-SAID_MOST:],
    )


def _readable(log: Path, copy: Path) -> Path:
    """A log for pgreplay 1.2. It ends by a segmentation fault at DEALLOCATE ALL (its issue 23), and knows parameters by the small letter that
    they began with before PostgreSQL 16.
    """
    with log.open(newline="") as file, copy.open("w", newline="") as out:
        written = csv.writer(out)
        for row in csv.reader(file):
            if "DEALLOCATE" not in row[MESSAGE]:
                row[DETAIL] = re.sub("^Parameters: ", "parameters: ", row[DETAIL])
                written.writerow(row)
    return copy


def _figure(pattern: str, printed: str) -> int:
    match = re.search(pattern, printed)
    return int(match[1]) if match else 0
