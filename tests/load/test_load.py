"""Loading through the engine: what is in the table, what is said, what is refused."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from .loaded import TIMEOUT_S, Target, ended, load, loading, order, refused

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 20_000
TABLE = "CREATE TABLE t (id bigint, name text, number int)"


def written(path: Path, rows: int = ROWS, *, first: int = 0, end: str = "\n") -> Path:
    """A CSV file with line ends in every third row's name."""
    names = ("a b", f'"x{end}y"', '"say ""no"""')
    path.write_bytes("".join(f"{n},{names[n % 3]},{n * 7}{end}" for n in range(first, first + rows)).encode())
    return path


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_row_is_in_the_table_and_in_the_ledger_once(each_target: Target, tmp_path: Path, end: str) -> None:
    each_target.run(TABLE)
    paths = [written(tmp_path / "a.csv", end=end), written(tmp_path / "b.csv", 10, first=ROWS, end=end)]
    result = order(*paths, ledger=each_target.ledger(), chunk_bytes=65_536, connections=4)
    done = load(each_target.dsn, result)
    assert each_target.rows("SELECT count(*), count(DISTINCT id), sum(number) FROM t") == [
        (ROWS + 10, ROWS + 10, 7 * sum(range(ROWS + 10)))
    ]
    assert (
        each_target.one(f"SELECT count(*) FROM t WHERE name = E'x{end.encode('unicode_escape').decode()}y'") > ROWS // 4
    )
    assert done.rows == (ROWS + 10, 0)
    assert done.end["bytes"] == done.progress[-1]["bytes"] == sum(path.stat().st_size for path in paths)
    chunks = each_target.rows("SELECT source, chunk, first_byte, end_byte FROM pgdyno_load.chunk ORDER BY 1, 2")
    assert len(chunks) == done.end["chunks"] > 5
    for before, after in itertools.pairwise(chunks):
        assert after[2] == (before[3] if before[0] == after[0] else 0), "no gap"
    assert done.begin["server_version"].startswith(each_target.one("SHOW server_version").split()[0])
    again = load(each_target.dsn, result)
    assert again.begin["chunks_done"] == len(chunks)
    assert each_target.one("SELECT count(*) FROM t") == ROWS + 10


def test_columns_table_and_settings_are_the_orders(target: Target, tmp_path: Path) -> None:
    target.run(
        'CREATE SCHEMA "My s"',
        'CREATE TABLE "My s"."T 1" (who text DEFAULT current_setting(\'application_name\'), "the id" bigint, n int,'
        " mode text DEFAULT current_setting('synchronous_commit'))",
    )
    path = tmp_path / "h.csv"
    path.write_text("n,the id\n1,10\n2,20\n")
    result = order(path, table='"My s"."T 1"', columns=["n", '"the id"'], header=True)
    done = load(target.dsn, result | {"settings": {"synchronous_commit": "local"}})
    assert done.rows == (2, 0)
    assert target.rows('SELECT n, "the id", mode, who FROM "My s"."T 1" ORDER BY n') == [
        (1, 10, "local", "pgdyno load"),
        (2, 20, "local", "pgdyno load"),
    ]


def test_a_row_that_is_refused_ends_the_load_with_its_place(each_target: Target, tmp_path: Path) -> None:
    each_target.run(TABLE)
    path = written(tmp_path / "bad.csv", 3000)
    content = path.read_bytes().replace(b"2000,", b"2x00,", 1)
    path.write_bytes(content)
    ledger = each_target.ledger()
    error = refused(each_target.dsn, order(path, ledger=ledger, chunk_bytes=10_000, connections=2))
    place = content.index(b"2x00")
    line = content[:place].count(b"\n") + 1
    assert f"bad.csv line {line} (byte {place}), column id: " in error["message"]
    assert "22P02" in error["message"]
    assert each_target.one("SELECT count(*) FROM t") == each_target.one(
        "SELECT sum(rows_loaded) FROM pgdyno_load.chunk"
    )
    # After the mistake is mended the rest is loaded, and the first chunks are not loaded twice.
    path.write_bytes(content.replace(b"2x00,", b"2000,", 1))
    done = load(each_target.dsn, order(path, ledger=ledger, chunk_bytes=10_000, connections=2))
    assert done.begin["chunks_done"] > 0
    assert done.rows == (3000, 0)
    assert each_target.one("SELECT count(DISTINCT id) FROM t") == each_target.one("SELECT count(*) FROM t") == 3000


def test_a_place_is_right_where_the_load_went_on_behind_others(target: Target, tmp_path: Path) -> None:
    target.run(TABLE)
    path = written(tmp_path / "late.csv", 3000)
    content = path.read_bytes()
    ledger = target.ledger()
    result = order(path, ledger=ledger, chunk_bytes=10_000)
    path.write_bytes(content[: content.rindex(b"2990,")] + b"oops,,\n")
    messages = [refused(target.dsn, result)["message"] for _ in range(2)]
    line = content[: content.rindex(b"2990,")].count(b"\n") + 1
    assert messages[0] == messages[1]
    assert f"line {line} (byte {content.rindex(b'2990,')})" in messages[0]


def test_what_cannot_be_loaded_is_one_clear_sentence(target: Target, tmp_path: Path) -> None:
    target.run(TABLE, "CREATE ROLE nobody LOGIN", "CREATE TABLE other (a text)")
    path, tabs, empty = written(tmp_path / "a.csv", 10), tmp_path / "tabs.csv", tmp_path / "empty.csv"
    tabs.write_text("1\tx\t2\n3\ty\t4\n")
    empty.write_bytes(b"")
    latin = tmp_path / "latin.csv"
    latin.write_bytes("1,café,2\n".encode("latin-1"))
    as_nobody = {"user": "nobody"}
    for item, element, remedy in (
        (order(tmp_path / "absent.csv"), "cannot read absent.csv", "can be read"),
        (order(tmp_path), "is a directory", "files in it"),
        (order(path, table="absent"), '"absent" does not exist', "create the table"),
        (order(path, server=as_nobody), "permission denied", "grant INSERT"),
        (order(path, columns=["id", "nome"]), '"nome"', "columns as the table has them"),
        (order(tabs), "tabs.csv line 1 (byte 0)", "no comma and 2 of tab"),
        (order(latin), "latin.csv line 1 (byte 0)", "name the file's encoding"),
        (order(path, encoding="SJIS"), "SJIS cannot be split", "iconv"),
        (order(path, encoding="klingon"), "encoding", ""),
        (order(path, settings={"work_mem": "many"}), "work_mem", ""),
        (order(path, freeze=True), "freeze", "VACUUM"),
        (order(path, server={"host": str(tmp_path)}), "no connection", "check that the server runs"),
        (order(path, ledger={"table": "absent", "job": 1}), '"absent" does not exist', "create the table"),
    ):
        error = refused(target.dsn, item)
        assert element in error["message"], error
        assert remedy in error["remedy"], error
    assert target.one("SELECT count(*) FROM t") == 0
    assert load(target.dsn, order(empty, ledger=target.ledger())).rows == (0, 0)


def test_rows_that_a_trigger_keeps_out_are_not_passed_over(target: Target, tmp_path: Path) -> None:
    target.run(
        TABLE,
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.id = 7 THEN RETURN NULL; END IF; RETURN NEW; END'",
        "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
    )
    error = refused(target.dsn, order(written(tmp_path / "a.csv", 10)))
    assert "took 9 rows of 10" in error["message"]
    assert target.one("SELECT count(*) FROM t") == 0


def test_another_plan_is_refused(target: Target, tmp_path: Path) -> None:
    target.run(TABLE)
    path = written(tmp_path / "a.csv", 2000)
    result = order(path, ledger=target.ledger(), chunk_bytes=4096)
    load(target.dsn, result)
    assert "the plan changed" in refused(target.dsn, result | {"header": True})["message"]
    target.run("DELETE FROM pgdyno_load.chunk WHERE chunk = 2")
    assert "the plan changed" in refused(target.dsn, result | {"chunk_bytes": 5000})["message"]
    path.write_bytes(path.read_bytes()[:20_000])
    assert "the plan changed" in refused(target.dsn, result)["message"]


def test_a_job_has_one_loader(target: Target, tmp_path: Path) -> None:
    target.run(TABLE)
    result = order(written(tmp_path / "a.csv", 10), ledger=target.ledger())
    with psycopg.connect(target.dsn) as other:
        other.execute("SELECT pg_advisory_lock(hashtextextended('pgdyno load 1', 0))")
        assert "another loader is working on job 1" in refused(target.dsn, result)["message"]
    assert load(target.dsn, result).rows == (10, 0)


def test_a_loader_that_is_told_to_stop_leaves_whole_chunks(target: Target, tmp_path: Path) -> None:
    target.run(TABLE)
    path = written(tmp_path / "a.csv")
    result = order(path, ledger=target.ledger(), chunk_bytes=20_000, rate_bytes_per_s=100_000, interval_ms=20)
    with loading(target.dsn, result | {"connections": 2}) as process:
        wait_for_chunks(process, 1)
        process.terminate()
        error = ended(process)
    assert isinstance(error, dict)
    assert error["message"] == "interrupted"
    loaded, chunks = target.rows("SELECT sum(rows_loaded)::bigint, count(*) FROM pgdyno_load.chunk")[0]
    assert 0 < loaded < ROWS
    assert target.one("SELECT count(*) FROM t") == loaded
    done = load(target.dsn, {key: value for key, value in result.items() if key != "rate_bytes_per_s"})
    assert (done.begin["chunks_done"], done.rows) == (chunks, (ROWS, 0))


def test_a_loader_that_nobody_listens_to_ends(target: Target, tmp_path: Path) -> None:
    target.run(TABLE)
    result = order(written(tmp_path / "a.csv"), chunk_bytes=20_000, rate_bytes_per_s=50_000, interval_ms=20)
    with loading(target.dsn, result) as process:
        wait_for_chunks(process, 1)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(TIMEOUT_S) == 2


def test_a_rate_is_kept(target: Target, tmp_path: Path) -> None:
    target.run(TABLE)
    path = written(tmp_path / "a.csv", 10_000)
    bytes_per_s = path.stat().st_size
    done = load(target.dsn, order(path, connections=4, chunk_bytes=8192, rate_bytes_per_s=bytes_per_s))
    # A message of each of four sessions may be ahead, and a tenth of a second is caught up on.
    assert done.end["elapsed_ms"] > 1000 * (1 - 4 * 8192 / bytes_per_s) - 150
    assert sum(line["waits"]["rate_ms"] for line in done.progress) > 500


def test_sessions_are_added_as_long_as_they_help(target: Target, tmp_path: Path) -> None:
    # Whether they help depends on the machine; how many there are at most does not.
    target.run(TABLE)
    done = load(target.dsn, order(written(tmp_path / "a.csv", 200_000), connections_max=3, chunk_bytes=65_536))
    assert {line["connections"] for line in done.progress[:-1]} <= {1, 2, 3}
    assert done.rows == (200_000, 0)


def test_memory_stays_bounded_however_long_a_row_is(target: Target, tmp_path: Path) -> None:
    target.run("CREATE TABLE long (a text)")
    path = tmp_path / "long.csv"
    path.write_bytes(b'"' + b"x\n" * (40 << 20) + b'"\nshort\n')
    packed = tmp_path / "long.csv.gz"
    with packed.open("wb") as file:
        subprocess.run(["gzip", "-1c", path], stdout=file, check=True)
    for source in (path, packed):
        done = load(target.dsn, order(source, table="long", chunk_bytes=1 << 20, connections=4))
        assert done.rows == (2, 0)
        assert done.end["rss_bytes_max"] < 64 << 20, "less than the row"
    assert target.rows("SELECT length(a), count(*) FROM long GROUP BY 1 ORDER BY 1") == [(5, 2), (80 << 20, 2)]
    path.unlink()


def test_a_row_that_no_server_takes_is_refused_while_it_is_read(target: Target, tmp_path: Path) -> None:
    """A quote that is never closed makes one row of all that follows, which would be kept on this machine's disk."""
    target.run("CREATE TABLE long (a text)")
    path = tmp_path / "open.csv"
    path.write_bytes(b'first\n"')
    os.truncate(path, 3 << 30)  # it has no blocks, and is not read beyond the first GiB
    error: Any = refused(target.dsn, order(path, table="long", ledger=target.ledger()))
    assert error["code"] == "load.row.too_long"
    assert error["data"] == {"source": "open.csv", "byte": 6, "bytes_max": (1 << 30) - 1}
    assert target.one("SELECT count(*) FROM long") == 0


def wait_for_chunks(process: subprocess.Popen[bytes], chunks: int) -> dict[str, Any]:
    """Read until so many are committed."""
    assert process.stdout is not None
    for line in process.stdout:
        for_chunks: dict[str, Any] = json.loads(line)
        if for_chunks["event"] == "progress" and for_chunks["chunks"] >= chunks:
            return for_chunks
    raise AssertionError(f"it ended before {chunks} chunks were loaded")
