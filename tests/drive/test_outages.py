"""Servers and drivers that are stopped, restarted and killed: nothing that was scheduled is missing, and waiting shows."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.machine.waiting import wait_until
from pgdyno.workload import histogram

from .driven import PAUSED, driving, line, own_script, settled, spec, summary_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgdyno drive'"
LEDGER = "SELECT count(*), coalesce(sum(delta), 0), (SELECT sum(abalance) FROM pgbench_accounts) FROM pgbench_history"
RATE_PER_S = 200
CLIENTS = 4
PATIENCE_S = 20.0
STALL_RESPONSE_US = 1_500_000
"""A fifth of a run is due in a stall of 2 s in 10 s: the worst 1 % of all, the first twentieth of those, wait 1.9 s."""
SERVICE_US_MAX = 500_000
"""Of the 2,000 transactions at most eight were under way when the server stopped, 0.4 %: not the ones of the p99."""


def sessions(dsn: str) -> list[int]:
    """Process ids of the backends that serve the driver."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        return [int(pid) for (pid,) in connection.execute(SESSIONS).fetchall()]


@contextlib.contextmanager
def stopped(processes: list[int]) -> Iterator[None]:
    """Stop processes for the length of a block."""
    try:
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in processes:
            os.kill(pid, signal.SIGCONT)


def steady(duration_ms: int, **more: Any) -> dict[str, Any]:
    """A schedule that goes on whatever the server does."""
    result = spec("tpcb-like", clients=CLIENTS, arrivals={"fixed": {"rate_per_s": RATE_PER_S}})
    return result | {"duration_ms": duration_ms} | more


def test_a_server_that_stops_for_two_seconds_shows_in_the_response_time(dsn: str) -> None:
    result = spec("select-only", clients=8, arrivals={"fixed": {"rate_per_s": RATE_PER_S}}, duration_ms=10_000)
    with driving(dsn, result) as process:
        for _ in range(4):  # ready, and three seconds
            line(process)
        backends = sessions(dsn)
        assert len(backends) == 8
        with stopped(backends):
            line(process)
            line(process)
        _, answer = summary_of(process)
    assert settled(answer) == answer["scheduled_with_warmup"]
    assert abs(answer["succeeded"] - 10 * RATE_PER_S) <= 1, "all were made up for"
    response = histogram.decode(answer["scripts"][0]["response_us"])
    service = histogram.decode(answer["scripts"][0]["service_us"])
    assert response.get_value_at_percentile(99) >= STALL_RESPONSE_US
    assert service.get_value_at_percentile(99) < SERVICE_US_MAX
    assert service.get_max_value() >= STALL_RESPONSE_US, "those under way had it in their service time too"


def test_a_restarted_server_is_found_again_and_its_absence_counted(own: Cluster) -> None:
    """It drives until the server answers again, however long its start takes on this machine."""
    with driving(own.dsn, steady(60_000)) as process:
        line(process)
        line(process)
        own.stop("immediate")
        lost, whole_seconds = 0, 1  # of the two lines the first says that it is ready
        own.start({})
        while True:
            second = line(process)["second"]
            whole_seconds += 1
            lost += second["connections_lost"]
            if lost == CLIENTS and second["connections_lost"] == 0 and second["succeeded"] > 0:
                break  # it works again
        process.send_signal(signal.SIGTERM)
        _, result = summary_of(process)
    assert result["connections_lost"] == CLIENTS
    assert result["errors"].get("connection", 0) == result["failed"] <= CLIENTS, "those that were under way"
    assert result["down_ns"] > 0
    assert settled(result) == result["scheduled_with_warmup"]
    assert settled(result) >= whole_seconds * RATE_PER_S - 1, "the schedule went on without a server"


def test_a_server_that_is_killed_and_stays_away_ends_no_account(own: Cluster) -> None:
    with driving(own.dsn, steady(3000)) as process:
        line(process)
        line(process)
        own.kill()
        try:
            _, result = summary_of(process)
        finally:
            own.start({})
    assert result["connections_lost"] == CLIENTS
    assert settled(result) == result["scheduled_with_warmup"]
    assert abs(settled(result) - 3 * RATE_PER_S) <= 1
    assert result["skipped_ended"] >= RATE_PER_S, "what nobody could be asked for after the first second"
    assert result["succeeded"] > 0


def ledger(dsn: str) -> list[int]:
    """Rows of history, the sum of its changes, the sum of the accounts' balances."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(LEDGER).fetchone()
    assert row is not None
    return [int(value) for value in row]


def test_a_killed_driver_leaves_whole_transactions_and_true_seconds(dsn: str) -> None:
    before = ledger(dsn)
    with driving(dsn, steady(60_000)) as process:
        line(process)
        result = [line(process)["second"] for _ in range(2)]
        process.kill()
        rest = process.stdout.read() if process.stdout else b""
    result += [json.loads(more)["second"] for more in rest.split(b"\n")[:-1]]
    assert wait_until(lambda: not sessions(dsn), PATIENCE_S), "the server notices"
    rows, deltas, balances = (after - old for after, old in zip(ledger(dsn), before, strict=True))
    assert deltas == balances, "whole transactions"
    counted = sum(second["succeeded"] for second in result)
    assert counted <= rows <= counted + RATE_PER_S + CLIENTS, "and at most those of the second that it did not tell"


def test_a_driver_that_is_told_to_stop_accounts_for_all_that_it_began(dsn: str) -> None:
    before = ledger(dsn)
    with driving(dsn, steady(60_000, threads=2)) as process:
        line(process)
        line(process)
        process.send_signal(signal.SIGTERM)
        _, result = summary_of(process)
    assert settled(result) == result["scheduled_with_warmup"]
    rows, deltas, balances = (after - old for after, old in zip(ledger(dsn), before, strict=True))
    assert rows == result["succeeded"] >= RATE_PER_S // 2
    assert deltas == balances


def test_a_driver_that_is_told_to_stop_does_not_wait_for_what_is_due_later(dsn: str) -> None:
    """The clients have taken transactions from the schedule that are due after 30, 60, 90 and 120 s."""
    document = steady(600_000, arrivals={"fixed": {"rate_per_s": 1 / 30}}, drain_ms=500)
    with driving(dsn, document) as process:
        line(process)
        line(process)
        process.send_signal(signal.SIGTERM)
        _, result = summary_of(process)
    assert result["failed"] == result["skipped_ended"] == 0
    assert settled(result) == result["scheduled_with_warmup"]


def test_a_server_that_never_answers_is_given_up_after_the_time_to_drain(dsn: str) -> None:
    result = spec(workload=own_script("SELECT 1;"), arrivals={"fixed": {"rate_per_s": RATE_PER_S}})
    with driving(dsn, result | {"duration_ms": 2000, "drain_ms": 200}) as process:
        line(process)
        with stopped(sessions(dsn)):
            _, answer = summary_of(process)
    assert settled(answer) == answer["scheduled_with_warmup"]
    assert answer["errors"] == {"connection": answer["failed"]}
    assert answer["failed"] == CLIENTS


def test_what_waits_in_a_pipeline_is_not_taken_for_done_when_its_session_is_lost(dsn: str) -> None:
    text = "\\startpipeline\nSELECT 1;\n\\sleep 5 s\nSELECT 2;\n\\endpipeline\n"
    with driving(dsn, spec(workload=own_script(text), clients=CLIENTS)) as process:
        line(process)
        with psycopg.connect(dsn, autocommit=True) as connection:
            for pid in sessions(dsn):
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
        _, result = summary_of(process)
    assert result["connections_lost"] == CLIENTS
    assert result["succeeded"] == 0
    assert result["errors"] == {"connection": CLIENTS}


@contextlib.contextmanager
def guest(cluster: Cluster, name: str) -> Iterator[str]:
    """A role of a test's own that may read pgbench's tables; its connection string."""
    with psycopg.connect(cluster.dsn, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN; GRANT pg_read_all_data TO {name}".encode())
        try:
            yield cluster.dsn_of(name, "postgres")
        finally:
            admin.execute(f"DROP ROLE {name}".encode())


def put_out(cluster: Cluster, change: str) -> None:
    """Change what the server lets in, and end the driver's sessions."""
    with psycopg.connect(cluster.dsn, autocommit=True) as admin:
        admin.execute(change.encode())
        for pid in sessions(cluster.dsn):
            admin.execute("SELECT pg_terminate_backend(%s)", (pid,))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_role_that_may_not_log_in_any_more_ends_the_run_with_the_reason(
    dsn: str, cluster: Cluster, threads: int
) -> None:
    with (
        guest(cluster, "revoked") as own,
        driving(own, spec(duration_ms=60_000, threads=threads, arrivals=PAUSED)) as process,
    ):
        line(process)
        line(process)
        put_out(cluster, "ALTER ROLE revoked NOLOGIN")
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, err
    summary = json.loads(out.splitlines()[-1])["summary"]
    assert summary["ended_by"]["code"] == json.loads(err.splitlines()[-1])["error"]["code"] == "drive.reconnect.refused"
    assert summary["ended_by"]["data"] == {"sqlstate": "28000"}
    assert set(summary["reconnects_failed"]) == {"28000"}
    assert summary["reconnect_error"]
    assert settled(summary) == summary["scheduled_with_warmup"]
    assert summary["succeeded"] > 0


def test_a_server_without_room_is_asked_again_more_and_more_seldom_until_it_has_some(
    dsn: str, cluster: Cluster
) -> None:
    with guest(cluster, "crowded") as own, driving(own, spec(duration_ms=60_000, arrivals=PAUSED)) as process:
        line(process)
        line(process)
        put_out(cluster, "ALTER ROLE crowded CONNECTION LIMIT 0")
        seconds = [line(process)["second"] for _ in range(4)]
        put_out(cluster, "ALTER ROLE crowded CONNECTION LIMIT -1")
        while line(process)["second"]["succeeded"] == 0:
            pass
        process.send_signal(signal.SIGTERM)
        _, result = summary_of(process)
    assert sum(second["connections_lost"] for second in seconds) == CLIENTS
    # 50, 100, 200, 400 and 800 ms, and then each second; without a back-off it were 80 in four seconds.
    assert 3 <= result["reconnects_failed"]["53300"] <= 14
    assert "53300" in result["reconnect_error"]
    assert result["ended_by"] is None
    assert settled(result) == result["scheduled_with_warmup"]


@pytest.mark.parametrize("arrivals", ["fixed", "poisson"])
def test_a_backlog_of_millions_does_not_hold_up_the_end(dsn: str, arrivals: str) -> None:
    """A million a second are due for each thread, and all together the server answers some thousands."""
    result = spec(clients=50, threads=50, duration_ms=60_000, arrivals={arrivals: {"rate_per_s": 5e7}})
    with driving(dsn, result) as process:
        for _ in range(4):
            line(process)
        told_s = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, answer = summary_of(process)
        took_s = time.monotonic() - told_s
    assert took_s < PATIENCE_S / 2
    assert answer["skipped_ended"] > 50_000_000
    assert settled(answer) == answer["scheduled_with_warmup"]


def test_what_waits_for_a_lock_does_not_hold_up_a_driver_that_is_told_to_stop(dsn: str, cluster: Cluster) -> None:
    """The time to drain is a minute here; after a signal it is five seconds."""
    with psycopg.connect(cluster.dsn) as holder:
        holder.execute("SELECT pg_advisory_lock(4711)")
        result = spec(workload=own_script("SELECT pg_advisory_lock(4711);"), clients=2, duration_ms=60_000)
        with driving(dsn, result) as process:
            line(process)
            line(process)
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=PATIENCE_S)
    summary = json.loads(out.splitlines()[-1])["summary"]
    assert summary["errors"] == {"connection": 2}
