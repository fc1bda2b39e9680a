"""Several files into one table: what was there keeps its indexes, and rejected rows fit into one file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import pgdyno
from pgdyno.base.errors import InputError
from pgdyno.base.text import cpus_of
from pgdyno.loader import index_cost, server
from pgdyno.loader.asked import CHUNK_BYTES, LoadOptions
from pgdyno.loader.format import CSV, Format
from pgdyno.loader.sample import line_end, take
from pgdyno.loader.source import RowSource
from pgdyno.loader.transfer import TransferResult, _end, connections

if TYPE_CHECKING:
    from .database import Database

ROWS = 20_000
TABLE = """
CREATE TABLE t (id bigint PRIMARY KEY, number int, word text);
CREATE INDEX t_number ON t (number); CREATE INDEX t_word ON t (word)
"""
INDEXES = (
    "SELECT indexrelid::regclass::text, indexrelid::bigint, pg_relation_filenode(indexrelid)::bigint FROM pg_index"
)


def written(path: Path, begin: int, rows: int) -> Path:
    """Rows whose key ascends, and whose number and word do not."""
    path.write_text("".join(f"{n},{n * 7919 % 10_007},{n * 48_271 % 65_537:x}\n" for n in range(begin, begin + rows)))
    return path


def indexes(database: Database) -> dict[str, tuple[Any, ...]]:
    """What each index of the table is, so that one that was made anew is another."""
    return {row[0]: row[1:] for row in database.rows(f"{INDEXES} WHERE indrelid = 't'::regclass")}


def test_a_load_into_an_empty_table_builds_indexes_again_and_five_per_cent_more_keep_them(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few rows gain no second. By their shares alone it is decided as for many.
    monkeypatch.setattr(index_cost, "GAIN_S_MIN", 0.0)
    database.run(TABLE)
    made = indexes(database)
    first = pgdyno.load(written(tmp_path / "t.csv", 0, ROWS), database.dsn, header=False, connections=1)
    assert first.indexes.startswith("rebuilt: "), first.indexes
    before = indexes(database)
    assert before.keys() == made.keys()
    assert all(before[name] != made[name] for name in made), "they were made anew"
    more = written(tmp_path / "more.csv", ROWS, ROWS // 20)
    second = pgdyno.load(more, database.dsn, table="t", header=False, connections=1)
    assert second.indexes.startswith("kept: "), second.indexes
    assert indexes(database) == before, "nobody has touched them"
    assert database.rows("SELECT count(*), count(DISTINCT id) FROM t") == [(ROWS * 21 // 20,) * 2]
    assert database.left_to_undo() == 0


@pytest.mark.parametrize(
    ("data", "formatted", "end"),
    [
        (b"a,b\nc,d\n", CSV, b"\n"),
        (b"a,b\r\nc,d\r\n", CSV, b"\r\n"),
        (b"a,b\rc,d\r", CSV, b"\r"),
        (b'a,"b\nc"\r\n', CSV, b"\r\n"),
        (b"a\\\nb\r\nc\r\n", Format("text", "\t", "\\N"), b"\r\n"),
        (b"a,b", CSV, None),
        (b'"a\n', CSV, None),
    ],
)
def test_lines_end_as_the_first_row_does(data: bytes, formatted: Format, end: bytes | None) -> None:
    source = RowSource("a.csv", data, len(data), 0, "x")
    assert line_end(take(source, formatted, "UTF8"), formatted) == end


def test_files_whose_lines_end_in_different_ways_have_no_reject_file_together(
    database: Database, tmp_path: Path
) -> None:
    database.run("CREATE TABLE t (id int, name text)")
    files = [tmp_path / name for name in ("one.csv", "two.csv", "three.csv")]
    for file, end in zip(files, ("\n", "\n", "\r\n"), strict=True):
        file.write_bytes(f"1,a{end}2,b{end}".encode())
    with pytest.raises(InputError, match=r"three.csv end in CR LF, and those of .*one.csv in LF") as error:
        pgdyno.load(files, database.dsn, table="t", reject=tmp_path / "bad.csv")
    assert "separately" in error.value.remedy
    assert database.one("SELECT count(*) FROM t") == 0, "nothing was loaded"
    assert pgdyno.load(files, database.dsn, table="t").rows_loaded == 6, "without a reject file they are one load"


@pytest.mark.parametrize(("cores", "expected"), [(1, (2, 4)), (2, (2, 4)), (3, (2, 4)), (8, (7, 14))])
def test_a_load_begins_with_two_sessions_at_least(
    cores: int, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert connections(LoadOptions(("a.csv",), "dbname=a")) == expected
    assert connections(LoadOptions(("a.csv",), "dbname=a", connections=1)) == (1, 1)


def test_a_load_begins_with_no_more_sessions_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the machine's processors there may be more than the engine takes, or than were asked for at most."""
    monkeypatch.setattr("os.cpu_count", lambda: 192)
    assert connections(LoadOptions(("a.csv",), "dbname=a")) == (191, 256)
    assert connections(LoadOptions(("a.csv",), "dbname=a", connections_max=4)) == (4, 4)
    assert connections(LoadOptions(("a.csv",), "dbname=a", connections=3, connections_max=8)) == (3, 8)
    monkeypatch.setattr("os.cpu_count", lambda: 448)
    assert connections(LoadOptions(("a.csv",), "dbname=a")) == (256, 256)


def test_it_is_the_servers_processors_that_count(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 192)
    assert connections(LoadOptions(("a.csv",), "dbname=a", server_processors=8)) == (7, 14)
    there = len(cpus_of(Path("/sys/devices/system/cpu/online").read_text(encoding="ascii").strip()))
    with server.connect(database.dsn) as connection:
        assert server.processors(connection) == 192, "through a socket it is this machine"
        elsewhere: Any = SimpleNamespace(info=SimpleNamespace(host="db.example"), execute=connection.execute)
        assert server.processors(elsewhere) == there, "a superuser may read the server's files"
        connection.execute("SET ROLE pg_monitor")
        assert server.processors(elsewhere) == server.VCPUS_USUAL


def test_the_sessions_that_are_told_are_those_at_the_end() -> None:
    done = TransferResult(connections=3)
    counted = {"rows_loaded": 9, "rows_rejected": 0, "bytes": 99, "chunks": 1, "elapsed_ms": 10.5}
    _end(done, {"event": "end", "connections": 2, **counted})
    assert done.connections == 2, "a third one was tried, brought nothing, and was ended"


def test_chunks_are_longer_or_shorter_only_where_nobody_says_how_long() -> None:
    free, options = LoadOptions(("a.csv",), "dbname=a"), LoadOptions(("a.csv",), "dbname=a", chunk_bytes=3 << 20)
    assert free.chunks.last < CHUNK_BYTES == free.chunks.usual < free.chunks.most
    assert set(options.chunks.document().values()) == {3 << 20}


def test_no_timeout_of_the_database_ends_what_takes_long(database: Database, tmp_path: Path) -> None:
    """A chunk takes as long as a rate says, and the same command would meet the same timeout in the same chunk."""
    database.run("CREATE TABLE t (id bigint, number int, word text)")
    name = database.one("SELECT quote_ident(current_database())")
    for setting in ("statement_timeout = '3s'", "transaction_timeout = '1h'"):
        database.run(f"ALTER DATABASE {name} SET {setting}")
    file = written(tmp_path / "t.csv", 1, ROWS)
    slowly = file.stat().st_size // 6
    assert pgdyno.load(file, database.dsn, rate_bytes_per_s=slowly).rows_loaded == ROWS
    with server.connect(database.dsn) as connection:
        for setting in ("statement_timeout", "transaction_timeout"):
            assert server.one(connection, f"SHOW {setting}") == ("0",)


def test_the_loaders_own_session_gives_up_on_a_server_that_vanishes(database: Database) -> None:
    for more, expected in (("", "60"), (" keepalives_idle=7", "7")):
        with server.connect(database.dsn + more) as connection:
            parameters = connection.info.get_parameters()
            assert (parameters["keepalives_idle"], parameters["tcp_user_timeout"]) == (expected, "300000")
