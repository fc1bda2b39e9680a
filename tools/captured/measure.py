"""Measures the record: a log is read, the driver is recorded, its statements are replayed beside it."""

from __future__ import annotations

import contextlib
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.base import endpoint, engine
from pgdyno.base.errors import PgdynoError
from pgdyno.capture.replay import replay
from pgdyno.server.binaries import find_binaries
from pgdyno.server.throwaway import throwaway
from pgdyno.workload.fill import load as load_pgbench
from pgdyno.workload.server import environment, pgbench_path
from pgdyno.workload.tables import PgbenchTables
from tools.captured import log, peer, production
from tools.captured.logged import SUPERUSER
from tools.captured.record import Reading, Record, Relayed, Sent
from tools.driver import process
from tools.driver.load import LOADS, SCALE, Load, Run, native, transactions_in
from tools.driver.record import Memory, Pair, Sample
from tools.measured import here, now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pgdyno.server.cluster import Cluster

SEED = 20261126
REPLAYED = tuple(load for load in LOADS if load.original == "pgbench")
"""Those of the driver's loads that have pgbench's tables."""
STATEMENTS = {"select-only": 1, "tpcb-like": 7}
"""Of each transaction."""
MEGABYTES = 150
LANES = 2000
LANES_PER_S = 2000.0
LANES_S = 10.0
MEMORY_PER_S = 500.0
ACCOUNTS = SCALE * 100_000
IDLE_SPEED = 0.25
FASTEST = 1000.0
WARM_S = 2
OTHERS_S = 2.0
"""For how long it is watched what other processes take."""
RELAYED_TIMES = 2
"""How much longer clients take for as many statements through a relay, on two cores."""
LATENCY_S = 4
"""How long one client asks, for the relay's part of a latency."""
_SETTINGS = {
    "shared_buffers": "256MB",
    "synchronous_commit": "off",
    "max_wal_size": "4GB",
    "max_connections": str(LANES + 100),
}
"""What commits and checkpoints cost on this machine's disk is of no interest here."""
_ALONE = """
import json, os, sys, time
begin = time.monotonic()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(json.dumps([usage.ru_utime + usage.ru_stime, usage.ru_maxrss, time.monotonic() - begin]), file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Runs a program as the child of a small one: Linux counts what its parent held before it was executed into its peak."""


def measure(seconds: int, pairs: int, minutes: float) -> Record:
    """All of it: ``pairs`` of runs of ``seconds`` for each load, and ``minutes`` of watching memory."""
    begin, before = now(), _other_cores()
    cores, kernel, build_hash = here()
    with tempfile.TemporaryDirectory(prefix="pgdyno-captured-") as name:
        folder = Path(name)
        reading = read(folder, MEGABYTES)
        with throwaway(find_binaries(None), _SETTINGS) as cluster:
            load_pgbench(cluster, PgbenchTables(SCALE))
            with cluster.connect() as connection:
                connection.execute("VACUUM ANALYZE")
            captures = _recorded(cluster, folder, seconds)
            direct_ms, relayed_ms = _latencies(cluster, folder)
            measured = list(_pairs(cluster, captures, seconds, pairs))
            select = captures[REPLAYED[0].name]
            fastest, _ = _sent(cluster, select.closed, FASTEST)
            idle, _ = _sent(cluster, select.timed, IDLE_SPEED)
            many, _ = _sent(cluster, _lookups(cluster, folder, LANES, LANES_PER_S, LANES_S))
            others = max(before, _other_cores())
            _, memory = _sent(cluster, _lookups(cluster, folder, 8, MEMORY_PER_S, 60 * minutes))
            version = str(cluster.version)
        beside = peer.beside(folder)
    return Record(
        begin=begin,
        cores=cores,
        kernel=kernel,
        build_hash=build_hash,
        versions=[f"PostgreSQL and pgbench {version}"],
        seconds=seconds,
        other_cores=others,
        reading=reading,
        pairs=[closed for closed, _ in measured],
        timed=[timed for _, timed in measured],
        fastest=fastest,
        idle=idle,
        many=many,
        memory=Memory(resident_kib=memory),
        relayed=[captures[load.name].relayed for load in REPLAYED],
        direct_ms=direct_ms,
        relayed_ms=relayed_ms,
        beside=beside,
    )


def read(folder: Path, megabytes: int) -> Reading:
    """Read a log of that size into a capture."""
    source, output = folder / "large.csv", folder / "large.capture"
    size = log.large(source, megabytes)
    data = json.dumps({"logs": [str(source)], "output": str(output)}).encode() + b"\n"
    command = [sys.executable, "-S", "-c", _ALONE, str(engine.checked()), "capture", "read"]
    done = subprocess.run(command, input=data, capture_output=True, timeout=600, check=False)
    if done.returncode != 0:
        raise PgdynoError(f"the log was not read: {done.stderr.decode()[-500:]}", remedy="run the command by itself")
    cpu_s, peak_kib, took_s = json.loads(done.stderr.splitlines()[-1])
    source.unlink()
    return Reading(megabytes=size, cpu_s=cpu_s, took_s=took_s, peak_kib=peak_kib)


@contextlib.contextmanager
def _recording(cluster: Cluster, output: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The port of a relay that records, and its summary once it has ended."""
    order = {
        "listen": "127.0.0.1:0",
        "to": str(cluster.socket_dir / f".s.PGSQL.{cluster.port}"),
        "name": "bench",
        "output": str(output),
        "ends_with_stdin": True,
    }
    document: dict[str, Any] = {}
    spawned = engine.spawn(["capture", "record"], order, log=output.with_suffix(".err"), keep_stdin=True)
    try:
        yield int(spawned.ready["port"]), document
        spawned.close_stdin()
        assert spawned.process.stdout is not None
        for line in spawned.process.stdout:
            document |= json.loads(line).get("summary", {})
    finally:
        spawned.process.kill()
        spawned.process.wait()
    if not document:
        raise spawned.failure()


@dataclass(frozen=True)
class _Captures:
    """What the driver sent of a load, recorded by a relay."""

    closed: Path
    """Statement after statement: about as many as the driver sends in a run, as both take more CPU a statement in the beginning."""
    timed: Path
    """At a rate."""
    relayed: Relayed
    """What it took to record that."""


def _recorded(cluster: Cluster, folder: Path, seconds: int) -> dict[str, _Captures]:
    """Captures of each load as the driver sends it."""
    captures = {}
    for load in REPLAYED:
        closed, timed = (folder / f"{load.name}-{how}.capture" for how in ("closed", "timed"))
        _record(cluster, load, RELAYED_TIMES * seconds, closed)
        document = _record(cluster, load, seconds, timed, rate_per_s=load.rate_per_s)
        relayed = Relayed(load=load.name, statements=document["account"]["calls"], cpu_s=document["cpu_s"])
        captures[load.name] = _Captures(closed, timed, relayed)
    return captures


def _record(
    cluster: Cluster, load: Load, seconds: int, output: Path, rate_per_s: float | None = None
) -> dict[str, Any]:
    """The relay's summary."""
    with _recording(cluster, output) as (port, results):
        driver = _driver(cluster, load, seconds, SEED, port, rate_per_s=rate_per_s)
        process.run(driver, environment(cluster), seconds)
    return results


def _driver(
    cluster: Cluster, load: Load, seconds: int, seed: int, port: int | None = None, rate_per_s: float | None = None
) -> Run:
    """The driver with a load, over the server's socket, or by a port of this machine."""
    dsn = cluster.dsn if port is None else f"host=127.0.0.1 port={port} dbname={cluster.database} user={cluster.role}"
    workload = {"pgbench": {"scripts": [{"builtin": load.name}], "scale": SCALE}}
    arrivals = {} if rate_per_s is None else {"rate_per_s": rate_per_s}
    document = native(workload, seconds, seed, endpoint.local(dsn), **arrivals)
    return Run([str(engine.checked()), "drive"], document)


def _pairs(cluster: Cluster, captures: dict[str, _Captures], seconds: int, pairs: int) -> Iterator[tuple[Pair, Pair]]:
    """Loads in turns: a pair with nothing to wait for but answers, and one at recorded times beside arrivals at the same rate."""
    order = random.Random(SEED)
    for load in REPLAYED:
        _driven(cluster, load, WARM_S, SEED)
    for number in range(pairs):
        for load in REPLAYED:
            capture, seed = captures[load.name], SEED + number
            closed = partial(_driven, cluster, load, seconds, seed)
            arriving = partial(_driven, cluster, load, seconds, seed, rate_per_s=load.rate_per_s)
            fastest = partial(_replayed, cluster, capture.closed, FASTEST)
            timed = partial(_replayed, cluster, capture.timed)
            results = [_pair(load, fastest, closed, order), _pair(load, timed, arriving, order)]
            for pair, what in zip(results, ("as fast as it can", "at recorded times"), strict=True):
                text = f"{pair.native.cpu_us:.1f} µs, the driver {pair.original.cpu_us:.1f} µs, {pair.ratio:.3f}"
                print(f"{number + 1}/{pairs} {load.name}, {what}: {text}", file=sys.stderr, flush=True)
            yield results[0], results[1]


def _pair(load: Load, replayed: Callable[[], Sample], driven: Callable[[], Sample], order: random.Random) -> Pair:
    """Both, in an order that is drawn: what drifts on the machine meets both alike."""
    replay_first = order.random() < 0.5
    samples = [item() for item in ((replayed, driven) if replay_first else (driven, replayed))]
    native, original = samples if replay_first else samples[::-1]
    return Pair(load=load.name, native=native, original=original, native_first=replay_first)


def _driven(cluster: Cluster, load: Load, seconds: int, seed: int, rate_per_s: float | None = None) -> Sample:
    ended = process.run(_driver(cluster, load, seconds, seed, rate_per_s=rate_per_s), environment(cluster), seconds)
    return Sample(cpu_s=ended.cpu_s, transactions=transactions_in("pgdyno", ended.printed) * STATEMENTS[load.name])


def _replayed(cluster: Cluster, capture: Path, speed: float = 1.0) -> Sample:
    sent, _ = _sent(cluster, capture, speed)
    return Sample(cpu_s=sent.cpu_s, transactions=sent.statements)


def _sent(cluster: Cluster, capture: Path, speed: float = 1.0) -> tuple[Sent, list[int]]:
    """A replay, and what its engine held, second by second."""
    pids: list[int] = []
    resident: list[int] = []
    summary = replay(
        str(capture),
        cluster.dsn,
        speed=speed,
        allowed=SUPERUSER,
        progress=lambda *_: resident.extend(process.resident_kib(pids[0])),
        started=pids.append,
    ).summary
    sent = Sent(
        lanes=summary["lanes"],
        statements=summary["executed"],
        newly_failed=summary["newly_failed"],
        cpu_s=summary["cpu_s"],
        took_s=summary["took_s"],
        late_us_p99=summary["late_us"]["p99"],
        peak_kib=max(resident, default=0),
    )
    return sent, resident


def _lookups(cluster: Cluster, folder: Path, sessions: int, per_s: float, seconds: float) -> Path:
    """A capture of sessions that look rows up."""
    source, output = folder / f"{sessions}.csv", folder / f"{sessions}.capture"
    log.lookups(source, (cluster.role, cluster.database), sessions, per_s, seconds, ACCOUNTS)
    production.read(source, output)
    source.unlink()
    return output


def _latencies(cluster: Cluster, folder: Path) -> tuple[float, float]:
    """Milliseconds of a lookup that one client of pgbench sends after the other: by the server's socket, and through a relay."""
    direct = _latency(cluster, {})
    with _recording(cluster, folder / "latency.capture") as (port, _):
        through = _latency(cluster, {"PGHOST": "127.0.0.1", "PGPORT": str(port)})
    return direct, through


def _latency(cluster: Cluster, where: dict[str, str]) -> float:
    command = [str(pgbench_path(cluster)), "-n", "-c", "1", "-M", "prepared", "-S", "-T", str(LATENCY_S)]
    ended = process.run(Run(command, b""), environment(cluster) | where, LATENCY_S)
    match = re.search(r"latency average = ([\d.]+) ms", ended.printed)
    if match is None:
        raise PgdynoError(f"pgbench did not say its latency: {ended.printed[-500:]}", remedy="run it alone")
    return float(match[1])


def _other_cores() -> float:
    """Cores that are in use while this process waits."""
    first = _busy()
    time.sleep(OTHERS_S)
    busy, total = (later - earlier for earlier, later in zip(first, _busy(), strict=True))
    return busy / total * here()[0] if total else 0.0


def _busy() -> tuple[int, int]:
    """Ticks of all cores: those in use, and all."""
    user, nice, system, idle, iowait, *others = (
        int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    )
    busy = user + nice + system + sum(others)
    return busy, busy + idle + iowait
