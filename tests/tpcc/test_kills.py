"""Sessions that are ended and a server that is killed in a run: what was committed is there once, and the conditions hold."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.kinds.tpcc.audit import tpm_per_nopm
from pgdyno.workload.fill import fill
from pgdyno.workload.outcome import RunRequest
from pgdyno.workload.tpcc_conditions import conditions_of, violated

from ..drive.driven import PAUSE_MS
from ..fill.filled import Database
from ..support.servers import older_server, throwaway_cluster
from .test_runs import tpcc, wrong

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgdyno.kinds.tpcc.kind import Tpcc
    from pgdyno.server.cluster import Cluster
    from pgdyno.workload.outcome import Outcome

__all__ = ["older_server"]

DURABLE = {"shared_buffers": "64MB", "synchronous_commit": "on"}
"""What was acknowledged must outlive the server's processes."""
_END_HALF = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name = 'pgdyno drive' AND pid % 2 = 0"
)


def _run_with_kills(cluster: Cluster, folder: Path, seconds: float, rounds: int, **result: Any) -> None:
    """A run in which half of the sessions are ended, then the server is killed and started again, so many times."""
    with psycopg.connect(cluster.dsn, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS killed")
        connection.execute("CREATE DATABASE killed")
    mine, workload = Database(cluster, "killed"), tpcc(**result)
    fill(mine, workload.data_set())
    cluster.stop()
    cluster.start(DURABLE)
    began, done = threading.Event(), threading.Event()
    lost: list[str] = []

    def disturb() -> None:
        began.wait(60)
        for number in range(rounds):
            if done.wait(seconds / (rounds + 1)):
                return
            with psycopg.connect(cluster.dsn, autocommit=True) as connection:
                connection.execute(_END_HALF.encode())
            lost.append(f"sessions {number}")
            cluster.kill()
            cluster.start(DURABLE)
            lost.append(f"server {number}")

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        outcome = workload.runner()(mine, RunRequest(seconds, folder, on_measure_begin=began.set))
    finally:
        done.set()
        thread.join()
    assert len(lost) == 2 * rounds
    assert outcome.uncounted_max >= workload.clients
    assert wrong(workload.proofs(mine, outcome, full=True)) == []


def test_what_was_committed_is_there_after_a_kill(tmp_path: Path) -> None:
    with throwaway_cluster() as cluster:
        _run_with_kills(cluster, tmp_path, 4.0, 1, profile="spec", routines="statements", think_ms=2 * PAUSE_MS)


@pytest.mark.bench
@pytest.mark.parametrize(
    "asked",
    [
        {"profile": "hammerdb"},
        {"profile": "hammerdb", "routines": "procedures"},
        {"profile": "spec"},
        {"profile": "spec", "routines": "statements"},
    ],
    ids=lambda item: "-".join(item.values()),
)
def test_what_was_committed_is_there_after_many_kills(tmp_path: Path, asked: dict[str, Any]) -> None:
    with throwaway_cluster() as cluster:
        _run_with_kills(cluster, tmp_path, 60.0, 5, warehouses=2, clients=16, **asked)


def _require_mixed(workload: Tpcc, outcome: Outcome) -> None:
    """TPM/NOPM, counted at the client, is the mix's within four standard errors: 2.3 times the root of 1.3/n each."""
    by_type = outcome.succeeded_by_type
    all_of_them = sum(by_type.values())
    allowed = 4 * 2.3 * math.sqrt(1.3 / all_of_them)
    assert all_of_them / by_type["new_order"] == pytest.approx(tpm_per_nopm(workload.profile), abs=allowed)


@pytest.mark.bench
@pytest.mark.parametrize("routines", ["functions", "statements"])
def test_an_older_server_keeps_what_was_committed(older_server: Cluster, tmp_path: Path, routines: str) -> None:
    # One of its own: what is killed and started again is no longer the server that other tests share.
    with throwaway_cluster(older_server.binaries.bin_dir) as cluster:
        _run_with_kills(cluster, tmp_path, 30.0, 3, profile="spec", routines=routines, warehouses=2, clients=16)


@pytest.mark.bench
@pytest.mark.parametrize("profile", ["hammerdb", "spec"])
def test_an_older_server_holds_the_conditions_after_the_load_and_after_a_minute_of_sixteen_clients(
    older_server: Cluster, tmp_path: Path, profile: str
) -> None:
    with psycopg.connect(older_server.dsn, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS minute WITH (FORCE)")
        connection.execute("CREATE DATABASE minute")
    mine, workload = Database(older_server, "minute"), tpcc(profile=profile, warehouses=2, clients=16)
    fill(mine, workload.data_set())
    with psycopg.connect(mine.dsn) as connection:
        assert list(violated(connection, conditions_of(workload.profile, loaded=True), None)) == []
    outcome = workload.runner()(mine, RunRequest(60.0, tmp_path))
    assert wrong((*outcome.checks, *workload.proofs(mine, outcome, full=True))) == []
    _require_mixed(workload, outcome)


@pytest.mark.bench
@pytest.mark.parametrize("profile", ["hammerdb", "spec"])
def test_conditions_and_inputs_hold_after_a_minute_of_sixteen_clients(
    hammerdb: Database, spec: Database, clone: Callable[[Database], Database], tmp_path: Path, profile: str
) -> None:
    mine = clone(hammerdb if profile == "hammerdb" else spec)
    workload = tpcc(profile=profile, clients=16)
    outcome = workload.runner()(mine, RunRequest(60.0, tmp_path))
    assert wrong((*outcome.checks, *workload.proofs(mine, outcome, full=True))) == []
    _require_mixed(workload, outcome)
