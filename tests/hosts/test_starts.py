"""Drivers whose clocks are apart begin at one instant, and their clocks are known as well as is said; by ``make bench ONLY=hosts``."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.hosts import connection as file
from pgdyno.hosts.connection import Connection
from pgdyno.kinds.registry import workload_of
from pgdyno.workload import native
from pgdyno.workload.clients import clients_of
from pgdyno.workload.clock import SECOND_NS, estimate
from pgdyno.workload.fill import load
from pgdyno.workload.native import Drivers
from pgdyno.workload.outcome import shares_of
from pgdyno.workload.process import DriverProcess
from pgdyno.workload.tables import PgbenchTables
from tests.support.servers import throwaway_cluster
from tests.workload.test_clock_offset import IDLE
from tools.hosts import page
from tools.hosts.record import Clocks, Record, Starts

from . import there
from .apart import apart
from .conftest import DAY_S
from .test_drive import reached

pytestmark = pytest.mark.bench

AHEAD_S = {"alpha": 0, "gamma": DAY_S, "delta": 3_600, "epsilon": 50_000}
"""Of each host, how far its clock is ahead."""
RATE_PER_S = 300
"""In a closed loop 16 servers begin to work at that instant, too, and on two cores a driver waits for them."""
EACH = 350
"""Estimates with a busy host, and over a way with delays."""
DELAY = """
import random, subprocess, sys, threading, time
draw = random.Random(26)
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
def carry(source, to):
    for line in iter(source.readline, b""):
        time.sleep(0.0001 + draw.expovariate(4000))
        to.write(line)
        to.flush()
    to.close()
threading.Thread(target=carry, args=(sys.stdin.buffer, child.stdin), daemon=True).start()
carry(child.stdout, sys.stdout.buffer)
child.wait()
"""
"""A command whose lines take a tenth of a millisecond either way, and queues of a quarter on average: never as long in both directions."""


def test_four_drivers_begin_together(two: there.Hosts, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not two.apart:
        pytest.skip("network namespaces are not allowed")
    spec = workload_of(scale=2, clients=16, threads=4, engine="native", rate_per_s=RATE_PER_S)
    clients = clients_of(spec)
    assert clients is not None
    record = Record.kept()
    if record.starts is None or len(record.starts.spread_ms) >= page.STARTS:
        record.starts, record.clocks["the network between two namespaces"] = Starts.now(), Clocks.now()
    starts, known = record.starts, record.clocks["the network between two namespaces"]
    with contextlib.ExitStack() as stack:
        more = stack.enter_context(apart((AHEAD_S["delta"], AHEAD_S["epsilon"]), first=3))
        assert more is not None
        for name, host in zip(("delta", "epsilon"), more, strict=True):
            stack.enter_context(two.worker(name, host.place))
        server = stack.enter_context(throwaway_cluster(tcp=two.here))
        load(server, PgbenchTables(2))
        names = "\n".join(f"{name} = 1" for name in AHEAD_S)
        connection = stack.enter_context(Connection(file.read(two.file(tmp_path, names))))
        hosts = connection.drivers(AHEAD_S)
        shares = shares_of([1, 1, 1, 1], clients.clients, clients.threads, tuple(AHEAD_S))
        true_ns = [ahead_s * SECOND_NS for ahead_s in AHEAD_S.values()]
        for start in range(len(starts.spread_ms), page.STARTS):
            result = native.document(clients, 0, 200, start)
            result["server"] = reached(server).endpoint.named("pgdyno drive")
            with Drivers(result, shares, tmp_path, hosts=hosts) as drivers:
                before = [output.clock for output in drivers.outputs]
                drivers.begin()
                output = drivers.follow(lambda _: None)
            assert output.lost is None
            begun_ns = []
            for clock, ahead_ns, part in zip(before, true_ns, output.parts.values(), strict=True):
                assert clock is not None and part.clock is not None and part.summary is not None
                known.count(clock.ahead_ns - ahead_ns, clock.uncertainty_ns)
                known.count(part.clock.ahead_ns + (part.clock.drift_ns or 0) - ahead_ns, part.clock.uncertainty_ns)
                # The instant was converted by the estimate: what that is off by, the driver begins early or late.
                begun_ns.append(clock.ahead_ns - ahead_ns + part.summary["begin_late_ns"])
            starts.spread_ms.append(round((max(begun_ns) - min(begun_ns)) / 1e6, 4))
            woke_ns = [part.summary["woke_late_ns"] for part in output.parts.values() if part.summary is not None]
            starts.woke_late_ms.append(round(max(woke_ns) / 1e6, 4))
            starts.look()
            known.look()
            if start % 20 == 19:
                page.keep(record)
    claims = [page.starts(record), page.clocks(record)]
    with capsys.disabled():
        print("", *claims, sep="\nhosts: ")
    assert claims[0].holds, str(claims[0])
    assert known.off <= (1 - page.INSIDE_SHARE) * known.estimates


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """A process that computes for each core, and one more."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range((os.cpu_count() or 1) + 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.parametrize("way", ["a busy machine", "delays that differ by direction"])
def test_clocks_are_known_as_well_as_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str) -> None:
    other = ("unshare", "--time", "--monotonic", str(DAY_S))
    prefix = other if way == "a busy machine" else (sys.executable, "-c", DELAY, *other)
    if subprocess.run([*other, "true"], capture_output=True, check=False, timeout=20).returncode != 0:
        pytest.skip("time namespaces are not allowed")
    record, now = Record.kept(), Clocks.now()
    with busy() if way == "a busy machine" else contextlib.nullcontext():
        with DriverProcess(
            IDLE | {"begin": {"told": {"within_ms": 600_000}}}, tmp_path / "err", prefix=prefix
        ) as driving:
            for _ in range(EACH):
                clock = estimate(driving._clock)
                now.count(clock.ahead_ns - DAY_S * SECOND_NS, clock.uncertainty_ns)
        now.look()
    record.clocks[way] = now
    page.keep(record)
    with capsys.disabled():
        print(f"\nhosts: {way}: {now}")
    assert now.estimates >= EACH
    assert now.off <= (1 - page.INSIDE_SHARE) * now.estimates
