"""What sessions wait for: seen when it happens, at absolute instants, with every lost sample counted."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.machine.waiting import wait_until
from pgdyno.probe.sampler import local_backend
from pgdyno.probe.sql import SqlProbe, WaitEventProbe
from pgdyno.results.tables import conform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.probe.samples import ProbeTables
    from pgdyno.server.cluster import Cluster

INTERVAL_S = 0.02
LOCK = "SELECT pg_advisory_xact_lock(4242)"


def rows(samples: ProbeTables) -> list[dict[str, Any]]:
    """The table's rows, in the columns that a run would keep."""
    return conform("probe/wait_events", samples.tables["probe/wait_events"]).to_pylist()


def cost(samples: ProbeTables) -> dict[str, Any]:
    """The row of what the probe took."""
    (row,) = conform("probe/cost", samples.tables["probe/cost"]).to_pylist()
    return row


def sampled(probe: WaitEventProbe, count: int) -> bool:
    """Wait until so many more samples were taken."""
    goal = probe.samples_taken + count
    return wait_until(lambda: probe.samples_taken >= goal, 60.0)


@contextlib.contextmanager
def one_waits_for_a_lock(server: Cluster) -> Iterator[None]:
    """Two sessions, one of which waits for a lock that the other one holds."""
    with server.connect(autocommit=False) as holder, server.connect(autocommit=False) as waiter:
        holder.execute(LOCK)
        waiting = threading.Thread(target=waiter.execute, args=(LOCK,))
        waiting.start()
        with server.connect() as watcher:
            query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            assert wait_until(lambda: watcher.execute(query).fetchone() == (1,), 60.0)
        try:
            yield
        finally:
            holder.rollback()
            waiting.join()
            waiter.rollback()


def see_a_wait(server: Cluster) -> None:
    with one_waits_for_a_lock(server), WaitEventProbe(server.dsn, INTERVAL_S) as probe:
        assert sampled(probe, 10)
        samples = probe.stop()
    documents = rows(samples)
    instants = {row["t_begin_ns"] for row in documents}
    waiting = [row for row in documents if (row["wait_event_type"], row["wait_event"]) == ("Lock", "advisory")]
    assert {row["t_begin_ns"] for row in waiting} == instants, "it waited during every sample"
    assert {(row["backend_type"], row["count"]) for row in waiting} == {("client backend", 1)}
    # The session that holds the lock is idle in its transaction: it waits for its client.
    assert ("Client", "ClientRead") in {(row["wait_event_type"], row["wait_event"]) for row in documents}
    assert all(row["t_end_ns"] > row["t_begin_ns"] for row in documents)
    taken = cost(samples)
    assert taken["samples"] == len(instants)
    assert taken["answer_ns"] >= sum(
        {row["t_begin_ns"]: row["t_end_ns"] - row["t_begin_ns"] for row in documents}.values()
    )


def test_a_wait_is_seen_for_as_long_as_it_lasts(cluster: Cluster) -> None:
    see_a_wait(cluster)


def test_other_versions_answer_the_same(older_server: Cluster) -> None:
    see_a_wait(older_server)


def test_a_session_that_computes_is_on_a_cpu(cluster: Cluster) -> None:
    with cluster.connect() as busy:
        thread = threading.Thread(
            target=lambda: busy.execute("SELECT sum(i) FROM generate_series(1, 3000000) AS i, generate_series(1, 1)")
        )
        with WaitEventProbe(cluster.dsn, INTERVAL_S) as probe:
            thread.start()
            thread.join()
            samples = probe.stop()
    seen = [row["count"] for row in rows(samples) if row["wait_event_type"] == "CPU"]
    assert max(seen) == 1


def test_samples_without_a_busy_session_are_there_all_the_same(cluster: Cluster) -> None:
    with WaitEventProbe(cluster.dsn, INTERVAL_S) as probe:
        assert sampled(probe, 5)
        samples = probe.stop()
    documents = rows(samples)
    assert len({row["t_begin_ns"] for row in documents}) == cost(samples)["samples"] == probe.samples_taken


def test_a_server_that_stands_still_costs_samples_and_does_not_hang_the_probe(cluster: Cluster) -> None:
    """The session's process is stopped: no timeout of the server's can end the wait."""
    with WaitEventProbe(cluster.dsn, INTERVAL_S, patience_s=0.5) as probe:
        assert sampled(probe, 3)
        with cluster.connect() as connection:
            result = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgdyno probe'"
            ).fetchone()
        assert result is not None
        os.kill(result[0], signal.SIGSTOP)
        try:
            samples = probe.stop()
        finally:
            os.kill(result[0], signal.SIGCONT)
    taken = cost(samples)
    # Deadlines passed during the half second of patience, and the sample that was waited for brought nothing.
    # On a busy machine its thread wakes late: so much of the patience has no deadline. Half of it is left for that.
    assert taken["lost_samples"] >= 0.5 * 0.5 / INTERVAL_S
    assert "wait_events" in {gap.what for gap in samples.gaps}


def test_a_session_that_is_ended_is_a_gap_and_another_one_looks_on(cluster: Cluster) -> None:
    with WaitEventProbe(cluster.dsn, INTERVAL_S) as probe:
        assert sampled(probe, 3)
        with cluster.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgdyno probe'"
            )
        assert sampled(probe, 5)
        samples = probe.stop()
    lost = [gap for gap in samples.gaps if gap.what == "wait_events"]
    assert lost
    assert lost[0].why
    assert max(row["t_begin_ns"] for row in rows(samples)) > lost[-1].end_ns


def test_what_the_probes_cost_is_recorded(cluster: Cluster) -> None:
    with cluster.connect() as connection:
        assert local_backend(connection) == connection.info.backend_pid
    samples = SqlProbe(cluster.dsn).start().stop()
    pylist = conform("probe/cost", samples.tables["probe/cost"]).to_pylist()
    assert [row["probe"] for row in pylist] == ["sql", "wait_events"]
    for row in pylist:
        assert row["samples"] >= 2
        assert 0 < row["client_cpu_ns"] / row["samples"] < 50_000_000
        assert 0 < row["server_cpu_ns"] / row["samples"] < 50_000_000, "the server runs on this host"


@pytest.mark.bench
def test_a_sample_of_sixty_sessions_costs_less_than_two_milliseconds_of_cpu(cluster: Cluster) -> None:
    """2 ms ten times a second are 2 % of one core."""
    with contextlib.ExitStack() as sessions:
        for _ in range(60):
            sessions.enter_context(cluster.connect())
        with WaitEventProbe(cluster.dsn) as probe:
            assert sampled(probe, 50)
            taken = cost(probe.stop())
    server_us, client_us = (taken[name] / taken["samples"] / 1e3 for name in ("server_cpu_ns", "client_cpu_ns"))
    print(f"a sample of wait events: {server_us:.0f} us of the server's CPU, {client_us:.0f} us of the probe's")
    assert server_us + client_us < 2000


def see_commands(server: Cluster) -> None:
    """A transaction that has lasted for more than a second, and a command that reports its progress."""
    statements = ("SELECT pg_sleep(60)", "COPY (SELECT pg_sleep(0.01) FROM generate_series(1, 6000)) TO '/dev/null'")
    with contextlib.ExitStack() as ending, WaitEventProbe(server.dsn, INTERVAL_S, watched=True) as probe:
        probe._commands_for = 0  # as after a time in which no session waited for a volume
        assert sampled(probe, 2)
        assert not probe._commands_for, "nobody waits, so nobody's command is asked for"
        for statement in statements:
            ending.enter_context(_running(server, statement))
        assert wait_until(lambda: {b"LONG TRANSACTION", b"COPY TO"} <= {state[-1] for state in [*probe._states]}, 60.0)
        samples = probe.stop()
    assert {"LONG TRANSACTION", "COPY TO"} <= {row["command"] for row in rows(samples)}


@contextlib.contextmanager
def _running(server: Cluster, statement: str) -> Iterator[None]:
    """A statement that is cancelled at the end of the ``with`` block."""
    with server.connect() as connection:

        def execute() -> None:
            with contextlib.suppress(psycopg.errors.QueryCanceled):
                connection.execute(statement.encode())

        thread = threading.Thread(target=execute)
        thread.start()
        try:
            yield
        finally:
            connection.cancel()
            thread.join()


def test_a_watch_sees_who_reads_what_no_counter_has_yet(cluster: Cluster) -> None:
    see_commands(cluster)


def test_other_versions_show_the_same_commands(older_server: Cluster) -> None:
    see_commands(older_server)
