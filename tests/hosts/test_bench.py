"""What several hosts cost, by ``make bench ONLY=hosts``: the worker's CPU beside its driver, the time to prepare, bytes on the wire."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from pgdyno.hosts import file
from pgdyno.hosts.connection import Connection
from pgdyno.workload import native
from pgdyno.workload.kind.clients import clients_of
from pgdyno.workload.kind.registry import workload_of
from pgdyno.workload.load import load
from pgdyno.workload.share import shares_of
from pgdyno.workload.tables import PgbenchTables
from pgdyno.workload.together import Drivers
from tests.support.servers import throwaway_cluster

from . import there
from .test_drive import reached

pytestmark = pytest.mark.bench

SECONDS = 20
RATE_PER_S = 300
WORKER_SHARE_MAX = 0.01
"""Of a core, beside the driver while it measures."""
PREPARE_S_MAX = 2.0
"""From nothing to the instant that can be given, with 200 clients."""


def cpu_s(pid: int) -> float:
    """User and system time of a process."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def wire_bytes(port: int) -> int:
    """Sent and received on the connections to a port of another address."""
    text = subprocess.run(["ss", "-tinH", f"dport = :{port}"], capture_output=True, text=True, check=True).stdout
    return sum(map(int, re.findall(r"bytes_(?:sent|received):(\d+)", text)))


def test_what_it_costs(two: there.Hosts, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = workload_of(script="select-only", scale=2, clients=200, threads=4, engine="native", rate_per_s=RATE_PER_S)
    clients = clients_of(spec)
    assert clients is not None
    names = ["alpha", "gamma"]
    pids = [two.workers[name].process.pid for name in names]
    shares = shares_of([1, 1], clients.clients, clients.threads, names)
    settings = {"max_connections": "300"}
    with (
        throwaway_cluster(settings=settings, tcp=two.here) as server,
        Connection(file.read(two.file(tmp_path, "alpha = 1\ngamma = 1"))) as connection,
    ):
        load(server, PgbenchTables(2))
        hosts = connection.drivers(names)
        asked = native.document(clients, 0, 1000 * SECONDS, 1)
        asked["server"] = reached(server).endpoint.named("pgdyno drive")
        begun = time.monotonic()
        with Drivers(asked, shares, tmp_path, hosts=hosts) as drivers:
            prepared_s = time.monotonic() - begun
            before, wire = [cpu_s(pid) for pid in pids], sum(wire_bytes(two.workers[name].port) for name in names)
            drivers.begin()
            assert drivers.follow(lambda _: None).lost is None
            worker_share = max(cpu_s(pid) - at for pid, at in zip(pids, before, strict=True)) / SECONDS
            told = sum(wire_bytes(two.workers[name].port) for name in names) - wire
    with capsys.disabled():
        print(
            f"\nhosts: a worker takes {100 * worker_share:.2f} % of a core beside its driver;"
            f" 200 clients on two hosts are ready after {prepared_s:.2f} s;"
            f" {told / SECONDS / len(names) / 1024:.1f} KiB/s from and to each host"
        )
    assert worker_share <= WORKER_SHARE_MAX
    assert prepared_s <= PREPARE_S_MAX
