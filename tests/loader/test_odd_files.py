"""Files that other programs write and COPY alone would not take: padded, empty, with NULs, with times too fine."""

from __future__ import annotations

import gzip
import uuid
from typing import TYPE_CHECKING, Any

import pytest

import pgdyno
from pgdyno.base.errors import InputError, PgdynoError

from .database import Database

if TYPE_CHECKING:
    from pathlib import Path

SOME = [uuid.UUID(int=number * 0x1234_5678_9ABC_DEF0_1234_5678) for number in range(3)]


def load(file: Path | list[Path] | str, database: Database, **options: Any) -> Any:
    return pgdyno.load(file, database.dsn, vacuum=False, **options)


def notes_of(file: Path | list[Path] | str, database: Database, **options: Any) -> str:
    """What is said while a file is loaded."""
    events: list[dict[str, Any]] = []
    load(file, database, tell=events.append, **options)
    return "; ".join(event["text"] for event in events if event["event"] == "note")


def parquet(path: Path, **columns: Any) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(columns), path, write_page_checksum=True)
    return path


@pytest.mark.parametrize("padding", [1, 512, 300_000])
def test_zeros_behind_a_gzip_file_are_padding_as_for_gzip(database: Database, tmp_path: Path, padding: int) -> None:
    file = tmp_path / "t.csv.gz"
    database.run("CREATE TABLE t (id int)")
    file.write_bytes(gzip.compress(b"1\n2\n") + gzip.compress(b"3\n") + bytes(padding))
    assert load(file, database, header=False).rows_loaded == 3
    file.write_bytes(gzip.compress(b"1\n2\n") + bytes(padding) + gzip.compress(b"3\n"))
    with pytest.raises(PgdynoError, match="other bytes follow the padding"):
        load(file, database, header=False, ledger=False)


def test_empty_files_among_others_are_left_out_and_said(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE t (id int, v text)")
    for name, text in (("p0.csv", ""), ("p1.csv", "id,v\n1,a\n"), ("p2.csv", ""), ("p3.csv", "id,v\n2,b\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "p0.csv.gz").write_bytes(gzip.compress(b""))
    result = notes_of(f"{tmp_path}/p*.csv*", database, table="t")
    assert f"{tmp_path / 'p0.csv'} and 1 more: empty, and omitted" in result
    assert database.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,)]
    with pytest.raises(InputError, match=r"p0\.csv is empty"):
        load([tmp_path / "p0.csv", tmp_path / "p2.csv"], database, table="t")


@pytest.mark.parametrize("says_so", [True, False])
def test_sixteen_bytes_of_parquet_are_a_uuid_where_file_or_column_says_so(
    database: Database, tmp_path: Path, says_so: bool
) -> None:
    """Many programs write UUIDs without the logical type that says so."""
    import pyarrow as pa

    stored = pa.array([item.bytes for item in SOME] + [None], pa.binary(16))
    column = pa.ExtensionArray.from_storage(pa.uuid(), stored) if says_so else stored
    file = parquet(tmp_path / "t.parquet", id=column, n=[1, 2, 3, 4])
    database.run("CREATE TABLE t (n int, id uuid)")
    assert load(file, database).rows_loaded == 4
    assert [row[0] for row in database.rows("SELECT id FROM t ORDER BY n")] == [*SOME, None]
    load(file, database, table="made", create=True)
    query = "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'made'::regclass AND attname = 'id'"
    assert database.one(query) == ("uuid" if says_so else "bytea")
    results = [row[0] for row in database.rows("SELECT id FROM made ORDER BY n")]
    assert results == [*SOME, None] if says_so else results == [*(item.bytes for item in SOME), None]


def test_bytes_of_a_fixed_length_are_bytes(database: Database, tmp_path: Path) -> None:
    import pyarrow as pa

    file = parquet(tmp_path / "t.parquet", raw=pa.array([b"\x00\xff\\", None], pa.binary(3)), n=[1, 2])
    load(file, database, create=True)
    assert database.rows("SELECT raw FROM t ORDER BY n") == [(b"\x00\xff\\",), (None,)]


def test_that_nanoseconds_are_rounded_is_said(database: Database, tmp_path: Path) -> None:
    import pyarrow as pa

    at = pa.array([1_000_000_000_000_000_999], pa.timestamp("ns"))
    file = parquet(tmp_path / "t.parquet", at=at, us=at.cast(pa.timestamp("us"), safe=False))
    text = notes_of(file, database, create=True)
    assert "t.parquet: at in nanoseconds; PostgreSQL keeps microseconds, and rounds" in text
    assert database.one("SELECT at::text FROM t") == "2001-09-09 01:46:40.000001"


def test_a_damaged_page_of_parquet_is_found_by_its_checksum(database: Database, tmp_path: Path) -> None:
    """Where the program that wrote the file made one. A store's own checksum is of the whole object, which is not read in order."""
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    table = pa.table({"n": pa.array(range(1000), pa.int64())})
    parquet.write_table(table, path, write_page_checksum=True, use_dictionary=False, compression="none")
    content = bytearray(path.read_bytes())
    content[4000] ^= 1
    path.write_bytes(content)
    with pytest.raises(PgdynoError, match=r"t\.parquet.*(?i:crc|checksum)"):
        load(path, database, create=True)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_a_nul_has_a_remedy_that_does_not_destroy_the_file(each: Database, tmp_path: Path, kind: str) -> None:
    each.run("CREATE TABLE t (id int, v text)")
    file = tmp_path / f"t.{kind}"
    text = b"id,v\n1,a\n2,b\x00c\n"
    if kind == "parquet":
        parquet(file, id=[1, 2], v=["a", "b\x00c"])
    else:
        file.write_bytes(gzip.compress(text) if kind == "csv.gz" else text)
    with pytest.raises(PgdynoError, match="0x00") as error:
        load(file, each, table="t")
    assert (error.value.code, error.value.data["source"]) == ("load.text.nul", str(file))
    assert ("< FILE" in error.value.remedy, "tr -d" in error.value.remedy) == (kind == "csv", kind != "parquet")
    assert "encoding" not in error.value.remedy
    file = tmp_path / "other.csv"
    file.write_bytes(b"id,v\n1,a\n2,\xff\n")
    with pytest.raises(PgdynoError, match="0xff") as error:
        load(file, each, table="t", ledger=False)
    assert "name the file's encoding" in error.value.remedy


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_names_that_the_server_would_cut_are_refused_before_anything_is_made(
    database: Database, tmp_path: Path, kind: str
) -> None:
    long = "x" * 64
    file = tmp_path / f"t.{kind}"
    if kind == "parquet":
        parquet(file, **{"id": [1], long: [2]})
    else:
        file.write_text(f"id,{long}\n1,2\n")
    with pytest.raises(InputError) as error:
        load(file, database, create=True)
    assert (error.value.code, error.value.data["column"]) == ("load.column.name_too_long", long)
    assert f"--rename {long}=" in error.value.remedy
    with pytest.raises(InputError) as error:
        load(file, database, create=True, table=long, rename={long: "v"})
    assert error.value.code == "load.table.name_too_long"
    assert load(file, database, create=True, rename={long: "v"}).rows_loaded == 1


def test_instants_in_a_column_without_a_time_zone_are_named(database: Database, tmp_path: Path) -> None:
    import pyarrow as pa

    file = parquet(tmp_path / "t.parquet", at=pa.array([0], pa.timestamp("us", "Europe/Berlin")))
    database.run("CREATE TABLE t (at timestamp)")
    assert "at has a time zone in the file and none in the table" in notes_of(file, database)
    assert database.one("SELECT at::text FROM t") == "1970-01-01 00:00:00"
