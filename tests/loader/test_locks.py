"""A table that other sessions hold a lock on: a load does not wait for them longer than a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.errors import InputError
from pgdyno.loader import undo

from .database import Database
from .test_load import ROWS, load, people, whole

if TYPE_CHECKING:
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
        found = load(people(tmp_path), database, tell=events.append)
    assert (found.rows_loaded, database.one("SELECT ended IS NOT NULL FROM pgdyno_load.job")) == (ROWS, True)
    said = "public.people is not vacuumed and analyzed: other sessions hold a lock on it; run `VACUUM (ANALYZE) public.people`"
    assert any(said in event.get("text", "") for event in events)
