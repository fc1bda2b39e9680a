"""Questions that are sent at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.probe.sampler import ask_together, local_backend

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

WHEN = "SELECT extract(epoch FROM now())"


def prepared(connection: psycopg.Connection[tuple[object, ...]], *queries: str) -> list[bytes]:
    """Their names."""
    names = [f"question_{number}".encode() for number in range(len(queries))]
    for name, query in zip(names, queries, strict=True):
        connection.pgconn.prepare(name, query.encode())
    return names


def slept(pid: int) -> int:
    """How often a process waited for something."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))


def test_each_has_its_answer_and_all_are_one_transaction(cluster: Cluster) -> None:
    with cluster.connect() as connection:
        names = prepared(connection, WHEN, "SELECT i FROM generate_series(1, 5000) AS i", "SELECT 1 WHERE false", WHEN)
        first, many, none, last = ask_together(connection.pgconn, names)
        assert first.get_value(0, 0) == last.get_value(0, 0)
        assert [many.get_value(row, 0) for row in (0, 4999)] == [b"1", b"5000"]
        assert (many.ntuples, none.ntuples) == (5000, 0)
        (again,) = ask_together(connection.pgconn, names[:1])
        assert again.get_value(0, 0) != first.get_value(0, 0)


def test_who_answers_wakes_once(cluster: Cluster) -> None:
    with cluster.connect() as connection:
        backend = local_backend(connection)
        assert backend is not None
        names = prepared(connection, *[f"SELECT {number}" for number in range(8)])
        counts = []
        for _ in range(20):  # a page of memory or a lock is waited for now and then
            before = slept(backend)
            ask_together(connection.pgconn, names)
            counts.append(slept(backend) - before)
    assert min(counts) <= 1


def test_an_error_is_raised_and_the_session_goes_on(cluster: Cluster) -> None:
    with cluster.connect() as connection:
        names = prepared(connection, "SELECT 1", "SELECT 1 / (SELECT 0)", "SELECT 2")
        with pytest.raises(psycopg.errors.DivisionByZero):
            ask_together(connection.pgconn, names)
        assert connection.execute("SELECT 3").fetchone() == (3,)
        assert [answer.get_value(0, 0) for answer in ask_together(connection.pgconn, names[::2])] == [b"1", b"2"]


def test_a_connection_that_is_lost_meanwhile_is_an_error_and_other_threads_go_on(cluster: Cluster) -> None:
    with cluster.connect() as connection, cluster.connect() as other, ThreadPoolExecutor(1) as thread:
        names = prepared(connection, "SELECT 1", "SELECT pg_sleep(600)")
        submit = thread.submit(ask_together, connection.pgconn, names)
        other.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        with pytest.raises(psycopg.errors.AdminShutdown):
            submit.result()
        assert connection.closed
