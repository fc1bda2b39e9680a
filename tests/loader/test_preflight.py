"""``pgdyno load --dry-run``: what it says before anything is changed, and that nothing is."""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import EXIT_HOST, EXIT_OK, EXIT_USAGE
from pgdyno.cli.main import run
from pgdyno.loader import LoadOptions, preflight

from .database import Database

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 20_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Rows of about 60 bytes."""
    made = tmp_path / "t.csv.gz"
    lines = "".join(f"{n},{n * n % 97},a text of some length {n * 7919 % 10007}\n" for n in range(ROWS))
    made.write_bytes(gzip.compress(("id,low,name\n" + lines).encode()))
    return made


def asked(database: Database, file: Path, **options: object) -> LoadOptions:
    return LoadOptions((str(file),), database.dsn, **options)  # type: ignore[arg-type]  # whatever a test asks


def objects(database: Database) -> list[tuple[str, str]]:
    """Every table, index and sequence that is not the system's own."""
    return database.rows(
        "SELECT relname, relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE nspname !~ '^(pg_|information_schema)' ORDER BY 1"
    )


def test_a_sample_is_measured_and_nothing_of_it_remains(each: Database, file: Path) -> None:
    each.run("CREATE TABLE t (id bigserial PRIMARY KEY, low int CHECK (low < 97), name text, made int DEFAULT 5)")
    each.run("CREATE INDEX t_name ON t (name)")
    before = objects(each)
    result = preflight(asked(each, file))
    assert objects(each) == before
    assert each.one("SELECT count(*) FROM t") == 0
    assert each.one("SELECT last_value FROM t_id_seq") == 1, "no number was taken"
    measured = result.measured
    assert measured is not None, result.notes
    assert measured.rows == ROWS
    assert result.bytes_total == pytest.approx(len(gzip.decompress(file.read_bytes())), rel=1e-6)
    assert result.rows_total == pytest.approx(ROWS, rel=0.01)
    assert 1 < measured.heap_bytes / measured.input_bytes < 3
    assert measured.index_bytes > 0
    assert measured.wal_bytes is not None
    assert measured.wal_bytes > measured.input_bytes
    assert {part.name for part in result.forecast.parts} == {"COPY on the server's CPU", "decompression"}
    assert result.space is not None
    assert result.space.free is not None, "the folder of a server of this machine is looked at"
    assert result.space.enough is True
    assert json.loads(json.dumps(result.document()))["measured"]["rows"] == ROWS
    assert re.search(r"table \d\.\d\d, indexes \d\.\d\d, WAL \d\.\d\d", "\n".join(result.lines()))


def test_columns_that_the_file_does_not_have_are_filled_in_the_sample_too(each: Database, tmp_path: Path) -> None:
    """Such a table could not be measured: its key was NULL."""
    each.run(
        """
        CREATE TABLE t (id serial PRIMARY KEY, name text, seen timestamptz NOT NULL DEFAULT now(), own int);
        CREATE SEQUENCE numbers;
        CREATE FUNCTION "My next"() RETURNS int LANGUAGE sql AS $$ SELECT nextval('numbers')::int $$;
        ALTER TABLE t ALTER own SET DEFAULT "My next"()
        """
    )
    before = objects(each)
    (tmp_path / "t.csv").write_text("name\n" + "".join(f"a{n}\n" for n in range(100)))
    result = preflight(asked(each, tmp_path / "t.csv"))
    assert result.measured is not None, result.notes
    assert result.measured.rows == 100
    assert objects(each) == before
    for sequence in ("t_id_seq", "numbers"):
        assert each.one(f"SELECT is_called FROM {sequence}") is False, "no number was taken"


def test_what_makes_copy_slow_is_said(database: Database, file: Path) -> None:
    database.run(
        """
        CREATE TABLE t (id int, low int, name text, at timestamptz DEFAULT clock_timestamp(), seen date DEFAULT now());
        CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        CREATE TRIGGER first BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION nothing();
        CREATE TRIGGER off BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION nothing();
        ALTER TABLE t DISABLE TRIGGER off;
        CREATE TABLE parts (id int, low int, name text) PARTITION BY RANGE (id)
        """
    )
    notes = preflight(asked(database, file)).notes
    assert any("trigger first fires before the row" in note for note in notes)
    assert any("default of at calls clock_timestamp()" in note for note in notes)
    assert not any("off" in note or "seen" in note for note in notes)
    assert any("partitioned" in note for note in preflight(asked(database, file, table="parts")).notes)


def test_a_table_that_is_to_be_made_is_measured_too(database: Database, file: Path) -> None:
    result = preflight(asked(database, file, create=True, table="new"))
    assert objects(database) == []
    assert result.measured is not None, result.notes
    assert any('CREATE TABLE new ( "id" bigint, "low" bigint, "name" text )' in note for note in result.notes)


def test_a_sample_that_the_server_refuses_is_no_error_yet(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE t (id int, name text)")
    (tmp_path / "t.csv").write_text("id,name\n1,a\nx,b\n")
    result = preflight(asked(database, tmp_path / "t.csv"))
    assert result.measured is None
    assert any(
        'no sample could be measured: invalid input syntax for type integer: "x"' in note for note in result.notes
    )
    assert result.forecast.parts == ()


def test_a_small_volume_limits_and_a_full_one_ends_it(
    database: Database, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database.run("CREATE TABLE t (id int, low int, name text)")
    words = ["load", str(file), "--into", database.dsn, "--dry-run"]
    advice = tmp_path / "advice"
    assert run([*words, "--volume", "sc1:size=200GiB", "--recommend", str(advice)]) == EXIT_OK
    shown = capsys.readouterr()
    assert "limit: the volume's" in shown.out
    assert "its credits allow more" in shown.out
    assert (advice / "settings.sql").is_file()
    assert run([*words, "--free", "1MiB", "--json"]) == EXIT_HOST
    shown = capsys.readouterr()
    assert json.loads(shown.out)["space"]["enough"] is False
    assert "make the volume larger" in shown.err
    assert run([*words, "--volume", "gp3:iops=17"]) == EXIT_USAGE
    assert run(["load", str(file), "--into", database.dsn, "--free", "1GiB"]) == EXIT_USAGE
    assert "--free is for --dry-run" in capsys.readouterr().err


def test_a_file_of_a_few_bytes_tells_nothing_of_what_a_byte_takes(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("id,v\n1,2\n")
    result = preflight(asked(database, file, create=True), volume="gp3:size=500GiB")
    assert result.measured is not None
    assert not result.measured.is_telling
    assert not re.search(r"\d\.\d\d, indexes|each byte of the file takes", "\n".join(result.lines()))
    assert [part for part in result.forecast.parts if "volume" in part.name] == []
    assert result.settings == []
