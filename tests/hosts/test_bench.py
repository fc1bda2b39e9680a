"""What several hosts cost, by ``make bench ONLY=hosts``: the worker's CPU beside its driver, the time to prepare, bytes on the wire."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from pgdyno.hosts import connection as file
from pgdyno.hosts.connection import Connection
from pgdyno.kinds.registry import workload_of
from pgdyno.workload import native
from pgdyno.workload.clients import clients_of
from pgdyno.workload.fill import load
from pgdyno.workload.native import Drivers
from pgdyno.workload.outcome import shares_of
from pgdyno.workload.tables import PgbenchTables
from tests.support.servers import throwaway_cluster
from tools.hosts import page
from tools.hosts.record import Cost, Record

from . import there
from .test_drive import reached

pytestmark = pytest.mark.bench

SECONDS = 20
RATE_PER_S = 300


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
    settings, cost = {"max_connections": "300"}, Cost.now()
    with (
        throwaway_cluster(settings=settings, tcp=two.here) as server,
        Connection(file.read(two.file(tmp_path, "alpha = 1\ngamma = 1"))) as connection,
    ):
        load(server, PgbenchTables(2))
        hosts = connection.drivers(names)
        result = native.document(clients, 0, 1000 * SECONDS, 1)
        result["server"] = reached(server).endpoint.named("pgdyno drive")
        begun = time.monotonic()
        with Drivers(result, shares, tmp_path, hosts=hosts) as drivers:
            prepared_s = time.monotonic() - begun
            before, wire = [cpu_s(pid) for pid in pids], sum(wire_bytes(two.workers[name].port) for name in names)
            drivers.begin()
            assert drivers.follow(lambda _: None).lost is None
            worker_share = max(cpu_s(pid) - at for pid, at in zip(pids, before, strict=True)) / SECONDS
            number = sum(wire_bytes(two.workers[name].port) for name in names) - wire
    cost.worker_share, cost.prepared_s = round(worker_share, 5), round(prepared_s, 3)
    cost.wire_kib_per_s = round(number / SECONDS / len(names) / 1024, 2)
    cost.look()
    record = Record.kept()
    record.cost = cost
    page.keep(record)
    claims = page.cost(record)
    with capsys.disabled():
        print("", *claims, f"{cost.wire_kib_per_s:.1f} KiB/s from and to each host", sep="\nhosts: ")
    assert [str(claim) for claim in claims if not claim.holds] == []
