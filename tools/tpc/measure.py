"""Measures the record: each figure in pairs of turns on one server, and what is there already is not measured again."""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.base import engine as _engine
from pgdyno.base.endpoint import local
from pgdyno.kinds.tpch.queries import QUERIES, Streams
from pgdyno.kinds.tpch.run import QueryStreamsRunner
from pgdyno.machine import paths
from pgdyno.server.binaries import find_binaries
from pgdyno.server.throwaway import throwaway
from pgdyno.workload.fill import fill
from pgdyno.workload.outcome import RunRequest
from pgdyno.workload.server import environment
from pgdyno.workload.tables import TpccTables, TpchTables
from tools.driver import process
from tools.driver.load import Run, transactions_in
from tools.driver.record import Pair, Sample
from tools.equivalence.workloads import WORKLOADS, Length
from tools.tpc import before, beside, installed, loads, memory, nopm
from tools.tpc.record import ALONE, Apart, Beside, LoadPair, Loads, Queries, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.server.cluster import Cluster

SEED = 20261125
CLIENTS = 4
SECONDS = 8
STREAMS = 10
SCALE_FACTOR = 1.0
"""Of the streams, as of the load. At 0.1 all 220 queries end in 8 s, and what begins the process is most of its CPU."""
STREAMS_S = 1800.0
TPCC = next(item for item in WORKLOADS if item.name == "tpcc")
_SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "1h", "synchronous_commit": "off"}
"""On memory: what this machine's disk costs is of no interest here, and no checkpoint falls into one load and not the other."""


def measure(path: Path, pairs: int) -> Record:
    """All that the record at ``path`` lacks; parts that are measured alone are kept."""
    record = Record.here(find_binaries(None).version)
    kept = Record.load(path)
    if kept is not None:
        same = kept.build_hash == record.build_hash
        record = kept if same else record.model_copy(update={part: getattr(kept, part) for part in ALONE})
    with throwaway(find_binaries(None), _SETTINGS, paths.image_dir()) as cluster:
        for name, tables in loads.LOADS.items():
            if name not in record.loads:
                record.loads[name] = _loads(cluster, name, tables, pairs)
                record.save(path)
        if not record.driver:
            record.driver, record.driver_kib = _driver(cluster, pairs)
            record.save(path)
        if record.queries is None:
            record.queries = _queries(cluster)
            record.save(path)
    return record


def over_time(path: Path, minutes: float) -> Record:
    """The record at ``path`` with the driver's memory in a run of so many minutes."""
    begun = Apart.now()
    with throwaway(find_binaries(None), _SETTINGS, paths.image_dir()) as cluster:
        result = memory.measure(cluster, minutes, SEED)
    return _kept(path, "memory over time", begun, driver_minutes_kib=result)


def against_older(path: Path, older: str, pairs: int) -> Record:
    """The record at ``path`` with loads by an older engine and by today's."""
    engine, begun = before.Engine.named(older), Apart.now()
    with throwaway(find_binaries(None), _SETTINGS, paths.image_dir()) as cluster:
        result = before.measure(cluster, engine, pairs, SEED)
    return _kept(path, "loads against an older engine", begun, before=result)


def beside_hammerdb(path: Path, pairs: int, bounds: Sequence[str]) -> Record:
    """The record at ``path`` with what an installed HammerDB does, and so many further pairs of runs for each of the ``bounds``.

    Pairs that were made before, with the same version, stay.
    """
    begun = Apart.now()
    with throwaway(find_binaries(None), beside.SETTINGS, paths.image_dir()) as cluster:
        result = Beside(version=installed.build(cluster), types=beside.types(cluster, SEED))
        kept = Record.load(path)
        if kept is not None and kept.hammerdb is not None and kept.hammerdb.version == result.version:
            result.nopm = kept.hammerdb.nopm
        record = _kept(path, "beside HammerDB", begun, hammerdb=result)
        for bound in bounds if pairs else ():
            cluster.stop()
            cluster.start(beside.SETTINGS | nopm.BOUNDS[bound].settings)
            there = sum(pair.bound == bound for pair in result.nopm)
            for pair in nopm.measure(cluster, bound, pairs, SEED + there):
                result.nopm.append(pair)
                record = _kept(path, "beside HammerDB", begun, hammerdb=result)
    return record


def _kept(path: Path, part: str, begun: Apart, **measured: Any) -> Record:
    """The record at ``path`` with a part that was measured alone. It is read now: others may have been measured meanwhile."""
    record = Record.load(path) or Record.here(find_binaries(None).version)
    record = record.model_copy(update=measured | {"apart": record.apart | {part: begun}})
    record.save(path)
    return record


def _loads(cluster: Cluster, name: str, tables: TpccTables | TpchTables, pairs: int) -> Loads:
    order, results = random.Random(SEED), []
    loads.fill(cluster, tables, "source")
    with loads.ready(cluster, tables, "source") as files:
        for number in range(pairs):
            native_first = order.random() < 0.5
            seconds: dict[bool, float] = {}
            peak_kib = 0
            for native in (native_first, not native_first):
                if native:
                    seconds[native], peak_kib = loads.fill(cluster, tables, "loaded")
                else:
                    seconds[native] = files.copy(cluster, "loaded")
            pair = LoadPair(native_s=seconds[True], copy_s=seconds[False], native_first=native_first, peak_kib=peak_kib)
            _tell(f"{number + 1}/{pairs} {name}: {pair.native_s:.1f} s, COPY {pair.copy_s:.1f} s")
            results.append(pair)
    with cluster.connect() as connection:
        for database in ("source", "loaded"):
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())
    return Loads(tables=str(tables), pairs=results)


def _driver(cluster: Cluster, pairs: int) -> tuple[list[Pair], list[int]]:
    """The five routines by pgbench and by our driver, in turns on one database, whose growth meets both alike."""
    assert TPCC.filled is not None
    fill(cluster, TPCC.filled)
    order, results, peaks = random.Random(SEED), [], []
    for number in range(pairs + 1):
        native_first = order.random() < 0.5
        samples: dict[bool, Sample] = {}
        for native in (native_first, not native_first):
            length = Length(CLIENTS, SECONDS if number else 2)
            if native:
                document = TPCC.native(SEED + number, length) | {"server": local(cluster.dsn).order("pgdyno drive")}
                wanted = Run([str(_engine.checked()), "drive"], json.dumps(document).encode() + b"\n")
            else:
                wanted = Run(TPCC.command(Path(cluster.binaries.program("pgbench")), SEED + number, length), b"")
            ended = process.run(wanted, environment(cluster), SECONDS)
            many = transactions_in("pgdyno" if native else "pgbench", ended.printed)
            samples[native] = Sample(cpu_s=ended.cpu_s, transactions=many)
            peaks += [ended.peak_kib] if native else []
        pair = Pair(load=TPCC.name, native=samples[True], original=samples[False], native_first=native_first)
        _tell(f"{number}/{pairs} driver: {pair.native.cpu_us:.1f} µs, pgbench {pair.original.cpu_us:.1f} µs")
        # The first is for caches.
        results += [pair] if number else []
    return results, peaks


def _queries(cluster: Cluster) -> Queries:
    fill(cluster, TpchTables(SCALE_FACTOR, "hammerdb"))
    streams = Streams("hammerdb", SCALE_FACTOR, STREAMS, 1, tuple(QUERIES), 2, SEED)
    with tempfile.TemporaryDirectory(prefix="pgdyno-tpc-") as folder:
        outcome = QueryStreamsRunner(streams)(cluster, RunRequest(STREAMS_S, Path(folder)))
    driver = outcome.driver
    assert driver.cpu_ns is not None and driver.elapsed_ns is not None
    queries = Queries(
        streams=STREAMS,
        scale_factor=SCALE_FACTOR,
        queries=outcome.account.succeeded,
        cpu_s=driver.cpu_ns / 1e9,
        elapsed_s=driver.elapsed_ns / 1e9,
    )
    _tell(
        f"{queries.queries} queries at scale factor {queries.scale_factor:g} in {queries.elapsed_s:.0f} s, {queries.cpu_s:.2f} s of CPU on {os.cpu_count()} cores"
    )
    return queries


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
