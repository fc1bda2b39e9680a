"""A watched server does as much as one that is not, and is as it was.

These judge times and CPU: run them on a machine that does nothing else.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.diagnose.bought import Purchase
from pgdyno.diagnose.diagnosis import diagnose
from pgdyno.diagnose.target import target_of
from pgdyno.diagnose.watch import watch
from pgdyno.host.waiting import wait_until
from pgdyno.probe.sampler import APPLICATION_NAME

from ..support.pooler import CLEAN, pgbouncer
from ..support.servers import throwaway_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pgdyno.postgres.cluster import Cluster

pytestmark = pytest.mark.bench

CPU_MAX = 0.01
"""Of one core: the bar of the project."""
RATIO_MIN = 0.99
"""Of the transactions; the 95 % interval lies above it."""
TABLES = 10_000
SESSIONS = (100, 1000)
QUARTETS = 150
QUARTET = (True, False, False, True)
"""Whether the watch runs in each of four seconds."""
PROBES = 2
"""Sessions of a watch that last: of counters, and of what sessions wait for."""
WARM_S = 5
WATCH_S = 20.0
SHORT_S = 5
BESIDE_S = 3.0
"""What the command may take beside the watch: Python's start, connecting, looking around, judging. The bar of the project."""
SCALE = 5
_PROGRESS = re.compile(r"progress: ([\d.]+) s, ([\d.]+) tps")
_TABLES = (
    "DO $$ BEGIN FOR i IN {} LOOP EXECUTE format('CREATE TABLE many.t%s (a int PRIMARY KEY)', i); END LOOP; END $$"
)
_STATE = (
    "SELECT name, setting, source FROM pg_settings ORDER BY name",
    "SELECT datname, stats_reset FROM pg_stat_database ORDER BY 1",
    "SELECT backend_type, object, context, stats_reset FROM pg_stat_io ORDER BY 1, 2, 3",
    "SELECT stats_reset FROM pg_stat_bgwriter",
    "SELECT stats_reset FROM pg_stat_wal",
    "SELECT stats_reset FROM pg_stat_checkpointer",
    "SELECT oid, relname, relowner, relkind, relacl FROM pg_class ORDER BY 1",
    "SELECT oid, proname, prosrc FROM pg_proc ORDER BY 1",
    "SELECT oid, rolname, rolconfig FROM pg_roles ORDER BY 1",
    "SELECT * FROM pg_db_role_setting ORDER BY 1, 2",
    "SELECT oid, extname FROM pg_extension ORDER BY 1",
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
    "SELECT slot_name FROM pg_replication_slots",
)
"""What a watch could change: settings, resets of statistics, contents of the catalogs, locks and slots."""


@pytest.fixture(scope="module")
def crowded() -> Iterator[Cluster]:
    """A server with 10,000 tables that takes 1,000 sessions and more, and a role with pg_monitor."""
    with throwaway_cluster() as cluster:
        with cluster.connect() as connection:
            connection.execute("ALTER SYSTEM SET max_connections = 1100")
            connection.execute("CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor; CREATE SCHEMA many")
        cluster.stop()
        cluster.start({"shared_buffers": "256MB", "synchronous_commit": "off"})
        with cluster.connect() as connection:
            for begin in range(0, TABLES, 1000):  # a transaction holds a lock for each
                connection.execute(_TABLES.format(f"{begin}..{begin + 999}"))
        pgbench(cluster, "-i", "-q", "-s", str(SCALE))
        yield cluster


def pgbench(cluster: Cluster, *arguments: str) -> str:
    """What pgbench of the server's version says."""
    command = [str(cluster.binaries.program("pgbench")), *arguments, cluster.dsn]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=cluster.binaries.environment)
    return done.stdout


def monitor(cluster: Cluster) -> str:
    """How the watch reaches it."""
    return cluster.dsn.replace("user=postgres", "user=monitor")


@contextlib.contextmanager
def connected(cluster: Cluster, count: int) -> Iterator[None]:
    """So many sessions, idle; four more are at work."""
    stop = threading.Event()

    def work() -> None:
        with cluster.connect() as connection:
            while not stop.is_set():
                connection.execute("SELECT sum(abalance) FROM pgbench_accounts WHERE aid < 2000")

    with contextlib.ExitStack() as ending:
        for _ in range(count - 4):
            ending.enter_context(psycopg.connect(cluster.dsn, autocommit=True))
        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        try:
            yield
        finally:
            stop.set()
            for worker in workers:
                worker.join()


def state(cluster: Cluster) -> list[list[tuple[object, ...]]]:
    """All that must be as it was."""
    with cluster.connect() as connection:
        return [connection.execute(query.encode()).fetchall() for query in _STATE]


@pytest.mark.parametrize("sessions", SESSIONS)
def test_the_probes_sessions_take_at_most_a_hundredth_of_a_core(
    crowded: Cluster, tmp_path: Path, sessions: int
) -> None:
    before = state(crowded)
    with connected(crowded, sessions):
        found = diagnose(watch(target_of(monitor(crowded)), Purchase(), WATCH_S, tmp_path))
    assert state(crowded) == before
    cost = found.cost
    assert cost is not None
    assert cost.server_cpu_share is not None
    print(f"\n{sessions} sessions, {TABLES} tables: {cost.server_cpu_share:.4f} of a core, {cost.samples} looks, {cost.lost} lost,"
          f" one each {cost.interval_ms or 0:.0f} ms")  # fmt: skip
    assert cost.server_cpu_share <= CPU_MAX


def test_from_the_connection_string_to_the_verdict_it_takes_the_watch_and_three_seconds(crowded: Cluster) -> None:
    command = [sys.executable, "-m", "pgdyno", "diagnose", monitor(crowded), "--for", f"{SHORT_S}s"]
    with connected(crowded, SESSIONS[0]):
        begin_s = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        took_s = time.monotonic() - begin_s
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("limit     ")
    print(f"\na watch of {SHORT_S} s took {took_s:.2f} s, from the connection string to the verdict")
    assert took_s <= SHORT_S + BESIDE_S


def test_a_watched_server_does_as_many_transactions(crowded: Cluster) -> None:
    """Select-only, all in memory: one pgbench, and beside it one watch that runs for a second, stands still for two, runs for one.

    The machine's own speed drifts by some per cent within seconds; a quartet cancels what is linear of it. The interval is that of the
    Hodges-Lehmann estimate (Wilcoxon's signed ranks), which a second that something else disturbed does not widen.
    """
    ratios = []
    with transactions(crowded, QUARTETS * 4 + 600) as next_tps, watching(crowded) as watches:
        for _ in range(QUARTETS):
            tps: dict[bool, float] = {True: 0.0, False: 0.0}
            for on in QUARTET:
                watches(on)
                tps[on] += next_tps()
            ratios.append(math.log(tps[True] / tps[False]))
    low, middle, high = (math.exp(value) for value in hodges_lehmann(ratios))
    print(
        f"\ntransactions with a watch over those without: {middle:.4f} ({low:.4f} to {high:.4f}), {QUARTETS} times four seconds"
    )
    assert low > RATIO_MIN


@contextlib.contextmanager
def transactions(cluster: Cluster, longest_s: float) -> Iterator[Callable[[], float]]:
    """A pgbench that runs. The function waits until it tells of a second and returns its transactions per second."""
    command = [str(cluster.binaries.program("pgbench")), "-n", "-S", "-c", "4", "-j", "1", "-T", f"{longest_s:.0f}", "-P", "1",
               cluster.dsn]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=cluster.binaries.environment
    ) as process:
        assert process.stderr is not None
        stderr = process.stderr

        def next_tps() -> float:
            for line in stderr:
                if (found := _PROGRESS.search(line)) is not None:
                    return float(found[2])
            raise AssertionError("pgbench ended")

        try:
            for _ in range(WARM_S):
                next_tps()
            yield next_tps
        finally:
            process.terminate()


@contextlib.contextmanager
def watching(cluster: Cluster) -> Iterator[Callable[[bool], None]]:
    """The command, with all that it starts, as a user runs it. The function lets it run on, or stand still."""
    command = [sys.executable, "-m", "pgdyno", "diagnose", monitor(cluster), "--for", "1h", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:

        def watches(on: bool) -> None:
            assert process.poll() is None, "the watch ended"
            os.killpg(process.pid, signal.SIGCONT if on else signal.SIGSTOP)

        try:
            assert wait_until(lambda: _sampled(cluster) >= PROBES, BESIDE_S * 10)
            yield watches
        finally:
            os.killpg(process.pid, signal.SIGCONT)
            os.killpg(process.pid, signal.SIGINT)


def _sampled(cluster: Cluster) -> int:
    """Sessions of a watch that wait for their next question."""
    with cluster.connect() as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND state = 'idle'", (APPLICATION_NAME,)
        ).fetchone()
    assert row is not None
    return int(str(row[0]))


def hodges_lehmann(values: list[float]) -> tuple[float, float, float]:
    """The median of all pairs' means with its 95 % interval, by the normal approximation of Wilcoxon's signed ranks."""
    means = sorted((a + b) / 2 for place, a in enumerate(values) for b in values[place:])
    n = len(values)
    lowest = int(n * (n + 1) / 4 - 1.96 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24))
    return means[lowest], statistics.median(means), means[-1 - lowest]


@pytest.mark.needs_pgbouncer
def test_through_a_pooler_the_next_client_sees_its_own_settings(crowded: Cluster, tmp_path: Path) -> None:
    """In transaction mode: a client's settings before a watch are those after it, in each session of the pool."""
    before = state(crowded)
    with pgbouncer(crowded) as pooler:
        watch(target_of(pooler.dsn()), Purchase(), 5.0, tmp_path)
        assert pooler.leftovers() == [CLEAN] * pooler.pool_size
        with psycopg.connect(pooler.dsn(), autocommit=True, prepare_threshold=None) as client:
            shown = client.execute(
                "SELECT current_setting('default_transaction_read_only'), current_setting('statement_timeout')"
            )
            assert shown.fetchone() == ("off", "0")
            client.execute("CREATE TEMPORARY TABLE written (a int) ON COMMIT DROP")
    assert state(crowded) == before
