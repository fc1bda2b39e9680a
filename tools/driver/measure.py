"""Measures the record: pairs of runs in turns on one server, the driver alone, its memory over minutes."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING

from pgdyno.base import engine
from pgdyno.server.binaries import find_binaries
from pgdyno.server.throwaway import throwaway
from pgdyno.workload.fill import load as load_pgbench
from pgdyno.workload.server import environment
from pgdyno.workload.tables import PgbenchTables
from tools.driver import process
from tools.driver.load import LOADS, SCALE, Load, Run, Tool, missing, native, prepare_sysbench, run_of, transactions_in
from tools.driver.record import Idle, Memory, Pair, Record, Sample
from tools.measured import here, now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

SEED = 20261122
WARM_S = 2
"""One run of each tool before the pairs: caches are full, and tables have been visited."""
PREPARE_S = 60.0
IDLE_RATES_PER_S = (200_000, 1_000_000)
"""What the driver must be able to schedule on one core, and more than it can."""
IDLE_S = 3
MEMORY_LOAD = LOADS[1]
_SETTINGS = {"shared_buffers": "256MB", "synchronous_commit": "off", "max_wal_size": "4GB"}
"""What commits and checkpoints cost on this machine's disk is of no interest here."""


def measure(seconds: int, pairs: int, minutes: float) -> Record:
    """All of it: ``pairs`` of runs of ``seconds`` for each load, and ``minutes`` of watching memory."""
    begin = now()
    cores, kernel, build_hash = here()
    left_out = [f"{load.name}: {why}" for load in LOADS if (why := missing(load.original)) is not None]
    loads = [load for load in LOADS if missing(load.original) is None]
    with _server(loads) as cluster:
        versions = _versions(cluster, loads)
        measured = list(_pairs(cluster, loads, seconds, pairs))
        idle = [_idle(rate) for rate in IDLE_RATES_PER_S]
        memory = _memory(cluster, minutes)
    return Record(
        begin=begin,
        cores=cores,
        kernel=kernel,
        build_hash=build_hash,
        versions=versions,
        seconds=seconds,
        pairs=measured,
        left_out=left_out,
        idle=idle,
        memory=memory,
    )


@contextlib.contextmanager
def _server(loads: list[Load]) -> Iterator[Cluster]:
    """The embedded PostgreSQL with the tables of all loads, gone afterwards."""
    with throwaway(find_binaries(None), _SETTINGS) as cluster:
        load_pgbench(cluster, PgbenchTables(SCALE))
        if any(load.original == "sysbench" for load in loads):
            process.run(Run(prepare_sysbench(cluster), b""), environment(cluster), PREPARE_S)
        with cluster.connect() as connection:
            connection.execute("VACUUM ANALYZE")
        yield cluster


def _versions(cluster: Cluster, loads: list[Load]) -> list[str]:
    versions = [f"PostgreSQL and pgbench {cluster.version}"]
    if any(load.original == "sysbench" for load in loads):
        process = subprocess.run(
            ["sysbench", "--version"], capture_output=True, text=True, check=True, timeout=PREPARE_S
        )
        versions.append(process.stdout.strip())
    return versions


def _pairs(cluster: Cluster, loads: list[Load], seconds: int, pairs: int) -> Iterator[Pair]:
    """Loads in turns, each pair in an order that is drawn: what drifts on the machine meets both alike."""
    order = random.Random(SEED)
    for load in loads:
        for tool in ("pgdyno", load.original):
            _sample(cluster, load, tool, WARM_S, SEED)
    for number in range(pairs):
        for load in loads:
            native_first = order.random() < 0.5
            tools: tuple[Tool, Tool] = ("pgdyno", load.original) if native_first else (load.original, "pgdyno")
            samples = {tool: _sample(cluster, load, tool, seconds, SEED + number) for tool in tools}
            pair = Pair(
                load=load.name, native=samples["pgdyno"], original=samples[load.original], native_first=native_first
            )
            text = f"{pair.native.cpu_us:.1f} µs, {load.original} {pair.original.cpu_us:.1f} µs, {pair.ratio:.3f}"
            print(f"{number + 1}/{pairs} {load.name}: {text}", file=sys.stderr, flush=True)
            yield pair


def _sample(cluster: Cluster, load: Load, tool: Tool, seconds: int, seed: int) -> Sample:
    ended = process.run(run_of(load, tool, cluster, seconds, seed), environment(cluster), seconds)
    return Sample(cpu_s=ended.cpu_s, transactions=transactions_in(tool, ended.printed))


def _idle(rate_per_s: int) -> Idle:
    ended = process.run(
        Run([str(engine.checked()), "drive"], native("idle", IDLE_S, SEED, rate_per_s=rate_per_s)), {}, IDLE_S
    )
    summary = json.loads(ended.printed.splitlines()[-1])["summary"]
    return Idle(
        rate_per_s=rate_per_s,
        scheduled=summary["scheduled_with_warmup"],
        succeeded=summary["succeeded"],
        cpu_s=summary["cpu_ns"] / 1e9,
        duration_s=IDLE_S,
        lag_us_p99=summary["lag_us"]["p99"],
    )


def _memory(cluster: Cluster, minutes: float) -> Memory:
    """What the driver holds each time that it tells of a second."""
    wanted = run_of(MEMORY_LOAD, "pgdyno", cluster, max(1, round(minutes * 60)), SEED)
    resident: list[int] = []
    pipe = subprocess.PIPE
    running = subprocess.Popen(wanted.command, stdin=pipe, stdout=pipe, env=environment(cluster))
    try:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(wanted.given)
        running.stdin.close()
        for line in running.stdout:
            if line.startswith(b'{"second"'):
                resident.extend(process.resident_kib(running.pid))
        running.wait(process.GRACE_S)
    finally:
        running.kill()
        running.wait()
    return Memory(resident_kib=resident)
