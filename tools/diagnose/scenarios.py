"""Servers and loads in which one limit is made to bind: a draw from a seed.

A :class:`Stand` is a server on emulated volumes; several :class:`Load` run on it in turn, which saves attaching and starting.
Volumes, clients and statements vary within a family, so that a rule that fits one of them alone is found out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgdyno.analysis.binding.consumers import What
from pgdyno.analysis.binding.rules import Limit

FAST = "gp3:iops=16000,throughput=1000"
"""Limits that two cores do not reach."""
SMALL, LARGE = "128MiB", "1GiB"
"""Memory of an instance in which most of the data is read again and again, and of one that holds all of it."""
SCALE = 20
ACCOUNTS = SCALE * 100_000
CONNECTIONS = 60
OLDER = Path("/usr/lib/postgresql/15/bin")
"""Debian's package; the other half runs on the embedded PostgreSQL."""


@dataclass(frozen=True)
class Load:
    """What is asked of a server, and what it is limited by then."""

    limit: Limit
    consumer: What | None = None
    """What is meant to be the largest use of the volume that binds; None where it is not known beforehand."""
    script: str | None = None
    """Statements of a transaction, for pgbench; None where no client sends any."""
    clients: int = 1
    options: tuple[str, ...] = ()
    """Of pgbench."""
    program: str | None = None
    """``pg_basebackup`` or ``pg_dump``, again and again."""
    beside: str | None = None
    """What else goes on: ``others`` (processes that compute), ``copy`` (processes that read the server's files), ``standby`` (a
    synchronous one that is slow), ``full`` (every connection is taken)."""
    control: str | None = None
    """The same without the limit, where the emulator's account does not tell: statements instead, or a setting of the server."""
    without: str | None = None
    """Statements with the consumer on a volume of its own, or switched off; where there are none the whole load is switched off."""


@dataclass(frozen=True)
class Stand:
    """A server, and the loads that it gets one after the other."""

    number: int
    family: str
    older: bool
    """Whether it is Debian's PostgreSQL 15."""
    seed: int
    volumes: dict[str, str]
    memory: str
    loads: tuple[Load, ...]
    instance: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Unique in a draw."""
        return f"{self.number:02d}-{self.family}-{15 if self.older else 18}"

    def keys(self) -> list[str]:
        """The names of its scenarios, unique in a draw."""
        return [f"{self.name}-{place}-{load.limit}" for place, load in enumerate(self.loads)]

    def document(self) -> dict[str, Any]:
        """The experiment that has this server; its own workload is not run, it makes the data set."""
        instance = {"memory": self.memory} | ({} if self.instance is None else {"type": self.instance})
        postgres: dict[str, Any] = {"parameters": {"max_connections": str(CONNECTIONS), **self.parameters}}
        if self.older:
            postgres["bin"] = str(OLDER)
        return {
            "schema_version": 1, "name": "diagnose", "replicates": 1, "seed": self.seed, "world": {"volumes": self.volumes},
            "instance": instance, "postgres": postgres,
            "workload": {"script": "select-only", "scale": SCALE, "clients": 1, "warmup": "1s", "duration": "5s"},
        }  # fmt: skip


def draw(seed: int, rounds: int) -> list[Stand]:
    """Stands of every family in turn, each on both versions; the same for the same seed."""
    stands: list[Stand] = []
    for turn in range(rounds):
        for family, make in FAMILIES.items():
            for older in (False, True):
                number = len(stands)
                stands.append(make(random.Random(f"{seed}:{turn}:{family}:{older}"), number, older, seed + number))
    return stands


def scenarios(stands: list[Stand]) -> Iterator[tuple[str, Stand, Load]]:
    """Every scenario by its key."""
    for stand in stands:
        yield from zip(stand.keys(), [stand] * len(stand.loads), stand.loads, strict=True)


def _some(rng: random.Random, loads: list[Load], count: int) -> tuple[Load, ...]:
    """Some of them in their order: those that write are last, so that no load finds the dirty pages of another."""
    chosen = set(rng.sample(range(len(loads)), min(count, len(loads))))
    return tuple(load for place, load in enumerate(loads) if place in chosen)


READ = f"\\set aid random(1, {ACCOUNTS})\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
CHANGE = f"\\set aid random(1, {ACCOUNTS})\nUPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n"
FEW_PAGES = f"\\set tid random(1, {SCALE * 10})\nUPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = :tid;\n"
"""Each changes a row of its own, in pages that are whole in WAL once a checkpoint: WAL of commits, and hardly anything else."""
LATE = "SET synchronous_commit = off;\n" + FEW_PAGES
VACUUM = "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) pgbench_accounts;\n"
SORT = "SELECT count(*) FROM (SELECT g FROM generate_series(1, 1500000) AS g ORDER BY md5(g::text)) AS sorted;\n"
SPARE = "tablespace.spare"
"""A volume that no limit is reached on, for the controls that move a consumer to a volume of its own."""


def _scan(rows: int) -> str:
    return (
        f"\\set first random(1, {ACCOUNTS - rows})\n"
        f"SELECT sum(abalance) FROM pgbench_accounts WHERE aid >= :first AND aid < :first + {rows};\n"
    )


WHOLE = "SET enable_indexscan = off;\nSELECT sum(abalance) FROM pgbench_accounts;\n"


def _new(tablespace: str) -> str:
    """New rows without WAL, which is about as large as they are."""
    return (
        f"CREATE UNLOGGED TABLE IF NOT EXISTS {tablespace}_:client_id (a int, b text) TABLESPACE {tablespace};\n"
        f"INSERT INTO {tablespace}_:client_id SELECT g, repeat('x', 900) FROM generate_series(1, 20000) AS g;\n"
    )


def _reads(rng: random.Random, limit: Limit) -> Load:
    return Load(limit, "reads", READ, rng.choice([8, 16, 24]))


def _mixed(rng: random.Random, limit: Limit) -> Load:
    return Load(limit, None, READ + CHANGE if rng.random() < 0.5 else CHANGE, rng.choice([8, 16]))


def _iops(rng: random.Random, number: int, older: bool, seed: int) -> Stand:
    volume = rng.choice(["io2bx:iops={}", "io1:iops={}"]).format(rng.choice([300, 500, 800]))
    loads = [
        _reads(rng, "volume_iops"),
        Load("volume_iops", "vacuum", VACUUM),
        Load("volume_iops", "reads", _scan(rng.choice([50, 200])), rng.choice([8, 16])),
        Load("volume_iops", "scans", program="pg_dump"),
        Load("volume_iops", "commits", FEW_PAGES, rng.choice([8, 16]), without=LATE),
        _mixed(rng, "volume_iops"),
    ]
    return Stand(number, "iops", older, seed, {"data": volume}, SMALL, _some(rng, loads, 4))


def _throughput(rng: random.Random, number: int, older: bool, seed: int) -> Stand:
    volume = rng.choice(["gp3:iops=16000,throughput=125", "gp3:iops=8000,throughput=150"])
    loads = [
        Load("volume_throughput", "scans", WHOLE, rng.choice([4, 8])),
        Load("volume_throughput", "reads", _scan(rng.choice([20_000, 60_000])), rng.choice([4, 8])),
        Load("volume_throughput", "backup_and_replication", program="pg_basebackup"),
        Load("volume_throughput", "not_explained", READ, 2, beside="copy", without=READ),
        Load("volume_throughput", "temporary_files", SORT, rng.choice([4, 6]), without="SET temp_tablespaces = spare;\n" + SORT),
        Load("volume_throughput", "new_data", _new("pg_default"), rng.choice([2, 4]), without=_new("spare")),
    ]  # fmt: skip
    parameters = {"synchronize_seqscans": "off", "max_parallel_workers_per_gather": "0"}
    return Stand(
        number,
        "throughput",
        older,
        seed,
        {"data": volume, SPARE: FAST},
        SMALL,
        _some(rng, loads, 5),
        parameters=parameters,
    )


def _burst(rng: random.Random, number: int, older: bool, seed: int) -> Stand:
    volume = f"gp2:size={rng.choice([40, 80, 120, 200])}GiB,credits=0"
    loads = [_reads(rng, "burst_bucket"), Load("burst_bucket", "vacuum", VACUUM), _mixed(rng, "burst_bucket")]
    return Stand(number, "burst", older, seed, {"data": volume}, SMALL, _some(rng, loads, 3))


def _instance(rng: random.Random, number: int, older: bool, seed: int) -> Stand:
    loads = [
        Load("instance_bandwidth", "reads", _scan(rng.choice([20_000, 60_000])), rng.choice([4, 8])),
        Load("instance_bandwidth", "scans", WHOLE, rng.choice([4, 8])),
    ]
    volumes = rng.choice([{"data": FAST}, {"data": FAST, "wal": FAST}])
    kind = rng.choice(["i3.large", "r4.large", "m4.large"])
    # With as little as 128 MiB bring, the scans throw the catalogs out of memory before the watch has read them.
    parameters = {"synchronize_seqscans": "off", "max_parallel_workers_per_gather": "0", "shared_buffers": "64MB"}
    return Stand(number, "instance", older, seed, volumes, SMALL, _some(rng, loads, 2), kind, parameters)


def _latency(rng: random.Random, number: int, older: bool, seed: int) -> Stand:
    volume = rng.choice([FAST, "gp3:iops=8000", "io1:size=200GiB,iops=8000"])
    loads = [Load("volume_latency", "reads", READ, clients) for clients in (1, 2, 3)]
    return Stand(number, "latency", older, seed, {"data": volume}, "96MiB", _some(rng, loads, 2))


def _cached(rng: random.Random, number: int, older: bool, seed: int) -> Stand:
    """All data in memory: everything that is no limit of a volume."""
    hold_ms = rng.choice([3, 6, 15])
    held = (
        f"BEGIN;\nUPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = {{}};\n\\sleep {hold_ms} ms\nEND;\n"
    )
    pause = f"\\sleep {rng.choice([20, 60, 150])} ms\n"
    compute = "SELECT sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN {0} AND {0} + 4000;\n".format(
        rng.randrange(1, 100_000)
    )
    loads = [
        Load("commit_latency", "commits", FEW_PAGES, rng.choice([1, 2, 4]), control=LATE),
        Load("locks", None, held.format(1), rng.choice([12, 24]), control=f"\\set bid random(1, {SCALE})\n" + held.format(":bid")),
        Load("server_cpu", None, compute, rng.choice([6, 12])),
        Load("client", None, pause + READ, rng.choice([3, 8])),
        Load("client", None, None),
        Load("client", None, READ, 4, ("--rate", str(rng.choice([30, 90])))),
        Load("harness", None, compute, rng.choice([2, 4]), beside="others"),
        Load("synchronous_standby", None, FEW_PAGES, rng.choice([2, 6]), beside="standby"),
        Load("connections", None, None, beside="full"),
    ]  # fmt: skip
    volumes = rng.choice([{"data": FAST}, {"data": FAST, "wal": "gp3:iops=8000"}])
    return Stand(number, "cached", older, seed, volumes, LARGE, tuple(loads))


def _checkpoints(rng: random.Random, number: int, older: bool, seed: int) -> Stand:
    parameters = {"max_wal_size": rng.choice(["48MB", "64MB"]), "min_wal_size": "32MB", "shared_buffers": "512MB"}
    volume = rng.choice(["gp3", "gp3:iops=4000"])
    loads = (Load("checkpoints", None, CHANGE, rng.choice([12, 20]), control="ALTER SYSTEM SET max_wal_size = '4GB'"),)
    return Stand(number, "checkpoints", older, seed, {"data": volume}, LARGE, loads, parameters=parameters)


def _wal(rng: random.Random, number: int, older: bool, seed: int) -> Stand:
    volumes = {"data": FAST, "wal": f"io2bx:iops={rng.choice([200, 400])}"}
    loads = [Load("volume_iops", "commits", FEW_PAGES, clients, without=LATE) for clients in (4, 8, 16)]
    return Stand(number, "wal", older, seed, volumes, LARGE, _some(rng, loads, 2))


FAMILIES: dict[str, Callable[[random.Random, int, bool, int], Stand]] = {
    "iops": _iops,
    "throughput": _throughput,
    "burst": _burst,
    "instance": _instance,
    "latency": _latency,
    "cached": _cached,
    "checkpoints": _checkpoints,
    "wal": _wal,
}
