"""Measures the record: all arms in turns, round by round, on a server of its own."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.base.errors import PgdynoError
from pgdyno.server.binaries import find_binaries
from pgdyno.server.throwaway import throwaway
from tools.loader import files
from tools.loader.arm import ARMS, ENGINE, LEDGER, Arm, Bench, psql_path
from tools.loader.record import Record, Run
from tools.measured import here, now

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pgdyno.server.cluster import Cluster

SEED = 20261122
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"}
"""No checkpoint comes by itself: each arm has one at its end."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def measure(megabytes: int, rounds: int, result: Sequence[Arm] = ARMS) -> Record:
    """The arms that are asked for, with a file of so many megabytes."""
    begin = now()
    cores, kernel, build_hash = here()
    with (
        throwaway(find_binaries(None), SETTINGS) as cluster,
        tempfile.TemporaryDirectory(prefix="pgdyno-loader-") as name,
    ):
        made = files.write(cluster.data_dir.parent / "files", megabytes)
        bench = Bench(cluster, made, Path(name))
        reasons = {arm.name: why for arm in result if (why := arm.missing(bench)) is not None}
        arms = [arm for arm in result if arm.name not in reasons]
        versions = [f"PostgreSQL {cluster.version}"]
        if psql := psql_path(cluster):
            versions.append(_said([psql, "--version"]))
        _timed(bench, next(arm for arm in ARMS if arm.name == ENGINE), 0)  # the first finds no segments of WAL
        runs = list(_rounds(bench, arms, rounds, reasons))
    return Record(
        begin=begin,
        cores=cores,
        kernel=kernel,
        build_hash=build_hash,
        versions=versions,
        runs=runs,
        left_out=[f"{name}: {why}" for name, why in reasons.items()],
    )


def _rounds(bench: Bench, arms: list[Arm], rounds: int, reasons: dict[str, str]) -> Iterator[Run]:
    """Every arm once in each round, in an order that is drawn: what drifts on the machine meets all alike."""
    order = random.Random(SEED)
    for number in range(1, rounds + 1):
        turns = [arm for arm in arms if arm.name not in reasons]
        order.shuffle(turns)
        for arm in turns:
            try:
                run = _timed(bench, arm, number)
            except PgdynoError as error:
                if arm.ours:
                    raise
                reasons[arm.name] = f"it failed: {error.message[-200:]}"
                continue
            rate = run.megabytes / run.seconds
            text = f"{rate:.0f} MB/s; {run.loaded_s:.2f} + {run.checkpoint_s:.2f} s"
            cpu = f"CPU of the server {run.server_cpu_s:.2f} s, of the client {run.client_cpu_s:.2f} s"
            print(f"{number}/{rounds} {arm.name}: {text}; {cpu}", file=sys.stderr, flush=True)
            yield run


def _timed(bench: Bench, arm: Arm, number: int) -> Run:
    """One load into an empty table, and the CHECKPOINT after it. :class:`PgdynoError` when rows are missing or doubled."""
    file = bench.files[arm.file]
    with bench.cluster.connect(autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS t; DROP SCHEMA IF EXISTS pgdyno_load CASCADE")
        connection.execute(f"{LEDGER if arm.ledger else ''}; {file.table}".encode())
        connection.execute("CHECKPOINT")
        cpu_s, begun = server_cpu_s(bench.cluster), time.monotonic()
        done = arm.load(bench, file.path)
        loaded_s = time.monotonic() - begun
        cpu_s, begun = server_cpu_s(bench.cluster) - cpu_s, time.monotonic()
        connection.execute("CHECKPOINT")
        checkpoint_s = time.monotonic() - begun
        result = connection.execute("SELECT count(*), sum(id)::bigint FROM t").fetchone()
    if result != (file.rows, file.rows * (file.rows - 1) // 2):
        raise PgdynoError(
            f"the table has (rows, sum of ids) {result}, and the file {file.rows} rows", remedy="run it alone"
        )
    return Run(
        arm=arm.name,
        round=number,
        megabytes=file.megabytes,
        loaded_s=loaded_s,
        checkpoint_s=checkpoint_s,
        server_cpu_s=cpu_s,
        client_cpu_s=done.client_cpu_s,
        rss_bytes_max=done.rss_bytes_max,
    )


def server_cpu_s(cluster: Cluster) -> float:
    """CPU of the server with all of its processes, also those that have ended."""

    def of(pid: str, fields: slice) -> float:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(ticks) for ticks in stat[fields]) / _TICKS_PER_S

    while True:
        children = Path(f"/proc/{cluster.pid}/task/{cluster.pid}/children").read_text().split()
        # One that ends meanwhile counts among those that the server has waited for: look again.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return of(str(cluster.pid), slice(11, 15)) + sum(of(child, slice(11, 13)) for child in children)


def _said(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60.0)
    return done.stdout.strip().splitlines()[0].split(" (Debian")[0]
