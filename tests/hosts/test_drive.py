"""Drivers on other hosts: one record, nothing lost in silence, nothing left, and no password where others could read it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgdyno.base.errors import HostError, InputError, PgdynoError
from pgdyno.hosts import connection as file
from pgdyno.hosts.connection import Connection
from pgdyno.hosts.remote_process import SILENT_S, WAIT_S
from pgdyno.kinds.registry import workload_of
from pgdyno.machine.waiting import wait_until
from pgdyno.server.cluster import Cluster
from pgdyno.workload import native
from pgdyno.workload.clients import clients_of
from pgdyno.workload.clock import SECOND_NS
from pgdyno.workload.fill import load
from pgdyno.workload.native import Drivers
from pgdyno.workload.outcome import Outcome, RemoteHost, RunRequest, shares_of
from pgdyno.workload.process import LOST_S, DriverProcess
from pgdyno.workload.tables import PgbenchTables
from pgdyno.world.client_endpoint import ReachedServer
from tests.support.servers import throwaway_cluster
from tests.workload.test_together import drawn

from . import there
from .conftest import DAY_S

TPCB = workload_of(scale=2, clients=6, threads=3, engine="native", seed=11)
GONE_S = 6.0
"""Three seconds of silence, and what a busy machine takes to notice."""


@pytest.fixture(scope="module")
def server(two: there.Hosts) -> Iterator[Cluster]:
    """A server on the address that all hosts reach, with pgbench's tables at scale 2."""
    with counting(two.here) as started:
        load(started, PgbenchTables(2))
        yield started


@contextlib.contextmanager
def counting(tcp: str) -> Iterator[Cluster]:
    """A server that counts the calls of statements."""
    with throwaway_cluster(settings={"shared_preload_libraries": "pg_stat_statements"}, tcp=tcp) as started:
        with started.connect(autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
        yield started


@pytest.fixture
def connection(two: there.Hosts, tmp_path: Path) -> Iterator[Connection]:
    with Connection(file.read(two.file(tmp_path, "alpha = 2\ngamma = 1"))) as opened:
        yield opened


def reached(server: Cluster) -> ReachedServer:
    dsn = f"host={server.tcp} port={server.port} user={server.role} dbname={server.database} sslmode=disable"
    return ReachedServer(dsn, server.binaries, server.password)


def run(server: Cluster, connection: Connection, folder: Path, seconds: float, **more: Any) -> Outcome:
    """TPC-B of alpha and gamma."""
    hosts = connection.drivers(["alpha", "gamma"])
    return TPCB.runner()(reached(server), RunRequest(seconds, folder, drivers=(2, 1), hosts=hosts, **more))


def command_lines() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_text(errors="replace")


def at(second: int, act: Callable[[], object]) -> Callable[[float, str], None]:
    """Acts when this number of seconds has been reported."""
    texts: list[str] = []

    def progress(_share: float, text: str) -> None:
        texts.append(text)
        if len(texts) == second:
            act()

    return progress


def no_driver_left(hosts: there.Hosts, *names: str) -> None:
    pids = [hosts.workers[name].process.pid for name in names]
    assert wait_until(lambda: not any(map(there.children, pids)), GONE_S), "a driver outlived its run"


def test_two_hosts_come_to_one_record(
    two: there.Hosts, server: Cluster, connection: Connection, tmp_path: Path
) -> None:
    baseline, pids, seen = TPCB.baseline(server, full=True), [0], list[str]()
    outcome = run(
        server,
        connection,
        tmp_path / "out",
        2.0,
        warmup_s=1.0,
        on_start=lambda *item: pids.extend(item),
        progress=at(2, lambda: seen.extend(command_lines())),
    )
    proofs = TPCB.proofs(server, outcome, baseline=baseline, full=True)
    assert [check for check in (*outcome.checks, *proofs) if not check.ok] == []
    assert pids == [0], "no process of this machine drives"
    assert list(outcome.drivers) == ["alpha", "gamma"]
    alpha, gamma = outcome.drivers.values()
    assert outcome.driver.transactions == (alpha.transactions or 0) + (gamma.transactions or 0) > 0
    assert (alpha.threads, gamma.threads) == (2, 1)
    for record in (alpha, gamma):
        assert record.host is not None and record.host.cores == len(os.sched_getaffinity(0))
        assert record.host.rtt_ms is not None and 0 < record.host.rtt_ms < 50
        assert record.clock is not None and record.clock.uncertainty_ns < 5_000_000
    if two.apart:
        assert gamma.clock is not None
        assert abs(gamma.clock.ahead_ns - DAY_S * SECOND_NS) <= gamma.clock.uncertainty_ns
    rows = [row for row in outcome.throughput.to_pylist() if row["t_begin_ns"] >= outcome.phases[-1].begin_ns]
    assert sum(row["transactions"] for row in rows) == outcome.account.succeeded > 0
    no_driver_left(two, "alpha", "gamma")

    assert server.password is not None and any("pgdyno-engine" in line for line in seen)
    written = [path.read_text() for path in (tmp_path / "out").iterdir()]
    logs = [worker.log.read_text() for worker in (two.scheduler, *two.workers.values())]
    assert not any(server.password in text for text in (*seen, *written, *logs))


def test_two_hosts_send_what_one_driver_sends(server: Cluster, connection: Connection, tmp_path: Path) -> None:
    require_same_statements(server, connection.drivers(["alpha", "gamma"]), tmp_path)


def require_same_statements(server: Cluster, hosts: Mapping[str, RemoteHost], folder: Path) -> None:
    """16 clients of one driver here, and the same divided among hosts."""

    def here(order: dict[str, Any]) -> None:
        with DriverProcess(order, folder / "here.err") as driving:
            driving.follow(lambda _: None)

    def there_too(order: dict[str, Any]) -> None:
        order["server"] = reached(server).endpoint.named("pgdyno drive")
        shares = shares_of([1] * len(hosts), 16, 4, list(hosts))
        with Drivers(order, shares, folder, hosts=hosts) as drivers:
            drivers.begin()
            assert drivers.follow(lambda _: None).lost is None

    result, alone = drawn(server, here), calls(server)
    shared = drawn(server, there_too)
    assert result.total() == 10_000
    assert shared == result
    assert alone == calls(server) == {"INSERT INTO drawn VALUES ($1, $2)": 10_000}


def calls(server: Cluster) -> dict[str, int]:
    """How often each statement of the scripts was executed since the last time, as the server counts it."""
    with server.connect(autocommit=True) as connection:
        text = "SELECT query, sum(calls) FROM pg_stat_statements WHERE query ~ '^INSERT INTO drawn' GROUP BY query"
        calls = {str(query): int(count) for query, count in connection.execute(text)}
        connection.execute("SELECT pg_stat_statements_reset()")
    return calls


def test_a_driver_that_is_killed_on_its_host_makes_the_run_invalid(
    two: there.Hosts, server: Cluster, connection: Connection, tmp_path: Path
) -> None:
    def kill() -> None:
        [pid] = there.children(two.workers["gamma"].process.pid)
        os.kill(pid, signal.SIGKILL)

    begun = time.monotonic()
    outcome = run(server, connection, tmp_path, 60.0, progress=at(2, kill))
    assert time.monotonic() - begun < 60, "the other did not measure to its end"
    failed = {check.name: check.detail for check in outcome.checks if not check.ok}
    assert failed["drivers_lasted"].startswith("gamma was lost 2.") and "signal 9" in failed["drivers_lasted"]
    no_driver_left(two, "alpha", "gamma")


def test_a_host_that_cannot_be_reached_any_more_is_lost_within_seconds_and_its_driver_ends(
    two: there.Hosts, server: Cluster, tmp_path: Path
) -> None:
    if not two.apart:
        pytest.skip("network namespaces are not allowed")
    way, went = two.apart[1], list[float]()

    def cut() -> None:
        way.link("down")
        went.append(time.monotonic())

    with two.worker("delta", way.place) as delta, contextlib.ExitStack() as stack:
        stack.callback(way.link, "up")
        opened = stack.enter_context(Connection(file.read(two.file(tmp_path, "alpha = 2\ndelta = 1"))))
        hosts = opened.drivers(["alpha", "delta"])
        request = RunRequest(60.0, tmp_path, drivers=(2, 1), hosts=hosts, progress=at(2, cut))
        outcome = TPCB.runner()(reached(server), request)
        assert time.monotonic() - went[0] < 10
        failed = {check.name: check.detail for check in outcome.checks if not check.ok}
        assert failed["drivers_lasted"].startswith("delta was lost")
        assert "the worker delta does not answer" in failed["drivers_lasted"]
        assert wait_until(lambda: not there.children(delta.process.pid), GONE_S)
    no_driver_left(two, "alpha")


def test_a_worker_that_is_killed_takes_its_driver_along_and_makes_the_run_invalid(
    two: there.Hosts, server: Cluster, tmp_path: Path
) -> None:
    drivers: list[int] = []
    with two.worker("zeta", there.Place("127.0.0.5")) as zeta:

        def kill() -> None:
            drivers.extend(there.children(zeta.process.pid))
            zeta.process.kill()

        with Connection(file.read(two.file(tmp_path, "alpha = 1\nzeta = 1"))) as opened:
            hosts = opened.drivers(["alpha", "zeta"])
            request = RunRequest(60.0, tmp_path, drivers=(1, 1), hosts=hosts, progress=at(2, kill))
            outcome = TPCB.runner()(reached(server), request)
    failed = {check.name: check.detail for check in outcome.checks if not check.ok}
    assert failed["drivers_lasted"].startswith("zeta was lost")
    assert len(drivers) == 1
    assert wait_until(lambda: not Path(f"/proc/{drivers[0]}").exists(), GONE_S)
    no_driver_left(two, "alpha")


def test_a_run_whose_host_is_silent_ends_within_five_seconds() -> None:
    assert WAIT_S + SILENT_S + LOST_S < 5, "missed, then the others are stopped and killed"


COORDINATOR = """
import sys
from pathlib import Path
from tests.hosts import test_drive
test_drive.coordinate(*sys.argv[1:])
"""


def coordinate(hosts_file: str, dsn: str, password: str, folder: str) -> None:
    """A run of another process, which says when it measures."""
    with Connection(file.read(Path(hosts_file))) as connection:
        hosts = connection.drivers(["alpha", "gamma"])
        request = RunRequest(
            60.0, Path(folder), drivers=(2, 1), hosts=hosts, progress=at(1, lambda: print("on", flush=True))
        )
        from pgdyno.server.binaries import find_binaries

        TPCB.runner()(ReachedServer(dsn, find_binaries(), password), request)


def test_drivers_end_when_the_one_that_asked_for_them_is_killed(
    two: there.Hosts, server: Cluster, tmp_path: Path
) -> None:
    reached_server = reached(server)
    words = [
        str(two.file(tmp_path, "alpha = 1\ngamma = 1")),
        reached_server.dsn,
        str(reached_server.password),
        str(tmp_path),
    ]
    with subprocess.Popen([sys.executable, "-c", COORDINATOR, *words], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"on\n"
            assert all(there.children(two.workers[name].process.pid) for name in ("alpha", "gamma"))
        finally:
            process.kill()
    no_driver_left(two, "alpha", "gamma")


def asked() -> dict[str, Any]:
    clients = clients_of(TPCB)
    assert clients is not None
    return native.document(clients, 0, 10_000)


def test_a_host_drives_one_load_at_a_time(server: Cluster, connection: Connection, tmp_path: Path) -> None:
    document = asked() | {
        "server": reached(server).endpoint.named("pgdyno drive"),
        "begin": {"told": {"within_ms": 30_000}},
    }
    alpha = connection.drivers(["alpha"])["alpha"]
    again = pytest.raises(HostError, match="drives another load now")
    with DriverProcess(document, tmp_path / "one.err", elsewhere=alpha), again:
        DriverProcess(document, tmp_path / "two.err", elsewhere=alpha)


def test_what_the_driver_refuses_there_is_said_here(server: Cluster, connection: Connection, tmp_path: Path) -> None:
    wrong = ReachedServer(reached(server).dsn, server.binaries, "not the password")
    document = asked() | {"server": wrong.endpoint.named("pgdyno drive"), "begin": {"told": {"within_ms": 30_000}}}
    alpha = connection.drivers(["alpha"])["alpha"]
    refused = pytest.raises(PgdynoError, match="password authentication failed")
    with refused, DriverProcess(document, tmp_path / "err", elsewhere=alpha):
        pass


def test_a_host_with_another_engine_does_not_drive(connection: Connection) -> None:
    with pytest.raises(HostError, match="the engine of beta is another"):
        connection.drivers(["alpha", "beta"])


def test_a_server_behind_a_socket_is_not_reached_by_others(server: Cluster, connection: Connection) -> None:
    with pytest.raises(InputError, match="alpha cannot reach the server"):
        connection.drivers(["alpha"])["alpha"].record(server.endpoint.document)


def test_the_server_asks_other_hosts_for_a_password_by_scram(server: Cluster) -> None:
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(reached(server).dsn, passfile=os.devnull)
    rules = (server.data_dir / "pg_hba.conf").read_text().splitlines()
    assert [line.split()[-1] for line in rules if line.startswith("host")] == ["scram-sha-256"]
