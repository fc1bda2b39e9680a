"""A watched server does as much as one that is not, and is as it was.

These judge times and CPU: run them on a machine that does nothing else.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.advise.diagnose.diagnosis import diagnose
from pgdyno.advise.diagnose.remedies import Purchase
from pgdyno.advise.diagnose.watch import target_of, watch
from pgdyno.server.cluster import LOOPBACK

from ..support.pooler import CLEAN, pgbouncer
from ..support.servers import throwaway_cluster
from .turns import GAP_S, PROBES, SAME_MAX, Told, Turns, hodges_lehmann, loaded, quartets, watching

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

pytestmark = pytest.mark.bench

ALL_CORES = os.sched_getaffinity(0)
CPU_MAX = 0.01
"""Of one core: the bar of the project."""
RATIO_MIN = 0.99
"""Of the transactions; the 95 % interval lies above it."""
TABLES = 10_000
SESSIONS = (100, 1000)
QUARTETS = 1500
TURN_S = 0.1
ASKED_MIN = 0.87
"""Questions in a second of the turns with a watch, over those of an unbroken one. Turns meet questions by lot: of some 360 samples of
the counters a standard deviation is 4 %."""
STILL_MAX = 0.05
"""Of the watch's CPU time, in turns in which it stands still."""
STEADY_S = 30.0
WATCH_S = 20.0
SHORT_S = 5
BESIDE_S = 3.0
"""What the command may take beside the watch: Python's start, connecting, looking around, judging. The bar of the project."""
SCALE = 5
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
    "SELECT stats_reset FROM pg_stat_archiver",
    "SELECT stats_reset FROM pg_stat_recovery_prefetch",
    "SELECT name, stats_reset FROM pg_stat_slru ORDER BY 1",
    "SELECT slot_name, stats_reset FROM pg_stat_replication_slots ORDER BY 1",
    "SELECT subid, stats_reset FROM pg_stat_subscription_stats ORDER BY 1",
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
    with throwaway_cluster(tcp=LOOPBACK) as cluster:
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


@contextlib.contextmanager
def on_cores(cluster: Cluster, *, apart: bool) -> Iterator[None]:
    """Sessions that begin in the block, and what asks them, have the first core alone if ``apart``."""
    cores = {min(ALL_CORES)} if apart else ALL_CORES
    try:
        for process in (cluster.pid, 0):
            os.sched_setaffinity(process, cores)
        yield
    finally:
        for process in (cluster.pid, 0):
            os.sched_setaffinity(process, ALL_CORES)


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
        diagnosis = diagnose(watch(target_of(monitor(crowded)), Purchase(), WATCH_S, tmp_path))
    assert state(crowded) == before
    cost = diagnosis.cost
    assert cost is not None
    assert cost.server_cpu_share is not None
    print(f"\n{sessions} sessions, {TABLES} tables: {cost.server_cpu_share:.4f} of a core, {cost.samples} looks, {cost.lost} lost,"
          f" one each {cost.interval_ms or 0:.0f} ms")  # fmt: skip
    assert cost.server_cpu_share <= CPU_MAX


@pytest.mark.parametrize("apart", [True, False], ids=["apart", "beside"])
def test_from_the_connection_string_to_the_verdict_it_takes_the_watch_and_three_seconds(
    crowded: Cluster, apart: bool
) -> None:
    """With a core that the server and its load leave alone, as on another machine. Beside four busy sessions on the same cores the
    command waits for its share of them: how long it takes there is printed."""
    command = [sys.executable, "-m", "pgdyno", "diagnose", monitor(crowded), "--for", f"{SHORT_S}s"]
    with on_cores(crowded, apart=apart), connected(crowded, SESSIONS[0]):
        begin_s = time.monotonic()
        done = subprocess.run(
            ["taskset", "--cpu-list", str(max(ALL_CORES)), *command] if apart else command,
            capture_output=True,
            text=True,
            check=False,
        )
        took_s = time.monotonic() - begin_s
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("limit     ")
    print(f"\na watch of {SHORT_S} s took {took_s:.2f} s, from the connection string to the verdict")
    assert not apart or took_s <= SHORT_S + BESIDE_S


def test_the_whole_of_a_watch_takes_at_most_a_hundredth_of_a_core(crowded: Cluster, tmp_path: Path) -> None:
    """Beside a load that leaves nothing of the caches to it: the sessions, the command and what the command starts."""
    with loaded(crowded, STEADY_S + 60, tmp_path), watching(crowded, monitor(crowded)) as watch:
        did = Turns()
        did.add(watch, STEADY_S)
    print(f"\nin a second of a watch: {did}")
    assert did.cpu_ns.total() / 1e9 / did.seconds <= CPU_MAX


def test_a_watched_server_does_as_many_transactions(crowded: Cluster, tmp_path: Path) -> None:
    """Select-only, all in memory: one pgbench, and beside it one watch that runs and stands still in turns of a tenth of a second.

    All of this was fixed before it was measured. The machine's own speed drifts by some per cent, in turns of 5 s as much as in
    those of a tenth: so many short turns say more than few long ones. A quartet of turns (with, without, without, with) cancels
    what is linear of the drift. Which half of the quartets is the other way round is drawn by lot, so that what is left of it has
    either sign alike, whatever follows what: this is what the interval of the Hodges-Lehmann estimate (Wilcoxon's signed ranks) asks
    for, which a turn that something else disturbed does not widen. No quartet is left out.

    Transactions are counted by the bytes that they move through the loopback device, as pgbench tells of whole seconds only; the
    watch's own do not go through it. What the watch catches up after it stood still falls between the turns. Where an unbroken
    watch, before the turns or after them, takes more CPU time in a second than it does in its turns, the loss counts for as much more.
    """
    longest_s = QUARTETS * 4 * (TURN_S + 3 * GAP_S) + 2 * WATCH_S + 600
    with loaded(crowded, longest_s, tmp_path) as load, watching(crowded, monitor(crowded)) as watch:
        before, after = Turns(), Turns()
        before.add(watch, WATCH_S)
        ratios, turns = quartets(watch, QUARTETS, TURN_S)
        threading.Event().wait(1.0)
        after.add(watch, WATCH_S)
        last = load.told()
    low, middle, high = (math.exp(value) for value in hodges_lehmann(ratios))
    more = max(
        1.0, before.cpu_ms_per_s() / turns[True].cpu_ms_per_s(), after.cpu_ms_per_s() / turns[True].cpu_ms_per_s()
    )
    warm, whole = _bytes_each(load.warm[0], load.warm[-1]), _bytes_each(load.warm[0], last)
    print(f"\ntransactions with a watch over those without: {middle:.4f} ({low:.4f} to {high:.4f}), {QUARTETS} quartets of turns"
          f" of {TURN_S:g} s, {math.exp(statistics.stdev(ratios)) - 1:.1%} from one to another; of all turns together"
          f" {turns[True].moved_bytes / turns[True].seconds / turns[False].moved_bytes * turns[False].seconds:.4f};"
          f" {warm:.1f} bytes of a transaction at first, {whole:.1f} over all\nin a second with the watch: {turns[True]}"
          f"\nwithout: {turns[False]}\nin one before the turns: {before}\nand after: {after}"
          f"\nthe least ratio with all of an unbroken watch's work: {1 - (1 - low) * more:.4f}")  # fmt: skip
    assert warm == pytest.approx(whole, rel=SAME_MAX), "others used the loopback device"
    for probe in PROBES:
        assert turns[True].asked_per_s(probe) >= ASKED_MIN * min(before.asked_per_s(probe), after.asked_per_s(probe))
    # Questions that were on their way are counted when they are answered, a fifth of them in the turns that follow; the work is not there.
    assert turns[False].cpu_ms_per_s() < STILL_MAX * turns[True].cpu_ms_per_s()
    assert 1 - (1 - low) * more > RATIO_MIN


def _bytes_each(first: Told, last: Told) -> float:
    """Of a transaction between two instants."""
    return (last.moved_bytes - first.moved_bytes) / (last.transactions - first.transactions)


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
