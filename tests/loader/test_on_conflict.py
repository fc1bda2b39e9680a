"""``--on-conflict skip``: rows whose key is there are left out, counted, and the load is still exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pgdyno
from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.loader import LoadOptions

from .database import Database

if TYPE_CHECKING:
    from pathlib import Path


def load(file: Path | str, database: Database, **options: Any) -> Any:
    return pgdyno.load(file, database.dsn, vacuum=False, checkpoint=False, on_conflict="skip", **options)


def test_the_table_s_row_stays_and_of_several_in_the_files_the_first(database: Database, tmp_path: Path) -> None:
    """Several chunks and sessions: the order of the files decides, not that of the commits."""
    database.run("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'there')")
    for name in ("a", "b"):
        rows = "".join(f"{number},{name}{number}\n" for number in range(1, 3001))
        (tmp_path / f"{name}.csv").write_text("id,v\n" + rows)
    loaded = load(f"{tmp_path}/*.csv", database, table="t", chunk_bytes=4096, connections=3)
    assert (loaded.rows_loaded, loaded.rows_merged, loaded.rows_skipped) == (6000, 2999, 3001)
    assert database.one("SELECT v FROM t WHERE id = 1") == "there"
    assert database.one("SELECT count(*) FROM t WHERE v = 'a' || id") == 2999
    again = load(f"{tmp_path}/*.csv", database, table="t", chunk_bytes=4096, connections=3)
    assert (again.already, again.rows_skipped) == (True, 3001)


def test_any_constraint_counts(database: Database, tmp_path: Path) -> None:
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, code text UNIQUE, span int4range, EXCLUDE USING gist (span WITH &&));"
        "INSERT INTO t VALUES (1, 'a', '[1,5)')"
    )
    file = tmp_path / "t.csv"
    file.write_text('id,code,span\n2,a,"[7,8)"\n3,b,"[4,6)"\n4,c,"[9,9]"\n1,d,"[20,21)"\n')
    assert load(file, database).rows_skipped == 3
    assert database.rows("SELECT id FROM t ORDER BY id") == [(1,), (4,)]


def test_a_merge_that_failed_is_made_once_by_the_same_command(database: Database, tmp_path: Path) -> None:
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1);"
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$;"
        "CREATE TRIGGER no BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION no()"
    )
    file = tmp_path / "t.csv"
    file.write_text("id\n1\n2\n3\n")
    with pytest.raises(PgdynoError, match="not now"):
        load(file, database)
    assert database.rows("SELECT id FROM t") == [(1,)]
    database.run("DROP TRIGGER no ON t")
    loaded = load(file, database)
    assert (loaded.rows_skipped, database.rows("SELECT id FROM t ORDER BY id")) == (1, [(1,), (2,), (3,)])
    assert database.left_to_undo() == 0


def test_what_cannot_conflict_is_refused(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("id\n1\n")
    database.run("CREATE TABLE t (id int UNIQUE DEFERRABLE)")
    for table, create in (("t", False), ("made", True)):
        with pytest.raises(InputError) as error:
            load(file, database, table=table, create=create)
        assert error.value.code == "load.conflict.no_constraint"
    assert database.one("SELECT to_regclass('made')") is None
    for options in ({"upsert": ("id",)}, {"ledger": False}, {"via": "aws_s3"}):
        with pytest.raises(InputError):
            LoadOptions((str(file),), database.dsn, on_conflict="skip", **options)  # type: ignore[arg-type]  # one after the other
