"""A table that other sessions hold a lock on: what a load waits for, how long, and what it says meanwhile."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.base.errors import InputError
from pgdyno.loader import server, undo, waiting

from .database import Database
from .test_load import ROWS, load, people, whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def test_a_table_that_others_use_is_not_waited_for_to_be_emptied(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo, "LOCK_TIMEOUT_S", 1)
    database.run("CREATE TABLE people (id int, name text, points int); INSERT INTO people VALUES (0)")
    with psycopg.connect(database.dsn) as other:
        other.execute("SELECT FROM people")
        with pytest.raises(InputError, match=r"other sessions use .*so it cannot be emptied"):
            load(people(tmp_path), database, truncate=True)
        other.rollback()
        assert whole(database)[0] == 1
    assert load(people(tmp_path), database, truncate=True).rows_loaded == ROWS


def test_who_vacuums_the_table_does_not_keep_it_from_being_loaded(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An autovacuum against wraparound holds this lock for hours, and gives way to nobody."""
    monkeypatch.setattr(undo, "LOCK_TIMEOUT_S", 1)
    database.run("CREATE TABLE people (id int, name text, points int)")
    events: list[dict[str, Any]] = []
    with psycopg.connect(database.dsn) as other:
        other.execute("LOCK TABLE people IN SHARE UPDATE EXCLUSIVE MODE")
        assert load(people(tmp_path), database, vacuum=False, tell=events.append).rows_loaded == ROWS
    assert any("autovacuum stays on for" in event.get("text", "") for event in events)
    assert database.left_to_undo() == 0


def test_a_table_that_others_lock_is_not_waited_for_to_be_vacuumed(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are in; a transaction that is left open would keep the command from ending."""
    monkeypatch.setattr(undo, "LOCK_TIMEOUT_S", 1)
    database.run("CREATE TABLE people (id int, name text, points int)")
    events: list[dict[str, Any]] = []
    with psycopg.connect(database.dsn) as other:
        other.execute("LOCK TABLE people IN SHARE UPDATE EXCLUSIVE MODE")
        result = load(people(tmp_path), database, tell=events.append)
    assert (result.rows_loaded, database.one("SELECT ended IS NOT NULL FROM pgdyno_load.job")) == (ROWS, True)
    text = "public.people is not vacuumed and analyzed: other sessions hold a lock on it; run `VACUUM (ANALYZE) public.people`"
    assert any(text in event.get("text", "") for event in events)


PEOPLE = "CREATE TABLE people (id int PRIMARY KEY, name text, points int)"
FORGOTTEN = {"application_name": "billing", "options": "-c idle_in_transaction_session_timeout=60s"}
"""Of a session that holds a lock; a load that does not say so is not waited for longer than this."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.1)
    monkeypatch.setattr(waiting, "INTERVAL_S", 0.1)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "holds",
    [
        pytest.param("LOCK TABLE people IN ACCESS EXCLUSIVE MODE", id="before the table can be looked at"),
        pytest.param("LOCK TABLE people IN SHARE MODE", id="before a row can be copied"),
        pytest.param("INSERT INTO people VALUES (1)", id="before it is known whether a key is doubled"),
    ],
)
def test_the_session_that_a_load_waits_for_is_named(database: Database, tmp_path: Path, holds: str) -> None:
    database.run(PEOPLE)
    texts: list[str] = []
    with psycopg.connect(database.dsn, **FORGOTTEN) as other:
        other.execute(holds.encode())
        pid = other.info.backend_pid

        def hear(event: Mapping[str, Any]) -> None:
            if event.get("text", "").startswith("waiting for a lock"):
                texts.append(event["text"])
                other.rollback()

        done = load(people(tmp_path), database, autovacuum_off=False, indexes="keep", tell=hear)
    assert done.rows_loaded == ROWS
    role = database.one("SELECT current_user")
    holder = f"session {pid} holds (billing, role {role}, idle in transaction)"
    remedy = f"end its transaction, or the session with `SELECT pg_terminate_backend({pid})`"
    assert texts == [f"waiting for a lock that {holder}; {remedy}"]


@pytest.mark.usefixtures("impatient")
def test_what_builds_an_index_of_the_table_is_of_the_load(database: Database) -> None:
    """It is a session of its own, which the load of another table does not wait for."""
    database.run("CREATE TABLE people (id int); CREATE TABLE others (id int)")
    tables = {name: database.one(f"SELECT '{name}'::regclass::oid::bigint") for name in ("people", "others")}
    texts: dict[str, list[str]] = {name: [] for name in tables}
    with contextlib.ExitStack() as ending:
        pool = ending.enter_context(ThreadPoolExecutor(1))
        control, builds = (
            ending.enter_context(contextlib.closing(connect(database.dsn)))
            for connect in (server.connect, server.connect_another)
        )
        other = ending.enter_context(psycopg.connect(database.dsn, **FORGOTTEN))
        other.execute("INSERT INTO people VALUES (1)")

        def end(text: str) -> None:
            texts["people"].append(text)
            other.rollback()

        for name, note in (("others", texts["others"].append), ("people", end)):
            ending.enter_context(waiting.WaitSampler(database.dsn, note)).watch(control, tables[name])
        pool.submit(builds.execute, "CREATE INDEX ON public.people (id)").result(30)
    assert (len(texts["people"]), texts["others"]) == (1, [])
