"""Loads that were refused rows, changed, interrupted or abandoned, and what the same command does then."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.cli.load import lines
from pgdyno.loader import ledger
from pgdyno.loader.result import LoadResult

from .database import Database
from .test_load import EXPECTED, ROWS, load, people, whole


def test_rejected_rows_are_kept_as_they_were(each: Database, tmp_path: Path) -> None:
    each.run("CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL CHECK (name <> 'no'))")
    file, bad = tmp_path / "t.csv", tmp_path / "bad.csv"
    file.write_text('id,name\n1,a\n2,no\n2,"b\nc"\nx,"d ""e"""\n3,\n1,f\n4,g,h\n5,i\n')
    result = load(file, each, reject=bad)
    assert (result.rows_loaded, result.rows_rejected) == (3, 5)
    assert bad.read_text() == 'id,name\n2,no\nx,"d ""e"""\n3,\n1,f\n4,g,h\n'
    reasons = [json.loads(line) for line in (tmp_path / "bad.csv.jsonl").read_text().splitlines()]
    assert [reason["sqlstate"] for reason in reasons] == ["23514", "22P02", "23502", "23505", "22P04"]
    assert each.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,), (5,)]
    mended = bad.read_text().replace("2,no", "6,yes").replace('x,"d', '7,"d')
    (tmp_path / "mended.csv").write_text(mended.replace("3,\n1,f\n4,g,h\n", "8,z\n"))
    assert load(tmp_path / "mended.csv", each, table="t").rows_loaded == 3


def test_a_file_that_is_loaded_is_no_file_for_rejected_rows(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be replaced by the rows that were rejected, and those that are yet to come would be gone."""
    database.run("CREATE TABLE t (id int)")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "t.csv"
    file.write_text("1\nx\n")
    with pytest.raises(InputError, match="would overwrite it"):
        load(file, database, header=False, reject=Path("t.csv"))
    assert file.read_text() == "1\nx\n"


def test_a_changed_file_is_refused_with_the_difference(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE people (id int, name text, points int CHECK (points <> 3 OR id < 1500))")
    file = people(tmp_path)
    with pytest.raises(PgdynoError, match="check constraint"):
        load(file, database)
    some = whole(database)[0]
    assert 0 < some < ROWS
    with file.open("a") as opened:
        opened.write("9999,x,1\n")
    with pytest.raises(InputError, match=r"sources\.0\.fingerprint\.size") as error:
        load(file, database)
    assert "--abandon" in error.value.remedy
    with pytest.raises(InputError, match="chunk_bytes: 4096, now 8192"):
        load(people(tmp_path), database, chunk_bytes=8192)
    assert whole(database)[0] == some


def test_a_load_that_a_bad_row_ended_goes_on_with_a_reject_file(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE people (id int CHECK (id <> 2500), name text, points int)")
    file = people(tmp_path)
    with pytest.raises(PgdynoError, match="check constraint"):
        load(file, database)
    result = load(file, database, reject=tmp_path / "bad.csv")
    assert (result.rows_loaded, result.rows_rejected) == (ROWS - 1, 1)
    assert (tmp_path / "bad.csv").read_text() == 'id,name,points\n2500,"person ""2500""\nof many",1\n'
    database.run("UPDATE pgdyno_load.job SET ended = NULL")
    with pytest.raises(InputError, match="rejects: "):
        load(file, database, reject=tmp_path / "other.csv")


def test_rejected_rows_take_no_other_files_place(database: Database, tmp_path: Path) -> None:
    """One of an earlier load, a file that has nothing to do with it, or a device."""
    database.run("CREATE TABLE people (id int CHECK (id <> 2500), name text, points int)")
    file, bad = people(tmp_path), tmp_path / "bad.csv"
    assert load(file, database, reject=bad).rows_rejected == 1
    kept, there = bad.read_text(), whole(database)
    for path in (bad, Path("/dev/null")):
        with pytest.raises(InputError, match=f"{path} already exists"):
            load(file, database, reject=path, truncate=True)
    assert (bad.read_text(), whole(database)) == (kept, there), "the table is not emptied before"
    with pytest.raises(PgdynoError, match="check constraint"):
        load(file, database, truncate=True)
    with pytest.raises(InputError, match="already exists"):
        load(file, database, truncate=True, reject=bad)
    bad.unlink()
    with pytest.raises(InputError, match=r"bad\.csv\.jsonl already exists"):
        load(file, database, truncate=True, reject=bad)
    (tmp_path / "bad.csv.jsonl").unlink()
    assert load(file, database, truncate=True, reject=bad).rows_rejected == 1
    assert bad.read_text() == kept


def test_sessions_of_an_abandoned_load_are_ended_before_its_table_is_emptied(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of an engine whose command was killed may bring rows a little longer, which nobody would know of."""
    monkeypatch.setattr(ledger, "ORPHANS_LEAVE_S", 2.0)
    database.run("CREATE TABLE people (id int CHECK (id <> 2500), name text, points int)")
    file = people(tmp_path)
    with pytest.raises(PgdynoError, match="check constraint"):
        load(file, database)
    database.run("ALTER TABLE people DROP CONSTRAINT people_id_check")
    name = f"pgdyno load {database.one('SELECT job FROM pgdyno_load.job')}"
    with psycopg.connect(database.dsn, autocommit=True, application_name=name) as orphan:
        assert load(file, database, truncate=True, abandon=True).rows_loaded == ROWS
        with pytest.raises(psycopg.OperationalError):
            orphan.execute("SELECT 1")
    assert whole(database) == EXPECTED


def test_an_interrupted_load_goes_on_with_what_is_missing(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE people (id int, name text, points int)")
    database.run("ALTER TABLE people ADD CONSTRAINT low CHECK (id <> 2000)")
    file = people(tmp_path)
    with pytest.raises(PgdynoError, match="low"):
        load(file, database)
    before = database.rows("SELECT id, xmin::text FROM people")
    database.run("ALTER TABLE people DROP CONSTRAINT low")
    result = load(file, database)
    assert result.rows_loaded == ROWS
    assert 0 < result.bytes_before < result.bytes
    assert whole(database) == EXPECTED
    assert set(before) <= set(database.rows("SELECT id, xmin::text FROM people")), "what was there was left there"


def test_a_rate_is_of_what_this_run_has_brought() -> None:
    """An hour's bytes of the run before, in the second that the rest took, are no rate of anything."""
    result = LoadResult("t", bytes=3 << 20, bytes_before=2 << 20, seconds=1.0, steps_s={"transfer": 0.5})
    (line,) = (line for line in lines(result) if "chunks" in line)
    assert line.startswith("3.0 MiB (2.0 MiB of them by earlier runs) in 1.0 s")
    assert line.endswith("2.0 MiB/s")


def test_a_table_that_is_to_be_empty_is_not_taken_from_a_load_that_left_its_rows(
    database: Database, tmp_path: Path
) -> None:
    database.run("CREATE TABLE people (id int, name text, points int, CONSTRAINT low CHECK (id <> 2500))")
    database.run("INSERT INTO people VALUES (0, 'before', 0)")
    file = people(tmp_path)
    with pytest.raises(PgdynoError, match="low"):
        load(file, database)
    with pytest.raises(InputError, match="did not empty it") as error:
        load(file, database, truncate=True)
    assert "--abandon" in error.value.remedy
    with pytest.raises(PgdynoError, match="low"):
        load(file, database, truncate=True, abandon=True)
    database.run("ALTER TABLE people DROP CONSTRAINT low")
    # Of one that emptied it the same command goes on, and does not empty it again.
    assert load(file, database, truncate=True).rows_loaded == ROWS
    assert whole(database) == EXPECTED
    assert load(file, database).already, "by the same plan, however it began"
