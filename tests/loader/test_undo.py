"""Whatever is changed comes back byte for byte, whenever it is interrupted."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import psycopg
import pytest

import pgdyno
from pgdyno.base.errors import HostError, InputError, PgdynoError
from pgdyno.loader import autovacuum, facts, indexes, put_back, restore, table, undo
from pgdyno.loader import ledger as ledgers
from pgdyno.loader.undo import UndoJournal, default_folder

from .database import INDEXES, RICH, Database

if TYPE_CHECKING:
    from pathlib import Path

JOB = 7


def nothing(_share: float, _text: str) -> None:
    """Nobody looks."""


def change_everything(database: Database, name: str = "rich") -> int:
    """Drop what may be dropped and switch autovacuum off; returns how many changes that were."""
    with database.session() as connection:
        result = table.find(connection, name)
        assert result is not None
        quiet = autovacuum.off(result)
        changes = [droppable.change for droppable in indexes.droppable(connection, result)]
        changes += [quiet] if quiet is not None else []
        journal = UndoJournal(connection)
        for change in changes:
            journal.make(change, JOB, result.quoted, result.oid)
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
        active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX%' AND wait_event = 'PgSleep'"
        if database.one(active):
            raise KeyboardInterrupt

    database.run(
        "CREATE TABLE t (a int); CREATE FUNCTION slow(int) RETURNS int IMMUTABLE LANGUAGE plpgsql SET search_path = pg_catalog"
        " AS $$ BEGIN PERFORM pg_sleep(30); RETURN $1; END $$; CREATE INDEX t_slow ON t (slow(a))"
    )
    assert change_everything(database, "t") == 2
    database.run("INSERT INTO t VALUES (1)")
    monkeypatch.setattr(psycopg.Connection, "cancel", cancel)
    with database.session() as connection:
        journal = UndoJournal(connection)
        with pytest.raises(KeyboardInterrupt):
            put_back.put_back(database.dsn, connection, journal, journal.entries(), interrupt)
    assert len(lost) > 1
    assert database.left_to_undo() == 2, "what was under way was ended, and did not come to its end"


def test_a_change_that_fails_is_not_made_and_not_written_down(database: Database) -> None:
    database.run("CREATE TABLE t (a int)")
    with database.session() as connection:
        journal = UndoJournal(connection)
        doing = ("ALTER TABLE public.t ADD b int", "DROP INDEX public.absent")
        bad = undo.TargetChange("autovacuum", facts.Quiet(()), doing)
        with pytest.raises(psycopg.errors.UndefinedObject):
            journal.make(bad, JOB, "public.t", database.one("SELECT 't'::regclass::oid::bigint"))
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
        result = table.find(connection, "one")
        assert result is not None
        ledgers.lock(connection, result.oid, result.quoted)
        change_everything(database, "two")
        with pytest.raises(PgdynoError, match="another pgdyno load"):
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
        result = table.find(connection, "parent")
        assert result is not None
        names = [
            droppable.cost.name for droppable in indexes.droppable(connection, result) if droppable.cost is not None
        ]
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


def test_a_table_that_is_gone_takes_its_entries_with_it(database: Database) -> None:
    database.run("CREATE TABLE t (a int PRIMARY KEY)")
    change_everything(database, "t")
    database.run("DROP TABLE t; CREATE TABLE t (a int)")
    assert restore(database.dsn) == []
    assert database.left_to_undo() == 0
    assert list(default_folder().glob("*")) == []
    assert database.one("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass") == 0, "it is another table"


@pytest.mark.parametrize("schema", [True, False], ids=["with the journal", "with its files alone"])
def test_a_table_that_was_renamed_is_restored_under_its_new_name(database: Database, schema: bool) -> None:
    database.run(RICH)
    before = database.shape("rich")
    changes = change_everything(database, "rich")
    database.run("CREATE SCHEMA elsewhere; ALTER TABLE rich RENAME TO poor; ALTER TABLE poor SET SCHEMA elsewhere")
    if not schema:
        database.run("DROP SCHEMA pgdyno_load CASCADE")
    assert len(restore(database.dsn)) == changes
    assert list(default_folder().glob("*")) == []
    database.run("ALTER TABLE elsewhere.poor SET SCHEMA public; ALTER TABLE poor RENAME TO rich")
    assert database.shape("rich") == before


UNUSUAL = """
CREATE SCHEMA own; CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE COLLATION own.german FROM "C";
CREATE TABLE rich (id int, "Na me" text, code varchar(9), tags int[], at tsrange, doc jsonb, PRIMARY KEY (id) INCLUDE (code));
CREATE INDEX "rich ""by"" name" ON rich ("Na me" COLLATE own.german text_pattern_ops DESC, lower(code) NULLS FIRST, (id + 1));
CREATE INDEX rich_gin ON rich USING gin (doc jsonb_path_ops) WITH (fastupdate = off);
CREATE INDEX rich_brin ON rich USING brin (id int4_minmax_multi_ops (values_per_range = 16)) WITH (pages_per_range = 8);
CREATE INDEX rich_tags ON rich USING gin (tags) WHERE cardinality(tags) > 1 AND code <> E'a''b\\c%s';
ALTER TABLE rich ADD CONSTRAINT rich_at EXCLUDE USING gist (id WITH =, at WITH &&) INCLUDE (code) WITH (fillfactor = 50)
    WHERE (id > 0) DEFERRABLE;
COMMENT ON INDEX rich_gin IS E'a\\b ''c'' %s';
"""


def test_definitions_of_all_kinds_come_back(each: Database) -> None:
    each.run(UNUSUAL)
    if each.one("SELECT current_setting('server_version_num')::int") >= 150000:
        each.run("CREATE UNIQUE INDEX rich_nulls ON rich (code) NULLS NOT DISTINCT")
        each.run("CREATE TABLE pair (a int, b int, PRIMARY KEY (a, b))")
        each.run(
            "ALTER TABLE rich ADD CONSTRAINT rich_pair FOREIGN KEY (id, id) REFERENCES pair (a, b) MATCH FULL"
            " ON DELETE CASCADE ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED"
        )
    before = each.shape("rich")
    assert change_everything(each) > 6
    restore(each.dsn)
    assert each.shape("rich") == before


def test_a_fact_that_is_not_one_is_refused(database: Database) -> None:
    """Nothing of a journal is run: not even its owner can plant a statement in it, or a name that ends its quotes."""
    database.run("CREATE TABLE t (a int PRIMARY KEY)")
    change_everything(database, "t")
    good = database.one("SELECT fact::text FROM pgdyno_load.undo WHERE kind = 'index'")
    for change in (
        "jsonb_set(fact, '{method}', '[\"btree\"]')",
        "fact || '{\"more\": 1}'",
        "jsonb_set(fact, '{parameters}', '[[\"fillfactor) ; DROP TABLE t --\", \"1\"]]')",
        "'[[\"ALTER ROLE postgres NOLOGIN\"]]'::jsonb",
    ):
        database.run(f"UPDATE pgdyno_load.undo SET fact = {change} WHERE kind = 'index'")
        with pytest.raises(InputError, match="did not write"):
            restore(database.dsn)
        database.run(f"UPDATE pgdyno_load.undo SET fact = $q${good}$q$ WHERE kind = 'index'")
    for name in ("name", "tablespace", "predicate"):
        planted = '"x" ; DROP TABLE t; --\') OR true); DROP TABLE t; --'
        database.run(
            f"UPDATE pgdyno_load.undo SET fact = fact || jsonb_build_object('{name}', $q${planted}$q$) WHERE kind = 'index'"
        )
        with pytest.raises(PgdynoError):
            restore(database.dsn)
        database.run(f"UPDATE pgdyno_load.undo SET fact = $q${good}$q$ WHERE kind = 'index'")
    restore(database.dsn)
    assert database.one("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND indisprimary") == 1


def test_undo_files_that_others_may_write_are_refused(database: Database) -> None:
    database.run("CREATE TABLE t (a int PRIMARY KEY)")
    change_everything(database, "t")
    folder = default_folder()
    file = next(folder.glob("undo-*.json"))
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    for path, mode in ((folder, 0o777), (file, 0o666)):
        before = path.stat().st_mode
        path.chmod(mode)
        with pytest.raises(HostError, match="not trusted"):
            restore(database.dsn)
        path.chmod(before)
    kept = file.read_text()
    file.write_text(kept.replace('"fact"', '"undo"'))
    with pytest.raises(HostError, match="not an undo file of this version"):
        restore(database.dsn)
    file.write_text(kept)
    assert len(restore(database.dsn)) == 2


def test_a_restore_waits_for_no_load_that_is_alive(database: Database) -> None:
    database.run("CREATE TABLE t (a int PRIMARY KEY)")
    change_everything(database, "t")
    with database.session() as connection:
        result = table.find(connection, "t")
        assert result is not None
        ledgers.lock(connection, result.oid, result.quoted)
        with pytest.raises(InputError, match="another pgdyno load"):
            restore(database.dsn)
    restore(database.dsn)
    assert database.left_to_undo() == 0


DATED = """
CREATE TABLE dated (id int, day date, at timestamp, span interval, weight float8);
CREATE INDEX dated_some ON dated (day) WHERE day > DATE '2020-04-03' AND span < INTERVAL '1 day -00:00:01';
CREATE INDEX dated_when ON dated ((at < TIMESTAMP '2020-04-03 12:00'), (weight * 0.1::float8));
"""
"""Definitions whose text depends on how a session writes dates, intervals and floating-point numbers."""


@pytest.mark.parametrize("style", ["SQL, MDY", "SQL, DMY", "German"])
def test_definitions_with_dates_mean_the_same_to_the_session_that_restores(each: Database, style: str) -> None:
    """The interrupted load had another DateStyle than whoever puts back: 03/04/2020 would be another day."""
    each.run(DATED)
    before = each.shape("dated")
    name = each.one("SELECT current_database()")
    each.run(
        f"ALTER DATABASE {name} SET datestyle = '{style}'; ALTER DATABASE {name} SET intervalstyle = 'sql_standard';"
        f"ALTER DATABASE {name} SET extra_float_digits = 0"
    )
    assert change_everything(each, "dated") == 2 + 1
    each.run(f"ALTER DATABASE {name} SET datestyle = 'SQL, DMY'; ALTER DATABASE {name} SET intervalstyle = 'iso_8601'")
    assert len(restore(each.dsn)) == 3
    each.run(f"ALTER DATABASE {name} RESET ALL")
    assert each.shape("dated") == before
    assert each.left_to_undo() == 0
