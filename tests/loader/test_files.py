"""What files say about themselves: names, formats, headers, types, fingerprints. No server."""

from __future__ import annotations

import bz2
import datetime
import gzip
import json
import lzma
import os
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import InputError
from pgdyno.loader import advice, columns, compression, ledger, pipe, source
from pgdyno.loader.asked import LoadOptions
from pgdyno.loader.format import CSV, Format, bare, choose
from pgdyno.loader.sample import SourceSample, take, whole_rows
from pgdyno.loader.source import RowSource
from pgdyno.loader.table import TableColumn, name_of

if TYPE_CHECKING:
    from pathlib import Path

TEXT = Format("text", "\t", "\\N")


def asked(**options: Any) -> LoadOptions:
    return LoadOptions(("a.csv",), "dbname=x", **options)


def test_a_format_is_that_of_the_names_or_as_asked_for() -> None:
    assert choose(asked(), ["a.csv", "b.CSV.gz"]) == CSV
    assert choose(asked(), ["a.copy"]) == TEXT
    tsv = choose(asked(), ["a.tsv.zst"])
    assert (tsv.kind, tsv.delimiter, tsv.null, tsv.quote) == ("csv", "\t", "\\N", "\x01")
    assert choose(asked(format="csv", delimiter=";", escape="\\"), ["a.dat"]) == Format("csv", ";", "", '"', "\\")


@pytest.mark.parametrize(
    ("options", "names", "said"),
    [
        ({}, ["a.dat"], "a.dat does not say its format"),
        ({}, ["a.csv", "b.tsv"], "csv and tsv"),
        ({"delimiter": ";;"}, ["a.csv"], "single-byte"),
        ({"delimiter": '"'}, ["a.csv"], "are both"),
        ({"delimiter": "x"}, ["a.text"], "cannot be the delimiter of the format text"),
        ({"null": "a,b"}, ["a.csv"], "has the delimiter in it"),
        ({"null": '"'}, ["a.csv"], "has the quote in it"),
        ({"null": "a\nb"}, ["a.csv"], "the end of a line"),
        ({"quote": "ä"}, ["a.csv"], "single-byte"),
        ({"quote": "'"}, ["a.tsv"], "not quoted"),
    ],
)
def test_a_format_that_is_none_is_refused(options: dict[str, Any], names: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        choose(asked(**options), names)
    assert error.value.remedy


@pytest.mark.parametrize("kind", ["none", "gzip", "xz", "bzip2", "zstd"])
def test_the_beginning_of_a_compressed_file_is_read(kind: str) -> None:
    plain = "".join(f"{number},{random.Random(number).random()}\n" for number in range(60_000)).encode()
    packed = pack(plain, kind)
    head = packed[: len(packed) * 3 // 4]  # bzip2 gives whole blocks of 900 kB only
    assert compression.compression_of(head) == kind
    plain_head = compression.plain_head(head, 1 << 20)
    assert plain_head
    assert plain.startswith(plain_head)
    assert compression.plain_head(packed, 1000) == plain[:1000]


def test_several_members_of_a_gzip_file_are_one_file() -> None:
    assert compression.plain_head(gzip.compress(b"a\n") + gzip.compress(b"b\n"), 100) == b"a\nb\n"
    assert compression.plain_head(gzip.compress(b"a\n") + b"\x1f\x8bdamaged", 100) == b"a\n"


def test_what_begins_a_file_says_its_compression_as_it_does_to_the_engine() -> None:
    """pzstd's files begin with a frame that is passed over; text may begin as bzip2 does."""
    skipped = b"\x50\x2a\x4d\x18\x04\x00\x00\x00size"
    assert compression.compression_of(skipped + pack(b"a\n", "zstd")) == "zstd"
    assert compression.plain_head(skipped + pack(b"a\n", "zstd"), 100) == b"a\n"
    assert compression.compression_of(b"BZh9,a,b,c\n") == "none"


def pack(plain: bytes, kind: str) -> bytes:
    if kind == "zstd":
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(plain)
        return bytes(sink.getvalue())
    return {"none": bytes, "gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress}[kind](plain)


def test_files_are_found_by_name_and_by_pattern(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).write_text("1\n")
    result = source.find([str(tmp_path / "*.csv")])
    assert [item.name for item in result] == [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    assert all(item.whole for item in result)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent.csv", "does not exist"),
        ("folder", "is a directory"),
        ("empty.csv", "is empty"),
        ("no-*.csv", "no file matches"),
        ("x" * 300, "cannot be read: File name too long"),
        ("x*" * 150, "no file matches"),
        ("table.parquet", "not a readable Parquet file"),
        ("twice.csv", "named twice"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_one_sentence(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "twice.csv").write_bytes(b"1\n")
    (tmp_path / "table.parquet").write_bytes(b"PAR1....PAR1")
    words = [str(tmp_path / name)] * (2 if name == "twice.csv" else 1)
    with pytest.raises(InputError, match=said) as error:
        source.find(words)
    assert error.value.remedy


def test_a_file_by_two_ways_is_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows would be loaded twice."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.csv"
    path.write_text("1\n")
    (tmp_path / "link.csv").symlink_to(path)
    for words in (["a.csv", str(path)], ["link.csv", "a.csv"], ["[a].csv", str(path)]):
        with pytest.raises(InputError, match="is the same file as"):
            source.find(words)
    (tmp_path / "b.csv").write_text("1\n")
    assert len(source.find(["a.csv", "b.csv"])) == 2, "a copy is another file"


def parquet_file(path: Path, rows: int = 3) -> Path:
    """Every kind of value that has a type in PostgreSQL, with NULLs and empty strings."""
    import pyarrow as pa
    from pyarrow import parquet

    some = range(rows)
    columns = {
        "id": pa.array([number or None for number in some], pa.int32()),
        "name": pa.array([None if n == 1 else "" if n == 2 else f'a "{n}",\n' for n in some]),
        "price": pa.array([Decimal(n) / 4 for n in some], pa.decimal128(10, 2)),
        "share": pa.array([n / 8 for n in some]),
        "good": pa.array([n % 2 == 0 for n in some]),
        "day": pa.array([datetime.date(2026, 11, 1 + n % 28) for n in some]),
        "at": pa.array([datetime.datetime(2026, 11, 22, n % 24, tzinfo=datetime.UTC) for n in some]),
        "raw": pa.array([bytes([n % 256, 255]) for n in some]),
        "kind": pa.array([f"k{n % 3}" for n in some]).dictionary_encode(),
    }
    parquet.write_table(pa.table(columns), path, row_group_size=1000)
    return path


def test_parquet_is_text_with_the_types_of_its_columns(tmp_path: Path) -> None:
    (result,) = source.find([str(parquet_file(tmp_path / "t.parquet"))])
    assert result.parquet is not None
    assert result.head.decode().splitlines()[0] == '"id","name","price","share","good","day","at","raw","kind"'
    assert b'"2026' not in result.head
    assert list(result.parquet.types.values()) == [
        *("bigint", "text", "numeric", "double precision", "boolean", "date", "timestamptz", "bytea", "text")
    ]
    first = take(result, CSV, "UTF8").rows[1]
    assert first[0] is None
    assert first[1:3] == ['a "0",\n', "0.00"]
    with source.opened([result]) as (_, descriptors):
        text = b""
        while more := os.read(descriptors[0], 1 << 16):
            text += more
        assert os.read(descriptors[1], 9) == pipe.ALL, "that was all"
    assert text == result.head


def test_parquet_that_is_damaged_inside_is_one_sentence(tmp_path: Path) -> None:
    file = parquet_file(tmp_path / "t.parquet")
    content = bytearray(file.read_bytes())
    content[4:36] = b"\xff" * 32  # the header of the first page; index and marks are whole
    file.write_bytes(content)
    with pytest.raises(InputError, match="not a readable Parquet file"):
        source.find([str(file)])


def test_parquet_that_has_no_columns_of_text_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"list": [[1, 2]]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="column list is list"):
        source.find([str(tmp_path / "t.parquet")])


def test_bytes_of_parquet_are_digits_however_they_are_kept(tmp_path: Path) -> None:
    """As they are, those of a column that is coded by a dictionary would be taken for text in which backslashes escape."""
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"raw": pa.array([b"\\000", b"\\000"]).dictionary_encode()}), path)
    (result,) = source.find([str(path)])
    assert result.parquet is not None
    assert result.parquet.types == {"raw": "bytea"}
    assert result.head.count(b"\\x5c303030") == 2


def test_a_fingerprint_is_another_one_when_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"1\n" * 200_000)
    before = source.find([str(file)])[0].fingerprint
    with file.open("r+b") as opened:
        opened.seek(-1, 2)
        opened.write(b"x")
    after = source.find([str(file)])[0].fingerprint
    assert before is not None
    assert after is not None
    assert before["sha256"] != after["sha256"]
    assert before["size"] == after["size"] == 400_000


def test_a_stream_gives_its_beginning_once_more() -> None:
    reading, writing = os.pipe()
    content = bytes(range(1, 200)) * 300
    with os.fdopen(writing, "wb") as before:
        before.write(content)
    row_source = source.RowSource("standard input", os.read(reading, 1000), stream=reading)
    with source.opened([row_source]) as (places, descriptors):
        assert places == [{"path": f"/dev/fd/{descriptors[0]}", "end": f"/dev/fd/{descriptors[1]}"}]
        result = b""
        while more := os.read(descriptors[0], 1 << 16):
            result += more
        assert os.read(descriptors[1], 9) == pipe.ALL, "that was all"
    os.close(reading)
    assert result == content


def test_a_stream_that_nobody_reads_to_its_end_does_not_hang() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as before:
        before.write(b"x" * 60_000)
    row_source = source.RowSource("standard input", b"y" * 200_000, stream=reading)
    with source.opened([row_source]) as (_, descriptors):
        assert os.read(descriptors[0], 10) == b"y" * 10
    os.close(reading)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-20", None], "bigint"),
        (["1", "2.5"], "numeric"),
        (["007"], "text"),
        (["t", "False", "off"], "boolean"),
        (["2026-11-22"], "date"),
        (["2026-11-22 10:00:00.5", "2026-11-22T10:00"], "timestamp"),
        (["2026-11-22 10:00:00+01"], "timestamptz"),
        (["5c0ffe00-0000-4000-8000-000000000000"], "uuid"),
        (["", "1"], "text"),
        ([None], "text"),
    ],
)
def test_values_are_told_from_names_by_what_they_may_be_meant_as(values: list[str | None], kind: str) -> None:
    assert columns.type_of(values) == kind


def test_a_table_is_made_of_a_header_and_rows() -> None:
    rows = CSV.rows('1,"a ""b"",\nc",\n2,,3.5\n', whole=True)
    assert rows == [["1", 'a "b",\nc', None], ["2", None, "3.5"]]
    text = columns.definition("t", ["id", "Full name", 'a"b'], ["bigint", "text", "numeric"])
    assert text == 'CREATE TABLE t (\n    "id" bigint,\n    "Full name" text,\n    "a""b" numeric\n)'
    error = advice.width_error([["1"], ["1", "2"]], 1, "t.csv", None, escape=False)
    assert error is not None
    assert (error.code, error.data["row"]) == ("load.row.width", 2)


COLUMNS = [TableColumn(name, name, "text") for name in ("id", "name", "Born")]


def test_a_header_says_which_columns_its_values_belong_to() -> None:
    chosen = columns.chosen(["born", "id"], COLUMNS, (), {}, header=True)
    assert chosen is not None
    assert [column.name for column in chosen] == ["Born", "id"]
    assert columns.chosen(["x"], COLUMNS, (), {}, header=False) is None
    assert columns.header_names([["Full name", None]], {"Full name": "name"}) == ["name", ""]
    for names, wanted, item in ((["id", "nome"], (), "'nome'"), (["id", "ID"], (), "named twice"), ([], ["x"], "'x'")):
        with pytest.raises(InputError, match=item):
            columns.chosen(names, COLUMNS, wanted, {}, header=not wanted)


def test_a_long_value_hides_no_header() -> None:
    """Longer than what Python's csv takes unless it is told to; else the header was loaded as a row."""
    data = b"id,body\n1,short\n2," + b"x" * 200_000 + b"\n3,last\n"
    result = take(RowSource("a.csv", data, len(data), 0, "x"), CSV, "UTF8")
    assert [row[0] for row in result.rows] == ["id", "1", "2", "3"]
    assert columns.looks_like_names(result.rows)


def test_a_wrong_delimiter_is_told_from_the_first_line() -> None:
    with pytest.raises(InputError, match="has 1 value between") as error:
        columns.check_width([["1;Ann;1970"]], 3, CSV, "1;Ann;1970")
    assert "--delimiter ';'" in error.value.remedy
    columns.check_width([["1", "Ann", "1970"]], 3, CSV, "1,Ann,1970")


def test_an_empty_line_of_a_single_column_is_a_row() -> None:
    rows = CSV.rows("\n1\n", whole=True)
    assert rows == [[None], ["1"]]
    columns.check_width(rows, 1, CSV, "")


def test_names_are_told_from_values_only_by_what_cannot_be_a_name() -> None:
    assert columns.looks_like_names([["id", "name"], ["1", "Ann"]])
    for row in (["1", "Ann"], ["id", "id"], ["id", None], ["id", "2026-01-01"]):
        assert not columns.looks_like_names([row])


def test_a_table_is_called_as_its_file() -> None:
    assert name_of(None, ["/data/title.basics.tsv.gz"]) == '"title_basics"'
    assert name_of("imdb.title", ["a", "b"]) == "imdb.title"
    assert bare("a/b.csv.zst") == "a/b.csv"
    for names in (["a.csv", "b.csv"], ["standard input"]):
        with pytest.raises(InputError, match="which table"):
            name_of(None, names)


@given(st.lists(st.text('a",\n\\\t', max_size=6), min_size=1, max_size=6), st.integers(0, 40))
def test_whole_rows_of_a_sample_end_where_the_whole_file_has_ends(values: list[str], cut: int) -> None:
    """What is cut off is never in the middle of a quoted value."""
    doubled = ['"' + value.replace('"', '""') + '"' for value in values]
    data = "".join(f"{text}\n" for text in doubled).encode()
    ends = [len("".join(f"{text}\n" for text in doubled[:number]).encode()) for number in range(len(doubled) + 1)]
    result = whole_rows(data[: max(0, len(data) - cut)], CSV, header=False)
    assert len(result) in ends
    assert data.startswith(result)


def test_a_sample_knows_how_much_there_is() -> None:
    data = b"id,name\n" + b"1,Ann\n" * 1000
    stored = gzip.compress(data)
    result = take(RowSource("a.csv.gz", stored, len(stored), 0, "x"), CSV, "UTF8")
    assert isinstance(result, SourceSample)
    assert result.rows[:2] == [["id", "name"], ["1", "Ann"]]
    assert result.bytes_total == pytest.approx(len(data))
    assert result.bytes_per_row(CSV) == pytest.approx(6, rel=0.01)
    assert whole_rows(result.data, CSV, header=True) == b"1,Ann\n" * 1000


@given(st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3)))
def test_a_plan_differs_from_itself_in_nothing(value: Any) -> None:
    plan = json.loads(json.dumps({"a": value, "b": {"c": value}}))
    assert list(ledger.differences(plan, plan)) == []


def test_a_difference_is_named_with_both_values() -> None:
    before = {"encoding": "UTF8", "sources": [{"name": "a.csv", "fingerprint": {"size": 10}}]}
    now = {"encoding": "LATIN1", "sources": [{"name": "a.csv", "fingerprint": {"size": 20}}]}
    assert list(ledger.differences(before, now)) == [
        'encoding: "UTF8", now "LATIN1"',
        "sources.0.fingerprint.size: 10, now 20",
    ]
    assert list(ledger.differences(before, before | {"sources": []})) == ["sources: 1 files, now 0"]


@pytest.mark.parametrize(
    "options",
    [
        {"connections": 0},
        {"connections": 300},
        {"connections_max": 257},
        {"chunk_bytes": 1 << 63},
        {"rate_bytes_per_s": 1 << 63},
        {"max_rejects": 1 << 63},
        {"connections": 4, "connections_max": 2},
        {"chunk_bytes": 10},
        {"columns": ("a",), "rename": {"b": "c"}},
        {"ledger": False, "again": True},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError) as error:
        asked(**options)
    assert error.value.remedy


def test_a_standard_input_that_is_closed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        source.find(["-"])
