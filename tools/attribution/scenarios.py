"""Runs in which one limit is made to bind: eleven families, each drawn from the seed.

Volumes, workloads, clients and settings vary within a family, so that a rule that fits one of them alone is found out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pgdyno.analysis.binding.rules import OF_RUNS, Limit

WARM_UP = "4s"
DURATION = "12s"
FAST = "gp3:iops=16000,throughput=1000"
"""Limits that two cores do not reach."""
ROWS_A_SCALE = 100_000
DRIVER_LINES = 400
"""Lines of arithmetic that a driver's thread computes for each statement."""


@dataclass(frozen=True)
class Scenario:
    """One run and the limit that was made to bind in it."""

    number: int
    truth: Limit
    document: dict[str, Any]
    control: str | None = None
    """A value of max_wal_size that takes the limit away; None where the emulator's own account can tell."""

    @property
    def key(self) -> str:
        """Its name, unique in a draw."""
        return f"{self.number:03d} {self.truth}"


def draw(seed: int, count: int) -> list[Scenario]:
    """So many scenarios, each limit in turn; the same for the same seed."""
    drawn = []
    for number in range(count):
        truth = OF_RUNS[number % len(OF_RUNS)]
        rng = random.Random(f"{seed}:{number}")
        document = _FAMILIES[truth](rng)
        control = "4GB" if truth == "checkpoints" else None
        drawn.append(Scenario(number, truth, _whole(document, seed + number), control))
    return drawn


def _whole(parts: dict[str, Any], seed: int) -> dict[str, Any]:
    workload = {"warmup": WARM_UP, "duration": DURATION, **parts["workload"]}
    return {"schema_version": 1, "name": "attribution", "replicates": 1, "seed": seed, **parts, "workload": workload}


def _random_io(rng: random.Random, clients: tuple[int, ...] = (8, 16, 24)) -> dict[str, Any]:
    """Eight times as much data as memory, and transactions of a few pages."""
    return {
        "script": rng.choice(["tpcb-like", "simple-update", "select-only", "select-only@2,tpcb-like@1"]),
        "scale": rng.choice([20, 30]),
        "clients": rng.choice(clients),
    }


def _scans(rng: random.Random) -> dict[str, Any]:
    """Reads of many pages in sequence."""
    rows = rng.choice([20_000, 60_000])
    text = (
        f"\\set first random(1, {ROWS_A_SCALE} * :scale - {rows})\n"
        f"SELECT sum(abalance) FROM pgbench_accounts WHERE aid >= :first AND aid < :first + {rows};\n"
    )
    return {"kind": "script", "files": [_file("scan.sql", text)], "scale": 30, "clients": rng.choice([4, 8])}


def _file(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "text": text, "weight": 1}


def _volume_iops(rng: random.Random) -> dict[str, Any]:
    volume = rng.choice(["io2bx:iops={}", "io1:iops={}"]).format(rng.choice([250, 400, 600, 900]))
    return {"world": {"volume": volume}, "instance": {"memory": "128MiB"}, "workload": _random_io(rng)}


def _volume_throughput(rng: random.Random) -> dict[str, Any]:
    volume = rng.choice(["gp3:iops=16000,throughput=125", "gp3:iops=8000,throughput=150"])
    return {
        "world": {"volume": volume},
        "instance": {"memory": "128MiB"},
        "postgres": {"parameters": {"synchronize_seqscans": "off"}},
        "workload": _scans(rng),
    }


def _burst_bucket(rng: random.Random) -> dict[str, Any]:
    volume = f"gp2:size={rng.choice([40, 80, 120, 200])}GiB,credits=0"
    return {"world": {"volume": volume}, "instance": {"memory": "128MiB"}, "workload": _random_io(rng)}


def _instance_bandwidth(rng: random.Random) -> dict[str, Any]:
    volumes = rng.choice([{"data": FAST}, {"data": FAST, "wal": FAST}])
    instance = {"type": rng.choice(["i3.large", "r4.large", "m4.large"]), "memory": "128MiB"}
    workload = {"script": "select-only", "scale": rng.choice([20, 30]), "clients": rng.choice([16, 32])}
    if rng.random() < 0.5:
        workload = _scans(rng)
    return {"world": {"volumes": volumes}, "instance": instance, "workload": workload}


def _volume_latency(rng: random.Random) -> dict[str, Any]:
    workload = {"script": "select-only", "scale": 30, "clients": rng.choice([1, 2, 3])}
    volume = rng.choice([FAST, "gp3:iops=8000", "io1:size=200GiB,iops=8000"])
    return {"world": {"volume": volume}, "instance": {"memory": "96MiB"}, "workload": workload}


def _commit_latency(rng: random.Random) -> dict[str, Any]:
    workload = {"script": "simple-update", "scale": rng.choice([4, 8]), "clients": rng.choice([1, 2, 4])}
    world = rng.choice([{"volume": FAST}, {"volumes": {"data": FAST, "wal": "gp3:iops=8000"}}])
    return {"world": world, "instance": {"memory": "768MiB"}, "workload": workload}


def _checkpoints(rng: random.Random) -> dict[str, Any]:
    workload = {"script": rng.choice(["simple-update", "tpcb-like"]), "scale": 24, "clients": rng.choice([12, 20])}
    world = {"volume": rng.choice(["gp3", "gp3:iops=4000"])}
    parameters = {"max_wal_size": rng.choice(["48MB", "64MB"]), "min_wal_size": "32MB"}
    return {
        "world": world,
        "instance": {"memory": "1GiB"},
        "postgres": {"parameters": parameters},
        "workload": workload,
    }


def _server_cpu(rng: random.Random) -> dict[str, Any]:
    workload = {"script": "select-only", "scale": rng.choice([2, 5]), "clients": rng.choice([8, 16, 24])}
    apart = rng.random() < 0.7
    return {
        "world": {"volume": rng.choice(["gp3", FAST])},
        "instance": {"memory": "512MiB", **({"cpus": "0"} if apart else {})},
        "workload": {**workload, **({"driver_cpus": "1"} if apart else {})},
    }


def _locks(rng: random.Random) -> dict[str, Any]:
    hold_ms = rng.choice([2, 5])
    text = (
        "BEGIN;\nUPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n"
        f"\\sleep {hold_ms} ms\nSELECT abalance FROM pgbench_accounts WHERE aid = 1;\nEND;\n"
    )
    held: dict[str, Any] = {"kind": "script", "files": [_file("held.sql", text)]}
    workload: dict[str, Any] = rng.choice([held, {"script": "tpcb-like"}])
    return {
        "world": {"volume": FAST},
        "instance": {"memory": "512MiB"},
        "workload": {**workload, "scale": 1, "clients": rng.choice([16, 32])},
    }


def _client(rng: random.Random) -> dict[str, Any]:
    slow: dict[str, Any] = rng.choice(
        [{"rate_per_s": rng.choice([40, 120])}, {"engine": "native", "think_ms": rng.choice([20, 80])}]
    )
    workload: dict[str, Any] = {
        "script": rng.choice(["tpcb-like", "select-only"]),
        "scale": 5,
        "clients": rng.choice([4, 12]),
    }
    return {
        "world": {"volume": rng.choice(["gp3", "io2bx:iops=2000"])},
        "instance": {"memory": "512MiB"},
        "workload": {**workload, **slow},
    }


def _harness(rng: random.Random) -> dict[str, Any]:
    lines = "".join(f"\\set a{place} random(1, 1000000) * 3 + {place}\n" for place in range(DRIVER_LINES))
    files = [_file("computed.sql", f"{lines}SELECT abalance FROM pgbench_accounts WHERE aid = 1;\n")]
    workload = {"kind": "script", "files": files, "scale": 2, "clients": rng.choice([4, 8])}
    return {"world": {"volume": rng.choice(["gp3", FAST])}, "instance": {"memory": "512MiB"}, "workload": workload}


_FAMILIES: dict[Limit, Callable[[random.Random], dict[str, Any]]] = {
    "volume_iops": _volume_iops,
    "volume_throughput": _volume_throughput,
    "burst_bucket": _burst_bucket,
    "instance_bandwidth": _instance_bandwidth,
    "volume_latency": _volume_latency,
    "commit_latency": _commit_latency,
    "checkpoints": _checkpoints,
    "server_cpu": _server_cpu,
    "locks": _locks,
    "client": _client,
    "harness": _harness,
}
