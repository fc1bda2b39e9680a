"""Whatever is changed comes back byte for byte, whenever it is interrupted."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import psycopg
import pytest

import pgdyno
from pgdyno.errors import InputError, PgdynoError
from pgdyno.loader import autovacuum, indexes, put_back, restore, table, undo
from pgdyno.loader import ledger as ledgers
from pgdyno.loader.undo import Journal, default_folder

from .database import INDEXES, RICH, Database

if TYPE_CHECKING:
    from pathlib import Path

JOB = 7


def nothing(_share: float, _text: str) -> None:
    """Nobody looks."""


def change_everything(database: Database, name: str = "rich") -> int:
    """Drop what may be dropped and switch autovacuum off; returns how many changes that were."""
    with database.session() as connection:
        found = table.find(connection, name)
        assert found is not None
        quiet = autovacuum.off(found)
        changes = [one.change for one in indexes.droppable(connection, found)]
        changes += [quiet] if quiet is not None else []
        journal = Journal(connection)
        for change in changes:
            journal.make(change, JOB, found.quoted)
        return len(changes)


def test_everything_is_changed_and_comes_back(each: Database) -> None:
    each.run(RICH)
    each.run("INSERT INTO rich SELECT n, 'c' || n, n, n, n, int4range(n, n + 1) FROM generate_series(1, 100) n")
    before = each.shape("rich")
    assert change_everything(each) == INDEXES + 1 + 1, "with a foreign key, and autovacuum"
    changed = each.shape("rich")
    assert [row for row in changed if row[0] == "index"] == []
    assert "autovacuum_enabled=false" in next(row[1] for row in changed if row[0] == "options")
    assert each.left_to_undo() == INDEXES + 2
    assert len(list(default_folder().glob("undo-*.json"))) == INDEXES + 2
    done = restore(each.dsn)
    assert len(done) == INDEXES + 2
    assert each.shape("rich") == before
    assert each.left_to_undo() == 0
    assert list(default_folder().glob("*")) == []
    assert restore(each.dsn) == [], "a second time there is nothing to do"


@pytest.mark.parametrize("steps", range(0, 11, 2))
def test_a_restore_that_is_interrupted_goes_on(database: Database, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Ends at each second stage of each entry, as a kill between two transactions does."""
    database.run(RICH)
    before = database.shape("rich")
    change_everything(database)
    left = [steps]
    real = undo.undo_stage

    def counted(*arguments: object) -> None:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        real(*arguments)  # type: ignore[arg-type]  # it is what it stands for

    monkeypatch.setattr(put_back.undo, "undo_stage", counted)
    with pytest.raises(KeyboardInterrupt):
        restore(database.dsn)
    monkeypatch.undo()
    monkeypatch.setenv("PGDYNO_STATE_DIR", "/nowhere/to/be/seen")  # as from another machine: the database knows all
    restore(database.dsn)
    assert database.shape("rich") == before


def test_an_order_to_end_that_was_lost_is_given_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes between two statements is lost. Ctrl-C would then wait until the index is built."""
    order = psycopg.Connection.cancel
    lost: list[object] = []

    def cancel(connection: psycopg.Connection[tuple[object, ...]]) -> None:
        if lost:
            order(connection)
        lost.append(connection)

    def interrupt(_share: float, _text: str) -> None:
        active = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(30)' AND state = 'active'"
        if database.one(active):
            raise KeyboardInterrupt

    database.run("CREATE TABLE t (a int)")
    monkeypatch.setattr(psycopg.Connection, "cancel", cancel)
    with database.session() as connection:
        journal = Journal(connection)
        journal.make(undo.Change("index", "x", (), (("SELECT pg_sleep(30)",),)), JOB, '"public"."t"')
        with pytest.raises(KeyboardInterrupt):
            put_back.put_back(database.dsn, connection, journal, journal.entries(), interrupt)
    assert len(lost) > 1
    assert database.left_to_undo() == 1, "what was under way was ended, and did not come to its end"


def test_a_change_that_fails_is_not_made_and_not_written_down(database: Database) -> None:
    database.run("CREATE TABLE t (a int)")
    with database.session() as connection:
        journal = Journal(connection)
        bad = undo.Change("index", "x", ("ALTER TABLE t ADD b int", "DROP INDEX absent"), (("SELECT 1",),))
        with pytest.raises(psycopg.errors.UndefinedObject):
            journal.make(bad, JOB, '"public"."t"')
        assert journal.entries() == []
        assert list(journal.folder.glob("*")) == []
    assert database.one("SELECT count(*) FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'b'") == 0


def test_the_files_are_enough_when_the_schema_was_dropped(database: Database) -> None:
    database.run(RICH)
    before = database.shape("rich")
    change_everything(database)
    database.run("DROP SCHEMA pgdyno_load CASCADE")
    database.run("CREATE INDEX rich_high ON rich (high)")  # somebody has begun by hand
    restore(database.dsn)
    after = [row for row in database.shape("rich") if "rich_high" not in row[1]]
    assert after == [row for row in before if "rich_high" not in row[1]]
    assert list(default_folder().glob("*")) == []


def test_a_load_does_not_forget_the_files_when_the_schema_was_dropped(database: Database, tmp_path: Path) -> None:
    """It makes the schema anew, whose empty journal would say that all of them are done."""
    database.run(RICH)
    before = database.shape("rich")
    change_everything(database)
    database.run("DROP SCHEMA pgdyno_load CASCADE")
    file = tmp_path / "rich.csv"
    file.write_text("id,code,low,high,other_id\n1,c,1,1,1\n")
    with pytest.raises(InputError, match="schema pgdyno_load was dropped") as error:
        pgdyno.load(file, database.dsn)
    assert "--restore" in error.value.remedy
    restore(database.dsn)
    assert database.shape("rich") == before
    assert pgdyno.load(file, database.dsn).rows_loaded == 1


def test_files_of_another_database_are_left_alone(database: Database, tmp_path: Path) -> None:
    database.run(RICH)
    change_everything(database)
    folder = default_folder()
    kept = tmp_path / "kept"
    shutil.copytree(folder, kept)
    restore(database.dsn)
    for path in kept.iterdir():
        (folder / path.name).write_text(path.read_text().replace('"where": "', '"where": "other'))
    assert restore(database.dsn) == []
    assert len(list(folder.glob("undo-*.json"))) == INDEXES + 2


def test_a_doubled_key_is_named_and_all_else_comes_back(database: Database) -> None:
    database.run(RICH)
    before = database.shape("rich")
    change_everything(database)
    database.run("INSERT INTO rich (id, code) VALUES (1, 'a'), (1, 'b')")
    with pytest.raises(PgdynoError, match=r"rich_pkey.*\(id\)=\(1\) is duplicated") as error:
        restore(database.dsn)
    assert "--restore" in error.value.remedy
    assert database.left_to_undo() == 1
    assert len(database.shape("rich")) == len(before) - 2 + 0, "the key's index and constraint are missing"
    database.run("DELETE FROM rich WHERE code = 'b'")
    restore(database.dsn)
    assert database.shape("rich") == before


def test_a_table_that_cannot_be_put_back_does_not_keep_the_others_from_it(database: Database) -> None:
    database.run("CREATE TABLE one (a int PRIMARY KEY); CREATE TABLE two (a int PRIMARY KEY)")
    before = database.shape("two")
    change_everything(database, "one")
    change_everything(database, "two")
    database.run("INSERT INTO one VALUES (1), (1)")
    with pytest.raises(PgdynoError, match="one_pkey"):
        restore(database.dsn)
    assert database.shape("two") == before
    database.run("TRUNCATE one")
    with database.session() as connection:
        found = table.find(connection, "one")
        assert found is not None
        ledgers.lock(connection, found.oid, found.quoted)
        change_everything(database, "two")
        with pytest.raises(InputError, match="another pgdyno load"):
            restore(database.dsn)
    assert database.shape("two") == before
    restore(database.dsn)
    assert database.left_to_undo() == 0


def test_what_others_depend_on_stays(each: Database) -> None:
    each.run(
        """
        CREATE TABLE parent (id int PRIMARY KEY, code int UNIQUE, name text);
        CREATE TABLE child (parent_id int REFERENCES parent);
        CREATE INDEX parent_name ON parent (name);
        CREATE INDEX parent_upper ON parent (upper(name));
        ALTER INDEX parent_upper ALTER COLUMN 1 SET STATISTICS 500;
        ALTER TABLE parent ALTER code SET NOT NULL, REPLICA IDENTITY USING INDEX parent_code_key;
        CREATE TABLE parts (id int) PARTITION BY RANGE (id);
        CREATE INDEX parts_id ON parts (id);
        CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (9)
        """
    )
    with each.session() as connection:
        found = table.find(connection, "parent")
        assert found is not None
        names = [one.cost.name for one in indexes.droppable(connection, found) if one.cost is not None]
        assert names == ["parent_name"]
        for name in ("parts", "part"):
            partitioned = table.find(connection, name)
            assert partitioned is not None
            assert indexes.droppable(connection, partitioned) == []
    assert change_everything(each, "parts") == 0


def test_storage_parameters_come_back_in_their_order(each: Database) -> None:
    for options in ("", "WITH (fillfactor = 50)", "WITH (autovacuum_enabled = on, fillfactor = 50)"):
        each.run(f"DROP TABLE IF EXISTS t; CREATE TABLE t (a int) {options}")
        before = each.one("SELECT reloptions FROM pg_class WHERE relname = 't'")
        assert change_everything(each, "t") == 1
        assert "autovacuum_enabled=false" in each.one("SELECT reloptions FROM pg_class WHERE relname = 't'")
        restore(each.dsn)
        assert each.one("SELECT reloptions FROM pg_class WHERE relname = 't'") == before
    each.run("DROP TABLE t; CREATE TABLE t (a int) WITH (autovacuum_enabled = off)")
    assert change_everything(each, "t") == 0


def known(database: Database, name: str) -> None:
    """The job of the changes, as a load has it in the ledger: which table they are in."""
    database.run(
        "INSERT INTO pgdyno_load.job (job, target, plan) OVERRIDING SYSTEM VALUE"
        f" VALUES ({JOB}, '{name}', jsonb_build_object('table_oid', '{name}'::regclass::oid::bigint))"
    )


def test_a_table_that_is_gone_takes_its_entries_with_it(database: Database) -> None:
    database.run("CREATE TABLE t (a int PRIMARY KEY)")
    change_everything(database, "t")
    known(database, "t")
    database.run("DROP TABLE t")
    assert restore(database.dsn) == []
    assert database.left_to_undo() == 0
    assert list(default_folder().glob("*")) == []


def test_what_a_renamed_table_had_is_kept_until_it_has_its_name_again(database: Database) -> None:
    database.run("CREATE TABLE t (a int PRIMARY KEY); CREATE INDEX t_more ON t (a)")
    before = database.shape("t")
    changes = change_everything(database, "t")
    known(database, "t")
    database.run("ALTER TABLE t RENAME TO u")
    with pytest.raises(PgdynoError, match=r"is called public\.u now") as error:
        restore(database.dsn)
    assert "--restore" in error.value.remedy
    assert database.left_to_undo() == changes
    database.run("ALTER TABLE u RENAME TO t")
    restore(database.dsn)
    assert database.shape("t") == before


@pytest.mark.parametrize("schema", [True, False], ids=["with the journal", "with its files alone"])
def test_what_a_table_had_of_which_nothing_is_known_is_kept_until_somebody_says_so(
    database: Database, schema: bool
) -> None:
    """Its job was abandoned, or the schema was dropped: the table may be gone, and may have another name."""
    database.run("CREATE TABLE t (a int PRIMARY KEY)")
    changes = change_everything(database, "t")
    database.run("ALTER TABLE t RENAME TO u")
    if not schema:
        database.run("DROP SCHEMA pgdyno_load CASCADE")
    with pytest.raises(PgdynoError, match="nothing says whether it has another name") as error:
        restore(database.dsn)
    assert len(list(default_folder().glob("undo-*.json"))) == changes
    if schema:
        database.run(error.value.remedy.split("`")[-2])
        assert restore(database.dsn) == []
        assert list(default_folder().glob("*")) == []
    else:
        assert str(default_folder()) in error.value.remedy


def test_a_restore_waits_for_no_load_that_is_alive(database: Database) -> None:
    database.run("CREATE TABLE t (a int PRIMARY KEY)")
    change_everything(database, "t")
    with database.session() as connection:
        found = table.find(connection, "t")
        assert found is not None
        ledgers.lock(connection, found.oid, found.quoted)
        with pytest.raises(InputError, match="another pgdyno load"):
            restore(database.dsn)
    restore(database.dsn)
    assert database.left_to_undo() == 0
