"""Probes through a connection pooler: nothing of theirs gets to its other clients."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.base import session
from pgdyno.base.errors import HostError, InputError
from pgdyno.probe.sql import CounterProbe, SqlProbe
from pgdyno.probe.visibility import look
from pgdyno.server.remote import RemoteServer
from pgdyno.server.remote import connect as connect_remote

from ..support.pooler import CLEAN, pgbouncer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

    from ..support.pooler import Pooler


@pytest.fixture(scope="module", params=["transaction", "statement"])
def pooler(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Pooler]:
    """A pooler that hands sessions on."""
    with pgbouncer(cluster, request.param) as started:
        yield started


@pytest.mark.needs_pgbouncer
def test_all_is_sampled_and_nothing_is_left(pooler: Pooler) -> None:
    samples = SqlProbe(pooler.dsn()).start().stop()
    assert not [gap for gap in samples.gaps if not gap.why.endswith("deadlines were missed")]
    for row in samples.tables["probe/cost"].to_pylist():
        assert row["samples"] >= 2
        assert row["server_cpu_ns"] is None, "it would be that of other clients too"
    assert pooler.leftovers() == [CLEAN] * pooler.pool_size


@pytest.mark.needs_pgbouncer
def test_what_can_be_seen_is_said_with_the_pooler(cluster: Cluster) -> None:
    with pgbouncer(cluster) as pooler:
        view = look(pooler.dsn())
        assert pooler.leftovers() == [CLEAN] * pooler.pool_size
    (result,) = (row for row in view.visibility if row.what == "the CPU time of the probes' own sessions")
    assert not result.seen
    assert "pooler" in result.why
    assert "the CPU time of the probes' own sessions" not in {row.what for row in look(cluster.dsn).visibility}


@pytest.mark.parametrize("is_own", [True, False])
def test_questions_are_bounded_in_time_and_read_only(cluster: Cluster, is_own: bool) -> None:
    probe = CounterProbe(cluster.dsn, patience_s=0.2)
    with contextlib.closing(probe._connect(10.0)) as connection:
        assert probe._is_own
        if not is_own:
            connection.execute("DISCARD ALL")
            connection.prepare_threshold = None
            probe._is_own = False
        with pytest.raises(psycopg.errors.QueryCanceled):
            probe._question(connection, "SELECT pg_sleep(30)")
        with ThreadPoolExecutor(1) as thread, pytest.raises(psycopg.errors.QueryCanceled):
            thread.submit(probe._answer, connection, "SELECT pg_sleep(30)").result()
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            probe._question(connection, "CREATE TABLE made_by_a_probe ()")
        prepared = connection.execute("SELECT count(*) FROM pg_prepared_statements", prepare=False).fetchone()
        assert (prepared != (0,)) == is_own, "what is asked again and again is planned once"
        if not is_own:
            assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)
            assert connection.execute("SHOW transaction_read_only").fetchone() == ("off",)


@pytest.mark.needs_pgbouncer
def test_prepared_statements_are_refused_where_they_would_collide(pooler: Pooler, cluster: Cluster) -> None:
    with pytest.raises(InputError, match="does not keep clients' prepared statements apart") as caught:
        RemoteServer.open(pooler.dsn()).require_prepared()
    assert "--protocol simple" in caught.value.remedy
    assert pooler.leftovers() == [CLEAN] * pooler.pool_size
    RemoteServer.open(cluster.dsn).require_prepared()


@pytest.mark.needs_pgbouncer
def test_a_pool_in_session_mode_is_told_from_one_that_hands_sessions_on(cluster: Cluster) -> None:
    with pgbouncer(cluster, "session") as pooler:
        with connect_remote(pooler.dsn()) as connection:
            assert session.pooling(connection, lambda: connect_remote(pooler.dsn())) is session.PoolerKind.SESSION
        RemoteServer.open(pooler.dsn()).require_prepared()
    with cluster.connect() as connection:
        assert session.pooling(connection, cluster.connect) is session.PoolerKind.NONE


@pytest.mark.needs_pgbouncer
def test_a_pool_without_a_second_session_is_said_and_not_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "SECOND_SESSION_S", 0.3)
    with (
        pgbouncer(cluster, "session", 1) as pooler,
        connect_remote(pooler.dsn()) as connection,
        pytest.raises(HostError, match=r"no second session within 0.3 s"),
    ):
        session.pooling(connection, lambda: connect_remote(pooler.dsn()))
