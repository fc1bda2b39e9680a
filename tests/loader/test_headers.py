"""The first row of a file: names or data. A header is never loaded as a row, and a row never lost as a header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pgdyno
from pgdyno.base.errors import EXIT_OK, EXIT_USAGE, InputError
from pgdyno.cli.main import run
from pgdyno.loader import columns

from .database import Database


def load(file: Path | list[Path], database: Database, **options: Any) -> Any:
    return pgdyno.load(file, database.dsn, vacuum=False, **options)


def written(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize(
    ("table", "text", "rows"),
    [
        ('country text, "2019" numeric, "2020" numeric', "country,2019,2020\nDE,1,2\nFR,3,4\n", 2),
        ("k text, t text", "k,t\na,b\n", 1),
        ("id bigint, t date, v text", "id,t,v\n1,2020-01-01,x\n", 1),
        ('"on" int, "true" text', "true,on\nx,1\n", 1),
        ('"2019" int, "2020" int', "2020,2019\n1,2\n", 1),
    ],
)
def test_a_row_of_columns_names_is_a_header_whatever_they_look_like(
    database: Database, tmp_path: Path, table: str, text: str, rows: int
) -> None:
    database.run(f"CREATE TABLE t ({table})")
    assert load(written(tmp_path, text), database).rows_loaded == rows


def test_columns_that_are_all_boolean_may_have_values_that_are_names(database: Database, tmp_path: Path) -> None:
    """`t` in a column of truth values is as often a value as a name: either way a guess could lose a row."""
    database.run("CREATE TABLE t (t boolean)")
    file = written(tmp_path, "t\nf\n")
    with pytest.raises(InputError, match="may be names or data: t") as error:
        load(file, database)
    assert error.value.remedy == "use --header if it has names, --no-header if it is data"
    assert load(file, database, header=False).rows_loaded == 2


@pytest.mark.parametrize(
    ("table", "text", "said"),
    [
        ("i int, a int, b int", ",a,b\n0,1,2\n", "its column 1 has no name"),
        ("a text, b text", "a,a\nx,y\n", "two columns are called 'a'"),
        ("country text, y2019 numeric", "country,2019\nDE,1\n", "there is no column '2019'"),
    ],
)
def test_a_header_that_does_not_fit_is_refused_and_not_loaded(
    database: Database, tmp_path: Path, table: str, text: str, said: str
) -> None:
    database.run(f"CREATE TABLE t ({table})")
    with pytest.raises(InputError, match=said) as error:
        load(written(tmp_path, text), database)
    assert "--header --columns" in error.value.remedy
    names = tuple(column.split()[0] for column in table.split(", "))
    assert load(tmp_path / "t.csv", database, header=True, columns=names).rows_loaded == 1


def test_a_value_that_is_a_columns_name_makes_no_header_of_a_row_with_others(
    database: Database, tmp_path: Path
) -> None:
    database.run("CREATE TABLE t (entity int, name text, value text)")
    assert load(written(tmp_path, "1,name,Ann\n1,value,2\n"), database).rows_loaded == 2


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("id,t,v\n1,2020-01-01,x\n", [("id", "bigint"), ("t", "date"), ("v", "text")]),
        ("id,2019,2020\n1,2.5,3\n2,4,5\n", [("id", "bigint"), ("2019", "numeric"), ("2020", "bigint")]),
        ("1,Ann\n2,Bo\n", [("column1", "bigint"), ("column2", "text")]),
        ("N/A,7\n5,2\n", [("column1", "text"), ("column2", "bigint")]),
        ("NA,7\n5,2\n", [("column1", "text"), ("column2", "bigint")]),
        ("Ann,7\nBo,8\n", [("column1", "text"), ("column2", "bigint")]),
    ],
)
def test_a_table_is_made_with_names_where_the_types_tell_a_header_from_data(
    database: Database, tmp_path: Path, text: str, made: list[tuple[str, str]]
) -> None:
    events: list[dict[str, Any]] = []
    load(written(tmp_path, text), database, create=True, tell=events.append)
    query = "SELECT attname::text, format_type(atttypid, NULL)::text FROM pg_attribute WHERE attrelid = 't'::regclass"
    types = {name: "timestamp" if kind.startswith("timestamp") else kind for name, kind in database.rows(query)}
    assert [(name, types[name]) for name, _ in made] == made
    notes = " ".join(event.get("text", "") for event in events)
    assert ("no header was found" in notes) is (made[0][0] == "column1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("country,2019,2020\nDE,1,2\nFR,3,4\n", "may be names or data: country,2019,2020"),
        ("a,t\nx,y\n", "may be names or data"),
        (",a,b\n0,x,y\n", "may be names or data"),
        (",a,b\n0,1,2\n", "its column 1 has no name"),
        ("a,a\n1,2\n", "two columns are called 'a'"),
        ("a,a\nx,y\n", "may be names or data"),
    ],
)
def test_no_table_is_made_where_a_guess_could_lose_a_row_or_load_a_header(
    database: Database, tmp_path: Path, text: str, said: str
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(InputError, match=said) as error:
        load(file, database, create=True)
    assert "--header" in error.value.remedy
    assert "--no-header" in error.value.remedy
    assert database.one("SELECT to_regclass('t')") is None
    rows = text.count("\n")
    assert load(file, database, create=True, header=False).rows_loaded == rows
    database.run("DROP TABLE t")
    named = tuple(f"c{number}" for number in range(text.split("\n")[0].count(",") + 1))
    assert load(file, database, create=True, header=True, columns=named, again=True).rows_loaded == rows - 1


def test_columns_that_were_named_do_not_say_whether_the_first_row_is_data(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE t (k text, t text)")
    with pytest.raises(InputError, match="--columns does not say which"):
        load(written(tmp_path, "k,t\na,b\n"), database, columns=("k", "t"))


def test_capitals_matter_as_little_for_several_files_as_for_one(database: Database, tmp_path: Path) -> None:
    files = [written(tmp_path, "ID,V\n1,a\n", "p0.csv"), written(tmp_path, " id,v\n2,b\n", "p1.csv")]
    database.run("CREATE TABLE t (id int, v text)")
    assert load(files, database, table="t").rows_loaded == 2
    swapped = written(tmp_path, "v,id\nc,3\n", "p2.csv")
    with pytest.raises(InputError, match=r"first row of .*p2.csv is not the header"):
        load([files[0], swapped], database, table="t", again=True)


def test_a_header_of_the_second_file_alone_is_no_row(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE t (id text, v text)")
    files = [written(tmp_path, "1,a\n", "p0.csv"), written(tmp_path, "id,v\n2,b\n", "p1.csv")]
    with pytest.raises(InputError, match=r"p1.csv has a header, and .*p0.csv has none"):
        load(files, database, table="t")
    assert load(files, database, table="t", header=False).rows_loaded == 3


@pytest.mark.parametrize(
    ("encoding", "header", "remedy"),
    [
        ("EUC_JP", b"id,\xa1,v\n", "--encoding"),
        ("UTF8", b"id,\xff,v\n", "--encoding"),
        ("LATIN1", b"id,a\x00b,v\n", "NUL"),
    ],
)
def test_a_header_that_is_no_text_in_its_encoding_is_refused_as_copy_refuses_it(
    each: Database, tmp_path: Path, encoding: str, header: bytes, remedy: str
) -> None:
    """It is not sent, so that COPY would not notice; psql's `\\copy … HEADER` does."""
    each.run("CREATE TABLE t (id int, x text, v text)")
    file = written(tmp_path, header + b"1,x,y\n")
    with pytest.raises(InputError, match=r"the header of .*t\.csv") as error:
        load(file, each, header=True, columns=("id", "x", "v"), encoding=encoding)
    assert remedy in error.value.remedy
    assert each.one("SELECT to_regclass('pgdyno_load.job')") is None, "nothing was changed"
    file.write_bytes("id,é,v\n1,x,y\n".encode("latin-1"))
    assert load(file, each, header=True, columns=("id", "x", "v"), encoding="LATIN1").rows_loaded == 1


def test_one_column_that_another_delimiter_would_cut_is_not_made(
    database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "id;v\n1;a\n2;b\n")
    assert run(["load", str(file), "--into", database.dsn, "--create"]) == EXIT_USAGE
    err = capsys.readouterr().err
    assert "all its rows have 2 values" in err
    assert "--delimiter ';'" in err
    assert run(["load", str(file), "--into", database.dsn, "--create", "--delimiter", ";"]) == EXIT_OK
    assert database.rows("SELECT id, v FROM t ORDER BY id") == [(1, "a"), (2, "b")]
    path = written(tmp_path, "text\na; b\nc\n", "one.csv")
    assert load(path, database, create=True).rows_loaded == 2, "not all rows have it"


def test_names_are_told_from_values_by_what_stands_below() -> None:
    known: list[tuple[list[list[str | None]], bool | None]] = [
        ([["id", "name"]], True),
        ([["a", "b"], ["x", "y"]], True),
        ([["1", "b"], ["2", "y"]], False),
        ([["when", "5", "10"], ["1", "2", "3"]], True),
        ([[None, "a"], ["x", "y"]], None),
        ([[None, None], ["1", "2"]], False),
        ([], False),
    ]
    for rows, expected in known:
        assert columns.is_header_of_new(rows) is expected, rows
