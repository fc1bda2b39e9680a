"""A load that ends well has its rows in the table, whatever others did to the table between two runs, or in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pgdyno
from pgdyno.base.errors import InputError, PgdynoError

from .test_load import EXPECTED, ROWS, load, people, whole

if TYPE_CHECKING:
    from pathlib import Path

    from .database import Database

STOP = "ALTER TABLE people ADD CONSTRAINT stop CHECK (id <> 2500)"
GO = "ALTER TABLE people DROP CONSTRAINT stop"
MANY = 30_000
SLOW: dict[str, Any] = {"rate_bytes_per_s": 256 << 10}
"""So slow that :data:`MANY` rows take some seconds."""


def interrupted(database: Database, file: Path, **options: Any) -> int:
    """A load that ended at a bad row; returns how many rows came in."""
    database.run("CREATE TABLE IF NOT EXISTS people (id int, name text, points int)")
    database.run(STOP)
    with pytest.raises(PgdynoError, match="stop") as error:
        load(file, database, table="people", **options)
    assert "committed rows stay" in error.value.remedy
    database.run(GO)
    return int(database.one("SELECT sum(rows_loaded) FROM pgdyno_load.chunk"))


GONE = {
    "TRUNCATE people": "it is empty",
    "DELETE FROM people": "it is empty",
    "TRUNCATE people; INSERT INTO people VALUES (1, 'by hand', 1)": "it was emptied or rewritten",
    "TRUNCATE people; INSERT INTO people SELECT n, 'by hand', 1 FROM generate_series(1, 9999) n": "it was emptied or rewritten",
    "DELETE FROM people; INSERT INTO people SELECT n, 'by hand', 1 FROM generate_series(1, 9999) n": "were deleted",
}


@pytest.mark.parametrize("act", GONE)
def test_a_load_whose_rows_were_removed_is_not_resumed(each: Database, tmp_path: Path, act: str) -> None:
    file = people(tmp_path)
    rows = interrupted(each, file)
    assert 0 < rows < ROWS
    for statement in act.split("; "):
        each.run(statement)
    before = each.one("SELECT count(*) FROM people")
    for options in ({}, {"reject": tmp_path / "bad.csv"}):
        with pytest.raises(InputError, match=f"has loaded {rows:,} rows, and .*{GONE[act]}") as error:
            load(file, each, **options)
        assert "--abandon" in error.value.remedy
    assert each.one("SELECT count(*) FROM people") == before
    assert load(file, each, abandon=True, truncate=True).rows_loaded == ROWS
    assert whole(each) == EXPECTED


@pytest.mark.parametrize(
    "act",
    [
        "VACUUM FULL people",
        "VACUUM (FREEZE) people",
        "CREATE INDEX people_id ON people (id); CLUSTER people USING people_id",
        "ALTER TABLE people ALTER points TYPE bigint",
        "ALTER TABLE people ADD more float DEFAULT random()",
        "UPDATE people SET points = points",
        "DELETE FROM people WHERE id % 10 = 0",
    ],
)
def test_a_load_whose_rows_are_there_is_resumed(each: Database, tmp_path: Path, act: str) -> None:
    file = people(tmp_path)
    rows = interrupted(each, file)
    removed = rows - int(each.one("SELECT count(*) FROM people WHERE id % 10 <> 0")) if "DELETE" in act else 0
    for statement in act.split("; "):
        each.run(statement)
    assert load(file, each).rows_loaded == ROWS
    assert whole(each)[0] == ROWS - removed


def test_a_partition_that_was_emptied_or_detached_is_noticed(each: Database, tmp_path: Path) -> None:
    file = people(tmp_path)
    for act in ("TRUNCATE low", "ALTER TABLE people DETACH PARTITION low", "DROP TABLE low"):
        each.run(
            "DROP TABLE IF EXISTS people, low; CREATE TABLE people (id int, name text, points int) PARTITION BY RANGE (id);"
            "CREATE TABLE low PARTITION OF people FOR VALUES FROM (0) TO (1000);"
            "CREATE TABLE high PARTITION OF people FOR VALUES FROM (1000) TO (99999)"
        )
        interrupted(each, file)
        each.run(act)
        with pytest.raises(InputError, match=r"partition of it|emptied or rewritten"):
            load(file, each)


def test_a_table_that_was_dropped_and_made_again_is_loaded_from_the_beginning(each: Database, tmp_path: Path) -> None:
    file = people(tmp_path)
    interrupted(each, file)
    each.run("DROP TABLE people; CREATE TABLE people (name text, id bigint, points int)")
    texts: list[str] = []
    result = load(file, each, indexes="keep", tell=lambda event: texts.append(str(event.get("text"))))
    assert result.rows_loaded == ROWS
    assert whole(each) == EXPECTED
    assert any("its table was dropped" in text for text in texts)
    assert each.one("SELECT count(*) FROM pgdyno_load.job") == 1


def test_a_table_that_was_emptied_after_its_load_is_said_to_be(each: Database, tmp_path: Path) -> None:
    file = people(tmp_path)
    load(file, each, create=True)
    assert load(file, each).already
    each.run("TRUNCATE people")
    with pytest.raises(
        InputError, match=r"already loaded into public.people at .*, and the table is empty now"
    ) as error:
        load(file, each)
    assert "--again" in error.value.remedy
    assert load(file, each, again=True).rows_loaded == ROWS
    assert whole(each) == EXPECTED


def test_a_load_of_which_no_row_came_in_ends_itself(each: Database, tmp_path: Path) -> None:
    each.run("CREATE TABLE people (id int PRIMARY KEY, name text, points int)")
    before = each.shape("people")
    file = tmp_path / "people.csv"
    for options in ({}, {"upsert": ("id",)}):
        file.write_text("id,name,points\nx,Ann,1\n")
        with pytest.raises(PgdynoError, match="invalid input syntax") as error:
            load(file, each, **options)
        assert "stays" not in error.value.remedy
        assert "no row was loaded" in error.value.remedy
        assert each.one("SELECT count(*) FROM pgdyno_load.job WHERE ended IS NULL") == 0
        assert each.left_to_undo() == 0
        assert each.shape("people") == before
        file.write_text("id,name,points\n1,Ann,1\n")
        assert load(file, each, **options).rows_loaded == 1
        each.run("TRUNCATE people; DELETE FROM pgdyno_load.job")


def test_an_upsert_that_was_merged_and_emptied_is_noticed(each: Database, tmp_path: Path) -> None:
    each.run("CREATE TABLE people (id int PRIMARY KEY, name text, points int)")
    file = people(tmp_path)
    assert load(file, each, upsert=("id",)).rows_merged == ROWS
    each.run("UPDATE pgdyno_load.job SET ended = NULL")  # as if it had been killed just before its end
    assert load(file, each, upsert=("id",)).rows_merged == ROWS
    each.run("UPDATE pgdyno_load.job SET ended = NULL; TRUNCATE people; INSERT INTO people VALUES (0, 'by hand', 0)")
    with pytest.raises(InputError, match="emptied or rewritten"):
        load(file, each, upsert=("id",))
    assert load(file, each, upsert=("id",), abandon=True).rows_merged == ROWS


DURING = {
    "TRUNCATE people": "emptied or rewritten",
    "DELETE FROM people": "were deleted|it is empty",
    "DROP TABLE people; CREATE TABLE people (id int, name text, points int)": "another table has its name|could not open|does not exist",
    "ALTER TABLE people RENAME TO others; CREATE TABLE people (LIKE others)": "another table has its name|does not exist",
}


@pytest.mark.parametrize("ledger", [True, False], ids=["ledger", "no ledger"])
@pytest.mark.parametrize("act", DURING)
def test_what_others_remove_while_a_load_runs_is_no_success(
    database: Database, tmp_path: Path, act: str, ledger: bool
) -> None:
    if "DELETE" in act and not ledger:
        pytest.skip("without a ledger nothing says which rows were brought: only an empty table shows it")
    database.run("CREATE TABLE people (id int, name text, points int); INSERT INTO people VALUES (0, 'before', 0)")
    file, acted = people(tmp_path, rows=MANY), []

    def tell(event: Any) -> None:
        if event["event"] == "progress" and event["rows_loaded"] > MANY // 5 and not acted:
            acted.append(event["rows_loaded"])
            for statement in act.split("; "):
                database.run(statement)

    with pytest.raises(PgdynoError, match=DURING[act]) as error:
        load(file, database, tell=tell, ledger=ledger, **SLOW)
    assert acted
    assert error.value.remedy
    if ledger:
        assert load(file, database, abandon=True, truncate=True).rows_loaded == MANY
        assert database.one("SELECT count(*) FROM people") == MANY


def test_no_row_comes_into_a_table_that_takes_the_name_of_the_target(database: Database, tmp_path: Path) -> None:
    """A load that is killed then says nothing, and the next one would add all rows to those."""
    database.run("CREATE TABLE people (id int, name text, points int)")
    file, acted = people(tmp_path, rows=MANY), []

    def tell(event: Any) -> None:
        if event["event"] == "progress" and event["rows_loaded"] > MANY // 5 and not acted:
            acted.append(event["rows_loaded"])
            database.run("ALTER TABLE people RENAME TO others; CREATE TABLE people (LIKE others)")  # one transaction

    with pytest.raises(PgdynoError, match="another table has its name now"):
        pgdyno.load(file, database.dsn, table="people", tell=tell, chunk_bytes=4096, **SLOW)
    assert acted
    assert database.one("SELECT count(*) FROM people") == 0
    brought = database.one("SELECT sum(rows_loaded) FROM pgdyno_load.chunk")
    assert database.one("SELECT count(*) FROM others") == brought
    assert load(file, database, table="people").rows_loaded == MANY
    assert database.one("SELECT count(*) FROM people") == MANY


def test_a_table_that_is_rewritten_while_a_load_runs_has_all_rows(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE people (id int, name text, points int)")
    file, acted = people(tmp_path, rows=MANY), []

    def tell(event: Any) -> None:
        if event["event"] == "progress" and event["rows_loaded"] > MANY // 5 and not acted:
            acted.append(event["rows_loaded"])
            database.run("VACUUM FULL people")

    assert pgdyno.load(file, database.dsn, tell=tell, chunk_bytes=4096, **SLOW).rows_loaded == MANY
    assert acted
    assert database.one("SELECT count(*) FROM people") == MANY
