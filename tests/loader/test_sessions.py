"""The loader's own sessions: whatever the database's settings are, and where a connection pooler is between."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import pgdyno
from pgdyno.base.errors import (
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_REJECTED,
    EXIT_USAGE,
    InputError,
    PgdynoError,
)
from pgdyno.cli.main import run
from pgdyno.loader import restore, server
from pgdyno.machine.waiting import wait_until

from ..support.pooler import CLEAN, pgbouncer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

    from ..support.pooler import Pooler
    from .database import Database

PATIENCE_S = 30.0
STYLES = ("SQL, DMY", "German", "Postgres, MDY")
DAYS = "id,day\n1,03/04/2020\n2,04/03/2020\n"


@pytest.fixture(scope="module")
def transactions(cluster: Cluster) -> Iterator[Pooler]:
    """A pooler in transaction mode."""
    with pgbouncer(cluster) as started:
        yield started


@pytest.fixture(scope="module")
def sessions(cluster: Cluster) -> Iterator[Pooler]:
    """A pooler in session mode, with as many sessions as a small load may take."""
    with pgbouncer(cluster, "session", 12) as started:
        yield started


def days(folder: Path) -> Path:
    file = folder / "days.csv"
    file.write_text(DAYS)
    return file


def name_of(database: Database) -> str:
    return str(database.one("SELECT current_database()"))


@pytest.mark.parametrize("style", STYLES)
def test_a_database_with_another_style_of_dates_is_loaded_as_psql_would(
    each: Database, tmp_path: Path, style: str
) -> None:
    """The sessions that copy keep the style: it decides what 03/04/2020 means."""
    each.run(f"ALTER DATABASE {name_of(each)} SET datestyle = '{style}'")
    each.run("CREATE TABLE days (id int PRIMARY KEY, day date); CREATE TABLE copied (LIKE days)")
    each.run("INSERT INTO copied VALUES (1, '03/04/2020'), (2, '04/03/2020')")
    file = days(tmp_path)
    command = ["load", str(file), "--into", each.dsn, "--table", "days"]
    assert run([*command, "--dry-run"]) == EXIT_OK
    assert run(command) == EXIT_OK
    assert run(command) == EXIT_OK, "a second time it says when that was"
    assert run([*command, "--upsert", "id", "--again"]) == EXIT_OK
    file.write_text(DAYS.replace("id,day\n", "id,day\n3,never\n"))
    bad = ["load", str(file), "--into", each.dsn, "--table", "days", "--truncate"]
    assert run(bad) == EXIT_FAILURE
    assert run([*bad, "--reject", str(tmp_path / "bad.csv")]) == EXIT_REJECTED, "it resumes"
    assert restore(each.dsn) == []
    assert each.rows("SELECT id, day::text FROM days ORDER BY id") == each.rows(
        "SELECT id, day::text FROM copied ORDER BY id"
    )


def test_a_style_of_the_role_or_the_string_is_no_other_matter(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database.run("CREATE TABLE days (id int PRIMARY KEY, day date)")
    file, styled = days(tmp_path), f"{database.dsn} options='-c datestyle=German'"
    for _ in range(2):
        assert run(["load", str(file), "--into", styled, "--table", "days"]) == EXIT_OK
    assert "already loaded at 20" in capsys.readouterr().err


def asked(database: Database, pooler: Pooler, file: Path, **options: Any) -> Any:
    return pgdyno.load(file, pooler.dsn(name_of(database)), **({"table": "days"} | options))


@pytest.mark.needs_pgbouncer
@pytest.mark.parametrize("options", [{}, {"ledger": False}, {"truncate": True}, {"upsert": ("id",)}], ids=str)
def test_behind_a_pooler_that_hands_sessions_on_nothing_is_begun(
    database: Database, transactions: Pooler, tmp_path: Path, options: dict[str, Any]
) -> None:
    database.run("CREATE TABLE days (id int PRIMARY KEY, day date); INSERT INTO days VALUES (9, '2020-01-01')")
    with pytest.raises(InputError, match="there is a connection pooler in transaction mode") as caught:
        asked(database, transactions, days(tmp_path), **options)
    assert "directly" in caught.value.remedy
    assert database.one("SELECT count(*) FROM days") == 1
    assert database.one("SELECT to_regnamespace('pgdyno_load') IS NULL")
    assert set(transactions.leftovers(name_of(database))) == {CLEAN}


@pytest.mark.needs_pgbouncer
def test_a_dry_run_and_a_restore_are_refused_there_too(
    database: Database, transactions: Pooler, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dsn = transactions.dsn(name_of(database))
    assert run(["load", str(days(tmp_path)), "--into", dsn, "--create", "--dry-run"]) == EXIT_USAGE
    assert run(["load", "--restore", dsn]) == EXIT_USAGE
    assert capsys.readouterr().err.count("there is a connection pooler in transaction mode") == 2
    assert set(transactions.leftovers(name_of(database))) == {CLEAN}


@pytest.mark.needs_pgbouncer
def test_a_pooler_is_noticed_while_others_use_it(database: Database, transactions: Pooler) -> None:
    """With sessions that others hold, and with all but one of them held."""
    dsn = transactions.dsn(name_of(database))
    for held in range(transactions.pool_size):
        with contextlib.ExitStack() as others:
            for _ in range(held):
                other = others.enter_context(contextlib.closing(server.remote.connect(dsn, autocommit=False)))
                other.execute("SELECT 1")
            with pytest.raises(InputError, match="transaction mode"):
                server.connect(dsn)


@pytest.mark.needs_pgbouncer
def test_an_interrupted_load_cancels_its_statement_through_a_pooler(
    database: Database, sessions: Pooler, tmp_path: Path
) -> None:
    """PgBouncer gives its clients keys of its own, and passes the request on."""
    database.run("CREATE TABLE days (id int PRIMARY KEY, day date)")
    database.run(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NULL; END';"
        "CREATE TRIGGER wait BEFORE INSERT ON days FOR EACH STATEMENT EXECUTE FUNCTION wait()"
    )
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
    words = ["load", str(days(tmp_path)), "--into", sessions.dsn(name_of(database)), "--table", "days"]
    with subprocess.Popen([sys.executable, "-m", "pgdyno", *words], stderr=subprocess.PIPE) as process:
        try:
            assert wait_until(lambda: database.one(sleeping) == 1, PATIENCE_S)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == EXIT_INTERRUPTED
        finally:
            process.kill()
    assert database.one(sleeping) == 0


@pytest.mark.needs_pgbouncer
def test_a_pool_in_session_mode_is_as_good_as_the_server(database: Database, sessions: Pooler, tmp_path: Path) -> None:
    database.run("CREATE TABLE days (id int PRIMARY KEY, day date)")
    file = days(tmp_path)
    assert asked(database, sessions, file).rows_loaded == 2
    assert asked(database, sessions, file).already


def test_a_lock_timeout_of_the_connection_is_named_with_how_to_raise_it(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE days (id int PRIMARY KEY, day date)")
    styled = f"{database.dsn} options='-c lock_timeout=100ms'"
    with psycopg.connect(database.dsn) as other:
        other.execute("LOCK TABLE days IN SHARE ROW EXCLUSIVE MODE")
        with pytest.raises(PgdynoError, match="lock timeout") as caught:
            pgdyno.load(days(tmp_path), styled, table="days", autovacuum_off=False)
    assert "options='-c lock_timeout=0'" in caught.value.remedy
    assert "pg_locks" in caught.value.remedy
