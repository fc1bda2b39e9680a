"""Which statements read, log and spill most: pg_stat_statements of a real server, without its texts unless they are asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.advise.diagnose.diagnosis import diagnose
from pgdyno.advise.diagnose.remedies import Purchase
from pgdyno.advise.diagnose.watch import target_of, watch
from pgdyno.advise.diagnose.words import lines
from pgdyno.machine.waiting import wait_until
from pgdyno.probe.sql import StatementsProbe
from pgdyno.results import open_run

from ..support.commands import pgdyno
from ..support.pooler import CLEAN, pgbouncer
from ..support.servers import throwaway_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.advise.diagnose.diagnosis import Diagnosis
    from pgdyno.server.cluster import Cluster

PROBES = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno probe'"


@pytest.fixture(scope="module")
def counting() -> Iterator[Cluster]:
    """A server with the extension, in a schema of its own and in one database alone."""
    with throwaway_cluster(settings={"shared_preload_libraries": "pg_stat_statements"}) as cluster:
        with cluster.connect() as connection:
            connection.execute("CREATE SCHEMA kept; CREATE EXTENSION pg_stat_statements SCHEMA kept")
            connection.execute("CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor; CREATE ROLE weak LOGIN")
            connection.execute(
                "GRANT USAGE ON SCHEMA kept TO monitor, weak; CREATE ROLE outside LOGIN; GRANT pg_monitor TO outside"
            )
            connection.execute("CREATE TABLE notes (n int, note text)")
        yield cluster


@pytest.fixture
def busy(counting: Cluster) -> Iterator[None]:
    """A session that writes WAL, and one that spills."""
    stop = threading.Event()

    def work(statement: str) -> None:
        with counting.connect() as connection:
            connection.execute("SET work_mem = '64kB'")
            while not stop.is_set():
                connection.execute(statement.encode())

    statements = (
        "INSERT INTO notes SELECT i, 'a' FROM generate_series(1, 500) AS i",
        "SELECT count(*) FROM (SELECT i FROM generate_series(1, 20000) AS i ORDER BY i DESC) AS sorted",
    )
    threads = [threading.Thread(target=work, args=(statement,)) for statement in statements]
    for thread in threads:
        thread.start()
    yield
    stop.set()
    for thread in threads:
        thread.join()


@pytest.fixture(params=["1.4", "1.7"])
def not_updated(counting: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with the extension as pg_upgrade leaves it: its SQL is of an older version."""
    name = f"old_{request.param.replace('.', '_')}"
    with counting.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    with counting.connect(dbname=name) as connection:
        connection.execute(
            f"CREATE SCHEMA ext; CREATE EXTENSION pg_stat_statements SCHEMA ext VERSION '{request.param}'".encode()
        )
    yield counting.dsn_of("postgres", name)
    with counting.connect() as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_an_extension_that_was_not_updated_names_the_statement_that_does_it(not_updated: str, tmp_path: Path) -> None:
    (text,) = [text for text in watched(not_updated, tmp_path).missing if text.startswith("which statements")]
    assert "ALTER EXTENSION pg_stat_statements UPDATE" in text
    refused = pgdyno("capture", "stats", not_updated, code=2)
    assert refused.error is not None
    assert refused.error.code == "statements.extension.old"
    with psycopg.connect(not_updated, autocommit=True) as connection:
        connection.execute("ALTER EXTENSION pg_stat_statements UPDATE")
    assert not [text for text in watched(not_updated, tmp_path).missing if text.startswith("which statements")]


def test_texts_have_no_literals_where_the_server_left_them_in(counting: Cluster, tmp_path: Path) -> None:
    """Until version 15 no utility command was normalised; a function's body, a DO block's and a default never are."""
    stop = threading.Event()
    statements = (
        "DO $$ BEGIN PERFORM 'secret', 4711; END $$",
        "CREATE OR REPLACE FUNCTION f() RETURNS text LANGUAGE sql AS $f$SELECT 'secret 4711'$f$",
        "DROP TABLE IF EXISTS made",
        "CREATE TABLE made AS SELECT 'secret 4711' AS a",
        "DROP TABLE IF EXISTS checked",
        "CREATE TABLE checked (a text DEFAULT 'secret 4711' CHECK (a <> 'secret 4711'))",
    )

    def work() -> None:
        with counting.connect() as connection:
            while not stop.is_set():
                for statement in statements:
                    connection.execute(statement.encode())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        path = watch(target_of(counting.dsn), Purchase(), 1.5, tmp_path, texts=True)
    finally:
        stop.set()
        thread.join()
    texts = [text for text in open_run(path).table("probe/statements")["query"].to_pylist() if text]
    assert any("CREATE TABLE checked" in text for text in texts)
    assert not [text for text in texts if "secret" in text or "4711" in text]


def watched(dsn: str, root: Path, *, texts: bool = False) -> Diagnosis:
    return diagnose(watch(target_of(dsn), Purchase(), 1.5, root, texts=texts))


def as_role(cluster: Cluster, role: str) -> str:
    return cluster.dsn.replace("user=postgres", f"user={role}")


@pytest.mark.usefixtures("busy")
def test_the_statements_that_move_most_are_named_by_their_queryid(counting: Cluster, tmp_path: Path) -> None:
    diagnosis = watched(as_role(counting, "monitor"), tmp_path)
    by_wal = max(diagnosis.statements, key=lambda statement: statement.wal_bytes)
    by_temp = max(diagnosis.statements, key=lambda statement: statement.temp_bytes)
    assert by_wal.wal_bytes > 500 * 20
    assert by_temp.temp_bytes > 100_000
    assert by_wal.queryid != by_temp.queryid
    assert all(statement.query is None for statement in diagnosis.statements)
    assert set(open_run(diagnosis.run.path).table("probe/statements")["query"].to_pylist()) == {None}
    assert any(line.startswith("statement queryid ") for line in lines(diagnosis))
    slow = next(finding for finding in diagnosis.findings if finding.rule == "log_min_duration_statement")
    assert "(the setting is off)" in slow.figure


@pytest.mark.usefixtures("busy")
def test_texts_are_kept_where_they_are_asked_for_and_passwords_never(counting: Cluster, tmp_path: Path) -> None:
    with counting.connect() as connection:
        connection.execute("CREATE ROLE other PASSWORD 'very secret'")
    diagnosis = watched(as_role(counting, "monitor"), tmp_path, texts=True)
    assert any("INSERT INTO notes" in (statement.query or "") for statement in diagnosis.statements)
    kept = [text for text in open_run(diagnosis.run.path).table("probe/statements")["query"].to_pylist() if text]
    assert not any("secret" in text for text in kept)


@pytest.mark.usefixtures("busy")
def test_a_role_that_may_not_see_other_roles_statements_has_none_of_them(counting: Cluster, tmp_path: Path) -> None:
    diagnosis = watched(as_role(counting, "weak"), tmp_path)
    assert not any(statement.temp_bytes for statement in diagnosis.statements)


def test_a_role_that_may_not_use_the_extensions_schema_says_so(counting: Cluster, tmp_path: Path) -> None:
    diagnosis = watched(as_role(counting, "outside"), tmp_path)
    assert "which statements: permission denied for schema kept" in diagnosis.missing


@pytest.mark.usefixtures("busy")
def test_a_reset_during_the_watch_is_said(counting: Cluster, tmp_path: Path) -> None:
    def reset(left_s: float) -> None:
        if left_s < 1.0 and not done:
            done.append(True)
            with counting.connect() as connection:
                connection.execute("SELECT kept.pg_stat_statements_reset()")

    done: list[bool] = []
    diagnosis = diagnose(watch(target_of(as_role(counting, "monitor")), Purchase(), 2.0, tmp_path, reset))
    assert done
    assert diagnosis.statements == ()
    assert "which statements: pg_stat_statements was reset during the watch" in diagnosis.missing


@pytest.mark.needs_pgbouncer
@pytest.mark.usefixtures("busy")
def test_through_a_pooler_they_are_seen_and_nothing_stays(counting: Cluster, tmp_path: Path) -> None:
    with pgbouncer(counting) as pooler:
        diagnosis = watched(pooler.dsn(), tmp_path)
        assert pooler.leftovers() == [CLEAN] * pooler.pool_size
    assert diagnosis.statements


def test_without_the_extension_there_is_nothing_to_say(cluster: Cluster, tmp_path: Path) -> None:
    diagnosis = watched(cluster.dsn, tmp_path)
    assert diagnosis.statements == ()
    assert open_run(diagnosis.run.path).table("probe/statements").num_rows == 0
    with cluster.connect() as connection:  # there, and not loaded
        connection.execute("CREATE EXTENSION pg_stat_statements")
    try:
        diagnosis = watched(cluster.dsn, tmp_path)
        assert diagnosis.statements == ()
        assert any("must be loaded via" in text for text in diagnosis.missing)
    finally:
        with cluster.connect() as connection:
            connection.execute("DROP EXTENSION pg_stat_statements")


def test_catalogs_that_answer_too_late_leave_the_statements_out_and_nothing_else(counting: Cluster) -> None:
    """As on a volume at its limit, from which the extension's own pages are still to be read."""
    with counting.connect() as other, other.transaction():
        other.execute("LOCK TABLE pg_catalog.pg_extension IN ACCESS EXCLUSIVE MODE")
        probe = StatementsProbe(as_role(counting, "monitor"), patience_s=0.3)
        probe.start()
        samples = probe.stop()
    assert samples.tables.get("probe/statements") is None
    assert [(gap.what, gap.why) for gap in samples.gaps] == [
        ("sql.statements", "canceling statement due to statement timeout")
    ]


@pytest.mark.parametrize("role", ["monitor", "outside", "without the extension"])
def test_no_session_stays_idle_between_the_first_sample_and_the_last(
    cluster: Cluster, counting: Cluster, role: str
) -> None:
    server, dsn = (counting, as_role(counting, role)) if role in ("monitor", "outside") else (cluster, cluster.dsn)
    with server.connect() as other, StatementsProbe(dsn):
        assert wait_until(lambda: other.execute(PROBES).fetchone() == (0,), 5.0)
