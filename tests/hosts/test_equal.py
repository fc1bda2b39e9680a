"""One load on one host's driver and on four: equal throughput, by ``make bench ONLY=hosts``. It needs a machine that does nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pgdyno.hosts import connection as file
from pgdyno.hosts.connection import Connection
from pgdyno.kinds.registry import workload_of
from pgdyno.server.cluster import Cluster
from pgdyno.workload.clock import SECOND_NS
from pgdyno.workload.fill import load
from pgdyno.workload.outcome import RunRequest
from pgdyno.workload.tables import PgbenchTables
from tests.support.servers import throwaway_cluster
from tools.hosts import page
from tools.hosts.record import Equal, Record

from . import there
from .test_drive import counting, reached, require_same_statements

pytestmark = pytest.mark.bench

SCALE = 16
SETTINGS = {"checkpoint_timeout": "1h", "max_wal_size": "4GB", "autovacuum_naptime": "1d", "shared_buffers": "512MB"}
"""Vacuum and checkpoint are made before each run, and none in it: one that meets a single run of a pair would be taken for the drivers.
With autovacuum at work, runs of eight seconds of one driver scattered by 11 %."""
COMMITS_OF_10_MS = {"synchronous_commit": "on", "commit_delay": "10000", "commit_siblings": "0"}
"""As a volume would: the server sleeps before it writes a commit, whatever the cores do meanwhile. `commit_delay` is in microseconds."""
FOUR = ("alpha", "delta", "epsilon", "gamma")


@dataclass(frozen=True)
class Load:
    """16 clients on four threads."""

    rate_per_s: int | None
    """None for a closed loop."""
    pairs: int
    warmup_s: float
    seconds: float
    settings: dict[str, str] = field(default_factory=dict)
    """More of PostgreSQL's."""


LOADS = {
    # The arrivals follow from the seed and the threads' numbers, so both schedule the same transactions: short runs tell enough.
    page.OPEN: Load(300, 8, 1.0, 5.0),
    # The server's answers limit it, as where drivers have hosts of their own; the cores have time left.
    page.CLOSED: Load(None, 12, 1.0, 5.0, COMMITS_OF_10_MS),
    # Two cores are shared by all, and a run of eight seconds scatters by five per cent.
    page.BUSY: Load(None, 10, 1.0, 8.0),
}


@dataclass(frozen=True)
class Stand:
    """A server, and the way to four hosts."""

    server: Cluster
    connection: Connection
    folder: Path


@pytest.fixture(scope="module")
def stand(two: there.Hosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Two hosts have two workers each: every worker drives one load at a time."""
    folder = tmp_path_factory.mktemp("equal")
    where = [item.place for item in two.apart] or [there.Place("127.0.0.3"), there.Place("127.0.0.4")]
    with contextlib.ExitStack() as stack:
        for name, place in zip(FOUR[1:3], where, strict=True):
            stack.enter_context(two.worker(name, place))
        server = stack.enter_context(throwaway_cluster(settings=SETTINGS, tcp=two.here))
        load(server, PgbenchTables(SCALE))
        names = "\n".join(f"{name} = 1" for name in FOUR)
        yield Stand(server, stack.enter_context(Connection(file.read(two.file(folder, names)))), folder)


def test_four_hosts_send_what_one_driver_sends(stand: Stand, two: there.Hosts, tmp_path: Path) -> None:
    with counting(two.here) as server:
        require_same_statements(server, stand.connection.drivers(FOUR), tmp_path)


def configure(server: Cluster, settings: dict[str, str]) -> None:
    """Give all sessions that are opened from now on these settings, and no others."""
    with server.connect(autocommit=True) as connection:
        connection.execute("ALTER ROLE ALL RESET ALL")
        for name, value in settings.items():
            connection.execute(f"ALTER ROLE ALL SET {name} = {value}".encode())


def tps(server: Cluster, load: Load, seed: int, request: RunRequest) -> float:
    """Transactions a second."""
    spec = workload_of(scale=SCALE, clients=16, threads=4, engine="native", rate_per_s=load.rate_per_s, seed=seed)
    request.out_dir.mkdir(parents=True)
    with server.connect(autocommit=True) as connection:
        connection.execute("VACUUM pgbench_branches, pgbench_tellers, pgbench_accounts")
        connection.execute("CHECKPOINT")
    outcome = spec.runner()(reached(server), request)
    assert [check for check in outcome.checks if not check.ok] == []
    measure = outcome.phases[-1]
    return outcome.account.succeeded * SECOND_NS / (measure.end_ns - measure.begin_ns)


@pytest.mark.parametrize("name", LOADS)
def test_four_drivers_on_hosts_do_what_one_does(stand: Stand, capsys: pytest.CaptureFixture[str], name: str) -> None:
    result, record, hosts = LOADS[name], Record.kept(), stand.connection.drivers(FOUR)
    answer = record.equal.get(name)
    if answer is None or len(answer.pairs) >= result.pairs:
        record.equal[name] = answer = Equal.now()
    configure(stand.server, result.settings)
    alone = {FOUR[0]: hosts[FOUR[0]]}
    first = RunRequest(
        result.seconds, stand.folder / name.replace(" ", "-") / "first", result.warmup_s, drivers=(1,), hosts=alone
    )
    tps(stand.server, result, result.pairs, first)  # it finds nothing where the others find it, and was 17 % slower
    for pair in range(len(answer.pairs), result.pairs):
        folder = first.out_dir.with_name(str(pair))
        one = replace(first, out_dir=folder / "one")
        four = replace(one, out_dir=folder / "four", drivers=(1, 1, 1, 1), hosts=hosts)
        # What drifts meets both alike.
        order = (one, four) if pair % 2 == 0 else (four, one)
        did = {request.out_dir: tps(stand.server, result, pair, request) for request in order}
        answer.pairs.append((round(did[four.out_dir], 2), round(did[one.out_dir], 2)))
        answer.look()
        with capsys.disabled():
            print(f"hosts: {name}: four drivers {answer.pairs[-1][0]:.1f}, one {answer.pairs[-1][1]:.1f}", flush=True)
        page.keep(record)
    claim = page.equal(name, record) if name in page.BARS else None
    with capsys.disabled():
        print(f"hosts: {claim or page.beside(record)}")
    assert claim is None or claim.holds, str(claim)
