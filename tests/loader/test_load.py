"""``pgdyno load`` from beginning to end, on real servers."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

import pgdyno
from pgdyno.base.errors import (
    EXIT_FAILURE,
    EXIT_HOST,
    EXIT_OK,
    EXIT_REJECTED,
    EXIT_USAGE,
    HostError,
    InputError,
    PgdynoError,
)
from pgdyno.cli.main import run
from pgdyno.loader import ledger, parquet, table
from pgdyno.loader.ending import server_errors

from ..support.commands import pgdyno as pgdyno_command
from .database import RICH, Database
from .test_files import parquet_file

SMALL = 4096
"""Chunks so short that a small file has many."""
ROWS = 3000


def people(folder: Path, name: str = "people.csv", rows: int = ROWS, begin: int = 1) -> Path:
    """A file of rows with quotes and line ends in them."""
    file = folder / name
    lines = (f'{number},"person ""{number}""\nof many",{number % 7}\n' for number in range(begin, begin + rows))
    text = ("id,name,points\n" + "".join(lines)).encode()
    file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return file


def load(file: Path | list[Path], database: Database, **options: Any) -> Any:
    return pgdyno.load(file, database.dsn, **({"chunk_bytes": SMALL} | options))


def whole(database: Database, name: str = "people") -> tuple[int, int, int]:
    """Rows, and sums that no other rows have."""
    ((rows, ids, points),) = database.rows(
        f"SELECT count(*), coalesce(sum(id), 0)::bigint, sum(points)::int FROM {name}"
    )
    return rows, ids, points


EXPECTED = (ROWS, ROWS * (ROWS + 1) // 2, sum(number % 7 for number in range(1, ROWS + 1)))


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz"])
def test_a_file_is_loaded_into_a_table_that_is_made_of_it(each: Database, tmp_path: Path, name: str) -> None:
    events: list[dict[str, Any]] = []
    result = load(people(tmp_path, name), each, create=True, tell=events.append)
    assert (result.rows_loaded, result.rows_rejected, result.created) == (ROWS, 0, True)
    assert result.chunks > 10
    assert whole(each) == EXPECTED
    assert each.one("SELECT name FROM people WHERE id = 2") == 'person "2"\nof many'
    documents = [event for event in events if event["event"] != "note"]
    assert [event["event"] for event in documents][:2] == ["create", "plan"]
    assert "bigint" in documents[0]["definition"]
    assert each.one("SELECT reltuples > 0 FROM pg_class WHERE relname = 'people'"), "it was analyzed"
    assert each.one("SELECT ended IS NOT NULL FROM pgdyno_load.job")
    assert set(result.steps_s) == {"transfer", "put_back", "vacuum", "checkpoint"}
    assert json.loads(json.dumps(result.document()))["table"] == "public.people"


def test_the_same_command_again_does_nothing_and_another_file_is_another_load(
    database: Database, tmp_path: Path
) -> None:
    file = people(tmp_path)
    load(file, database, create=True)
    again = load(file, database, create=True)
    assert (again.already, again.rows_loaded) == (True, ROWS)
    assert whole(database) == EXPECTED
    assert load(file, database, again=True).rows_loaded == ROWS
    assert whole(database)[0] == 2 * ROWS
    assert load(file, database, truncate=True).rows_loaded == ROWS
    assert whole(database) == EXPECTED
    more = people(tmp_path, "more.csv", rows=10, begin=ROWS + 1)
    assert load(more, database, table="people").rows_loaded == 10
    assert whole(database)[0] == ROWS + 10


def test_a_file_comes_once_whatever_the_options_are(database: Database, tmp_path: Path) -> None:
    file, more = people(tmp_path), people(tmp_path, "more.csv", rows=10, begin=ROWS + 1)
    load(file, database, create=True)
    with pytest.raises(InputError, match=r"people.csv was already loaded into .* chunk_bytes: 4096, now 8192"):
        load(file, database, chunk_bytes=2 * SMALL)
    with pytest.raises(InputError, match="with other files"):
        load([more, file], database, table="people")
    assert whole(database) == EXPECTED
    load(more, database, table="people", truncate=True)
    # The table was emptied, and what the ledger had of it is gone too.
    assert load(file, database).rows_loaded == ROWS
    assert whole(database)[0] == ROWS + 10


def test_values_go_to_the_columns_that_a_header_names(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE people (points int, name text, id int)")
    load(people(tmp_path), database)
    assert whole(database) == EXPECTED
    database.run("CREATE TABLE renamed (identity int, name text, points int)")
    load(people(tmp_path), database, table="renamed", rename={"id": "identity"})
    assert database.one("SELECT sum(identity) FROM renamed") == EXPECTED[1]
    database.run("CREATE TABLE few (name text, id int, more text DEFAULT 'x')")
    (tmp_path / "few.csv").write_text("1,Ann\n2,Bo\n")
    load(tmp_path / "few.csv", database, columns=("id", "name"), header=False)
    assert database.rows("SELECT id, name, more FROM few ORDER BY id") == [(1, "Ann", "x"), (2, "Bo", "x")]


def test_several_files_and_patterns_go_into_one_table(database: Database, tmp_path: Path) -> None:
    files = [people(tmp_path, f"part-{number}.csv", rows=100, begin=1 + 100 * number) for number in range(5)]
    document = pgdyno.load(str(tmp_path / "part-*.csv"), database.dsn, table="people", create=True, connections=3)
    assert document.rows_loaded == 500
    assert whole(database)[1] == 500 * 501 // 2
    files[3].write_text("id,name,scores\n1,x,2\n")
    with pytest.raises(InputError, match=r"first row of .*part-3.csv is not the header"):
        load(files, database, table="people")


def test_each_of_several_files_is_looked_at_before_anything_is_changed(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE t (id int, name text); INSERT INTO t VALUES (0, 'before')")
    for name, text in (("a.csv", "1,Ann\n"), ("b.csv", "2;Bo\n")):
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"first row of .*b.csv has 1 value") as error:
        load([tmp_path / "a.csv", tmp_path / "b.csv"], database, table="t", truncate=True)
    assert "--delimiter ';'" in error.value.remedy
    assert database.one("SELECT count(*) FROM t") == 1


def test_a_byte_order_mark_that_gets_into_a_value_is_said(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE t (name text, id int)")
    for number, (text, item) in enumerate((("Ann,1\n", True), ("name,id\nBo,2\n", False))):
        events: list[dict[str, Any]] = []
        file = tmp_path / f"{number}.csv"
        file.write_text(text, encoding="utf-8-sig")
        load(file, database, table="t", tell=events.append)
        assert any("byte order mark" in event.get("text", "") for event in events) is item


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16_is_refused_with_how_to_convert_it(database: Database, tmp_path: Path, encoding: str) -> None:
    database.run("CREATE TABLE t (name text, id int)")
    file = tmp_path / "a.csv"
    file.write_bytes("\ufeff".encode(encoding) * (encoding != "utf-16") + "Ann,1\n".encode(encoding))
    with pytest.raises(InputError, match=r"a\.csv is UTF-16") as refused:
        load(file, database, table="t")
    assert "iconv -f UTF-16" in refused.value.remedy
    # Two characters of Latin-1 are no mark.
    file.write_bytes(b"\xff\xfe,2\n")
    assert load(file, database, table="t", encoding="LATIN1").rows_loaded == 1


def test_tsv_has_no_quotes_and_no_escapes(database: Database, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text('a\tb\n"x\ty\\n\n\\N\t\n')
    database.run("CREATE TABLE t (a text, b text)")
    load(tmp_path / "t.tsv", database)
    assert database.rows("SELECT a, b FROM t ORDER BY a NULLS FIRST") == [(None, ""), ('"x', "y\\n")]
    (tmp_path / "u.copy").write_text("x\\ty\tz\n\\N\t\\\\\n")
    database.run("CREATE TABLE u (a text, b text)")
    load(tmp_path / "u.copy", database)
    assert database.rows("SELECT a, b FROM u ORDER BY a NULLS FIRST") == [(None, "\\"), ("x\ty", "z")]


def test_parquet_comes_in_with_its_types(database: Database, tmp_path: Path) -> None:
    file = parquet_file(tmp_path / "t.parquet", rows=5000)
    result = load(file, database, create=True, connections=2)
    assert result.rows_loaded == 5000
    assert result.chunks > 10
    assert database.rows(
        "SELECT count(id), count(name), count(*) FILTER (WHERE name = ''), sum(price), max(share)::float, min(encode(raw, 'hex')),"
        " count(*) FILTER (WHERE at = '2026-11-22 05:00+00') FROM t"
    ) == [(4999, 4999, 1, Decimal(5000 * 4999 // 2) / 4, 4999 / 8, "00ff", 209)]
    types = (
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'at'"
    )
    assert database.one(types) == "timestamp with time zone"
    assert load(file, database, create=True).already
    with pytest.raises(InputError, match="Parquet has no delimiter"):
        load(file, database, delimiter=";")


def test_parquet_that_breaks_off_does_not_pass_for_a_shorter_file(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came of it would end in a chunk with other bounds than the same chunk of the whole file has."""
    file = parquet_file(tmp_path / "t.parquet", rows=20_000)
    made, real = itertools.count(1), parquet._csv

    def breaking(rows: Any, **options: Any) -> bytes:
        if threading.current_thread().name == "pgdyno-parquet" and next(made) > 15:
            raise HostError("the store is away", remedy="wait")
        return real(rows, **options)

    with monkeypatch.context() as patched:
        patched.setattr(parquet, "BATCH_ROWS", 1000)
        patched.setattr(parquet, "_csv", breaking)
        with pytest.raises(HostError, match="the store is away"):
            load(file, database, create=True)
    assert load(file, database, create=True).rows_loaded == 20_000
    assert database.rows("SELECT count(*), count(DISTINCT share) FROM t") == [(20_000, 20_000)]


def test_everything_is_put_back_whatever_comes_of_the_load(each: Database, tmp_path: Path) -> None:
    each.run(RICH)
    before = each.shape("rich")
    good = tmp_path / "rich.csv"
    good.write_text("id,code,low,high,other_id\n" + "".join(f"{n},c{n},{n},{n},{n % 100 + 1}\n" for n in range(1, 500)))
    result = load(good, each, indexes="rebuild")
    assert result.indexes.startswith("rebuilt: as asked for")
    assert each.shape("rich") == before
    bad = tmp_path / "bad.csv"
    bad.write_text("id,code,low,high,other_id\n1000,x,1,1,1\n1001,y,none,1,1\n")
    with pytest.raises(PgdynoError, match="none") as error:
        load(bad, each, table="rich", indexes="rebuild")
    assert "run the same command again" in error.value.remedy
    assert error.value.exit_code == EXIT_FAILURE
    assert each.shape("rich") == before
    assert each.left_to_undo() == 0


def test_what_is_changed_must_be_written_down_and_where_it_cannot_be_is_said(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container whose user has no home that can be written to, or a disk that is full."""
    database.run("CREATE TABLE people (id int, name text, points int)")
    file = people(tmp_path)
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("PGDYNO_STATE_DIR", str(tmp_path / "a file"))
    with pytest.raises(HostError, match="cannot be written down in") as error:
        load(file, database)
    assert "PGDYNO_STATE_DIR" in error.value.remedy
    assert database.left_to_undo() == 0
    monkeypatch.setenv("PGDYNO_STATE_DIR", str(tmp_path / "state"))
    assert load(file, database).rows_loaded == ROWS


def test_a_session_is_said_to_be_over_only_when_it_is() -> None:
    for refused in (psycopg.errors.DiskFull, psycopg.errors.LockNotAvailable):
        with pytest.raises(PgdynoError, match="the server refused"), server_errors():
            raise refused("no")
    for lost in (psycopg.errors.AdminShutdown, psycopg.OperationalError):
        with pytest.raises(PgdynoError, match="the server ended the session"), server_errors():
            raise lost("no")


def test_a_doubled_key_in_an_empty_table_is_found_at_the_end_and_can_be_mended(
    database: Database, tmp_path: Path
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)")
    before = database.shape("t")
    file = tmp_path / "t.csv"
    file.write_text("1\n2\n1\n")
    with pytest.raises(PgdynoError, match=r"\(id\)=\(1\) is duplicated"):
        load(file, database, indexes="rebuild", header=False)
    assert database.left_to_undo() == 1
    file.write_text("1\n2\n3\n")
    with pytest.raises(InputError, match="a different plan"):
        load(file, database, header=False)
    load(file, database, header=False, truncate=True, abandon=True)
    assert database.shape("t") == before
    assert database.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,)]


BAD = {
    "no such file": (["absent.csv", "--table", "t"], EXIT_USAGE, "does not exist"),
    "a directory": ([".", "--table", "t"], EXIT_USAGE, "is a directory"),
    "no such table": (["t.csv", "--table", "absent"], EXIT_USAGE, "there is no table absent"),
    "a view": (["t.csv", "--table", "v"], EXIT_USAGE, "a view"),
    "a wrong delimiter": (["t.csv", "--delimiter", ";"], EXIT_USAGE, "--delimiter ','"),
    "another format": (["t.csv", "--format", "tsv"], EXIT_USAGE, "--delimiter ','"),
    "an encoding that is none": (["t.csv", "--encoding", "EBCDIC"], EXIT_USAGE, "no encoding EBCDIC"),
    "an encoding that cannot be cut": (["t.csv", "--encoding", "SJIS"], EXIT_USAGE, "iconv -f SJIS"),
    "a truncated gzip file": (["cut.csv.gz", "--table", "t"], EXIT_FAILURE, "cut.csv.gz"),
    "a header that does not fit": (["h.csv", "--table", "t"], EXIT_USAGE, "'nome'"),
    "a system catalogue": (["t.csv", "--table", "pg_class"], EXIT_USAGE, "pg_catalog.pg_class belongs to the system"),
    "a view of the system": (["t.csv", "--table", "information_schema.tables"], EXIT_USAGE, "system catalogue"),
    "a name without quotes": (["t.csv", "--table", "Mixed Case Ü"], EXIT_USAGE, """--table '"Mixed Case Ü"'"""),
    "a password": (["t.csv", "--into", "host=/tmp password=x"], EXIT_USAGE, "password"),
    "no server": (["t.csv", "--into", "host=/nowhere/at/all user=x"], EXIT_HOST, "cannot be connected to"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_what_cannot_be_loaded_is_one_sentence(
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    case: tuple[list[str], int, str],
) -> None:
    words, code, text = case
    database.run("CREATE TABLE t (id int, name text); CREATE VIEW v AS SELECT * FROM t")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("id,name\n1,Ann\n")
    (tmp_path / "h.csv").write_text("id,nome\n1,Ann\n")
    packed = gzip.compress(b"id,name\n" + b"".join(b"%d,%032d\n" % (n, n * n) for n in range(9999)))
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    into = [] if "--into" in words else ["--into", database.dsn]
    assert run(["load", *words, *into]) == code
    shown = capsys.readouterr()
    assert text in shown.err
    assert "remedy:" in shown.err
    assert database.left_to_undo() == 0
    if code == EXIT_USAGE:
        assert database.one("SELECT count(*) FROM t") == 0


def test_a_role_that_may_not_is_told_what_to_grant(database: Database, tmp_path: Path) -> None:
    database.run("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN; CREATE TABLE t (id int)")
    (tmp_path / "t.csv").write_text("1\n")
    dsn = database.dsn.replace("user=postgres", "user=stranger")
    with pytest.raises(InputError, match="may not INSERT") as error:
        pgdyno.load(tmp_path / "t.csv", dsn, header=False)
    assert error.value.remedy == "run as its owner `GRANT INSERT ON public.t TO stranger`"
    database.run("GRANT INSERT, SELECT ON t TO stranger")
    with pytest.raises(InputError, match="ledger cannot be kept"):
        pgdyno.load(tmp_path / "t.csv", dsn, header=False)
    document = pgdyno.load(tmp_path / "t.csv", dsn, header=False, ledger=False)
    assert (document.rows_loaded, document.job) == (1, None)
    database.run("DROP OWNED BY stranger; DROP ROLE stranger")


def test_two_loads_of_one_table_do_not_meet(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE people (id int, name text, points int)")
    with database.session() as connection:
        result = table.find(connection, "people")
        assert result is not None
        ledger.lock(connection, result.oid, result.quoted)
        with pytest.raises(InputError, match="another pgdyno load"):
            load(people(tmp_path), database)


def test_the_command_prints_what_it_did_and_how_it_ended(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = people(tmp_path, rows=20)
    assert run(["load", str(file), "--into", database.dsn, "--create"]) == EXIT_OK
    shown = capsys.readouterr()
    assert "public.people: 20 rows loaded, 0 rejected" in shown.out
    assert 'CREATE TABLE "people"' in shown.err
    assert run(["load", str(file), "--into", database.dsn]) == EXIT_OK
    assert "20 rows were already loaded" in capsys.readouterr().out
    database.run("TRUNCATE people; ALTER TABLE people ADD CHECK (id <> 5)")
    words = ["--reject", str(tmp_path / "bad.csv"), "--again", "--json"]
    assert run(["load", str(file), "--into", database.dsn, *words]) == EXIT_REJECTED
    shown = capsys.readouterr()
    events = [json.loads(line) for line in shown.out.splitlines()]
    assert (events[-1]["event"], events[-1]["rows_loaded"], events[-1]["rows_rejected"]) == ("end", 19, 1)
    assert "bad.csv" in shown.err
    assert run(["load", "--restore", database.dsn, "--dry-run"]) == EXIT_USAGE, "it would change something"
    assert "--restore does not load files" in capsys.readouterr().err
    assert run(["load", "--restore", database.dsn]) == EXIT_OK
    assert "nothing to restore" in capsys.readouterr().out


def test_standard_input_is_loaded_and_cannot_go_on(database: Database, tmp_path: Path) -> None:
    file = people(tmp_path, rows=30_000)
    words = ["load", "-", "--format", "csv", "--table", "people", "--create", "--into", database.dsn]
    with file.open("rb") as opened:
        piped = subprocess.Popen(["cat"], stdin=opened, stdout=subprocess.PIPE)
    with piped:
        done = subprocess.run(
            [sys.executable, "-m", "pgdyno", *words], stdin=piped.stdout, capture_output=True, text=True, check=False
        )
    assert done.returncode == EXIT_OK, done.stderr
    assert whole(database)[0] == 30_000
    database.run("UPDATE pgdyno_load.job SET ended = NULL")
    with file.open("rb") as opened:
        done = subprocess.run(
            [sys.executable, "-m", "pgdyno", *words], stdin=opened, capture_output=True, text=True, check=False
        )
    assert done.returncode == EXIT_USAGE
    assert "standard input" in done.stderr


def test_after_a_bad_row_of_a_pipe_nobody_is_told_to_go_on(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE t (id int)")
    pipe = tmp_path / "t.csv"
    os.mkfifo(pipe)

    def load_from(text: str, **options: Any) -> Any:
        writer = threading.Thread(target=pipe.write_text, args=(text,), daemon=True)
        writer.start()
        try:
            return load(pipe, database, header=False, **options)
        finally:
            writer.join(60)

    rows = "".join(f"{number}\n" for number in range(ROWS))
    with pytest.raises(PgdynoError, match=rf"t\.csv line {ROWS + 1}") as error:
        load_from(f"{rows}x\n", connections=1)
    assert "same command" not in error.value.remedy
    assert "--abandon --truncate" in error.value.remedy
    with pytest.raises(InputError, match="which may not have the same rows again"):
        load_from("1\n2\n")
    assert load_from("1\n2\n", abandon=True, truncate=True).rows_loaded == 2


def test_the_library_is_imported_when_it_is_used() -> None:
    program = """
import sys, pgdyno
assert "pgdyno.loader" not in sys.modules
pgdyno.load
assert "pgdyno.loader" in sys.modules
# A tenth of a second of each load, for nothing.
assert "pydantic" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ)
    with pytest.raises(AttributeError, match="no attribute"):
        pgdyno.__getattr__("unload")


def test_one_row_is_said_in_the_singular_and_the_ledger_s_schema_once(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("id\n1\n")
    first = pgdyno_command("load", file, "--into", database.dsn, "--create", code=EXIT_OK)
    assert "1 row loaded" in first.out
    assert "1 chunk," in first.out
    assert "unknown" not in first.out + first.err
    assert "pgdyno_load" in first.err
    file.write_text("id\n2\n")
    again = pgdyno_command("load", file, "--into", database.dsn, code=EXIT_OK)
    assert "pgdyno_load" not in again.err
