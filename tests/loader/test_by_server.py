"""``--via aws_s3``, with a stand-in of the extension: what the server imports is there once, with its line."""

from __future__ import annotations

import contextlib
import gzip
import os
import signal
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import pgdyno
from pgdyno.base.errors import EXIT_OK, EXIT_USAGE, InputError, PgdynoError
from pgdyno.cli.main import run
from pgdyno.loader import LoadOptions, by_server, preflight
from pgdyno.machine.waiting import wait_until

from .stand_in import GATE, REGION, schemas
from .test_killed import loading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .database import Database

WAIT_S = 30.0
_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno load 1' AND wait_event = 'advisory'"


@pytest.fixture
def bucket(database: Database) -> Iterator[Path]:
    """A bucket ``b`` that the server's user may read, and the functions that do."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-test-s3-") as name:
        folder = Path(name)
        (folder / "b").mkdir()
        for each in (folder, folder / "b"):
            each.chmod(0o755)
        database.run(schemas(folder))
        database.run("CREATE TABLE t (id int PRIMARY KEY, name text)")
        yield folder / "b"


def put(bucket: Path, key: str, text: str) -> str:
    """An object of the bucket; its address."""
    data = text.encode()
    (bucket / key).write_bytes(gzip.compress(data) if key.endswith(".gz") else data)
    (bucket / key).chmod(0o644)
    return f"s3://b/{key}"


def rows(first: int, count: int) -> str:
    return "".join(f"{number},name {number}\n" for number in range(first, first + count))


def load(objects: list[str], database: Database, **options: Any) -> Any:
    usual = {"via": "aws_s3", "s3_region": REGION, "table": "t", "header": False}
    return pgdyno.load(objects, database.dsn, **(usual | options))


@contextlib.contextmanager
def gate_closed(database: Database) -> Iterator[None]:
    """No gated object gets through."""
    with psycopg.connect(database.dsn) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (GATE,))
        yield
        connection.rollback()


def test_each_object_comes_once_with_its_line(database: Database, bucket: Path) -> None:
    objects = [put(bucket, f"{part}.csv{'.gz' if part == 1 else ''}", rows(100 * part, 100)) for part in range(6)]
    result = load(objects, database)
    assert (result.rows_loaded, result.rows_rejected, result.chunks) == (600, 0, 6)
    assert result.bytes == sum(path.stat().st_size for path in bucket.iterdir())
    assert database.rows("SELECT count(*), min(id), max(id), count(DISTINCT xmin::text) FROM t") == [(600, 0, 599, 6)]
    lines = database.rows(
        "SELECT c.source, c.rows_loaded, count(*) FROM pgdyno_load.chunk c JOIN t ON t.xmin::text = c.xact::text"
        " GROUP BY 1, 2 ORDER BY 1"
    )
    assert lines == [(part, 100, 100) for part in range(6)]
    assert load(objects, database).already
    with pytest.raises(InputError, match=r"s3://b/2\.csv was already loaded into public\.t"):
        load([objects[2]], database)
    assert database.left_to_undo() == 0


def test_several_objects_are_imported_at_a_time(database: Database, bucket: Path) -> None:
    objects = [put(bucket, f"gated-{part}.csv", rows(100 * part, 100)) for part in range(4)]
    results: list[Any] = []
    loader = threading.Thread(target=lambda: results.append(load(objects, database, connections=3)))
    with gate_closed(database):
        loader.start()
        assert wait_until(lambda: database.one(_WAITING) == 3, WAIT_S), "as many as were asked for"
    loader.join(WAIT_S)
    assert (results[0].rows_loaded, results[0].connections) == (400, 3)


def test_a_killed_load_goes_on_with_the_objects_that_have_no_line(database: Database, bucket: Path) -> None:
    first, second = put(bucket, "first.csv", rows(0, 100)), put(bucket, "gated.csv", rows(100, 100))
    words = (second, "--via", "aws_s3", "--s3-region", REGION, "--no-header", "--table", "t", "--connections", "2")
    with gate_closed(database), loading(database, first, *words) as process:
        # The table of lines is there before the first session is named after the job.
        assert wait_until(lambda: database.one(_WAITING) == 1, WAIT_S)
        assert wait_until(lambda: database.one("SELECT count(*) FROM pgdyno_load.chunk") == 1, WAIT_S)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before = database.rows("SELECT id, xmin::text FROM t")
    assert len(before) == 100
    # What the killed command had dropped comes back with this run too.
    result = load([first, second], database, indexes="rebuild", connections=2)
    assert result.rows_loaded == 200
    assert database.rows("SELECT count(*), count(DISTINCT id) FROM t") == [(200, 200)]
    assert set(before) <= set(database.rows("SELECT id, xmin::text FROM t"))
    assert database.left_to_undo() == 0


def test_an_object_that_the_server_refuses_is_named_and_the_others_stay(database: Database, bucket: Path) -> None:
    objects = [put(bucket, "good.csv", rows(0, 10)), put(bucket, "bad.csv", "10,a\nx,b\n")]
    with pytest.raises(PgdynoError, match=r's3://b/bad\.csv: .*"x"') as error:
        load(objects, database, connections=1)
    assert "load the rest" in error.value.remedy
    assert database.one("SELECT count(*) FROM t") == 10
    put(bucket, "bad.csv", "10,a\n11,b\n")
    assert load(objects, database).rows_loaded == 12


def test_options_of_copy_reach_it(database: Database, bucket: Path) -> None:
    load([put(bucket, "t.tsv", 'name\tid\n\\N\t1\n"a\t2\n')], database, header=True, columns=("name", "id"))
    assert database.rows("SELECT id, name FROM t ORDER BY id") == [(1, None), (2, '"a')]
    (bucket / "l.csv").write_bytes("3;'é'\n4;'\\'' \n".encode("latin-1"))
    load(["s3://b/l.csv"], database, encoding="LATIN1", delimiter=";", quote="'", escape="\\")
    assert database.rows("SELECT name FROM t WHERE id > 2 ORDER BY id") == [("é",), ("' ",)]
    text = put(bucket, "swapped.csv", "name,id\n5,5\n")
    with pytest.raises(PgdynoError, match="column name mismatch"):
        load([text], database, header=True)
    assert database.one("SELECT count(*) FROM t") == 4


def test_rows_that_the_server_reads_can_be_merged(database: Database, bucket: Path) -> None:
    database.run("INSERT INTO t VALUES (1, 'old'), (2, 'old')")
    objects = [put(bucket, "a.csv", "2,a\n3,a\n3,b\n"), put(bucket, "b.csv.gz", "3,c\n2,c\n")]
    result = load(objects, database, upsert=("id",))
    assert (result.rows_loaded, result.rows_merged, result.rows_replaced) == (5, 2, 1)
    assert database.rows("SELECT id, name FROM t ORDER BY id") == [(1, "old"), (2, "c"), (3, "c")]


REFUSED: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "rejects": ({"reject": Path("bad.csv")}, ["s3://b/a.csv"], "keeps none of those that it refuses"),
    "create": ({"create": True}, ["s3://b/a.csv"], "pgdyno does not see the rows"),
    "rate": ({"rate_bytes_per_s": 1000}, ["s3://b/a.csv"], "as fast as it can"),
    "chunk": ({"chunk_bytes": 1 << 20}, ["s3://b/a.csv"], "--chunk --via aws_s3: each object is one COPY"),
    "endpoint": ({"s3_endpoint": "http://127.0.0.1:9000"}, ["s3://b/a.csv"], "from AWS alone"),
    "anonymous": ({"s3_anonymous": True}, ["s3://b/a.csv"], "rights of its own role"),
    "rename": ({"rename": {"a": "id"}}, ["s3://b/a.csv"], "pgdyno does not see the header"),
    "header": ({"header": None}, ["s3://b/a.csv"], "whether the objects have a header"),
    "a file": ({}, ["a.csv"], "a.csv is not an object of S3"),
    "standard input": ({}, ["-"], "is not an object of S3"),
    "a pattern": ({}, ["s3://b/*.csv"], "cannot list objects"),
    "a folder": ({}, ["s3://b/parts/"], "cannot list objects"),
    "zstd": ({}, ["s3://b/a.csv.zst"], "Content-Encoding"),
    "parquet": ({}, ["s3://b/a.parquet"], "reads text"),
    "twice": ({}, ["s3://b/a.csv", "s3://b/a.csv"], "named twice"),
    "no table": ({"table": "absent"}, ["s3://b/a.csv"], "there is no table absent"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_needs_somebody_to_read_the_rows_is_refused(
    database: Database, bucket: Path, case: tuple[dict[str, Any], list[str], str]
) -> None:
    options, objects, text = case
    put(bucket, "a.csv", rows(0, 10))
    with pytest.raises(InputError, match=text) as error:
        load(objects, database, **options)
    assert error.value.remedy
    assert database.one("SELECT count(*) FROM t") == 0


def test_a_server_without_the_extension_is_told_what_to_install(database: Database) -> None:
    database.run("CREATE TABLE t (id int)")
    with pytest.raises(InputError, match="does not have that extension") as error:
        load(["s3://b/a.csv"], database)
    assert "CREATE EXTENSION aws_s3" in error.value.remedy


def test_the_region_comes_from_where_aws_has_it(
    database: Database, bucket: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in by_server.REGIONS:
        monkeypatch.delenv(name, raising=False)
    words = ["load", put(bucket, "t.csv", rows(0, 3)), "--into", database.dsn, "--via", "aws_s3", "--no-header"]
    assert run(words) == EXIT_USAGE
    assert "--s3-region" in capsys.readouterr().err
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    assert run(words) == EXIT_OK
    assert "3 rows loaded" in capsys.readouterr().out
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    with pytest.raises(PgdynoError, match="another region"):
        load([put(bucket, "u.csv", rows(9, 3))], database, s3_region=None)
    with pytest.raises(InputError, match="which pgdyno does not see"):
        preflight(LoadOptions(("s3://b/t.csv",), database.dsn, via="aws_s3"))


def test_no_object_comes_into_a_table_that_takes_the_name_of_the_target(database: Database, bucket: Path) -> None:
    objects = [put(bucket, f"gated-{part}.csv", rows(100 * part, 100)) for part in range(4)]
    failed: list[PgdynoError] = []

    def work() -> None:
        try:
            load(objects, database, connections=2)
        except PgdynoError as error:
            failed.append(error)

    loader = threading.Thread(target=work)
    with gate_closed(database):
        loader.start()
        assert wait_until(lambda: database.one(_WAITING) == 2, WAIT_S), "both wait before their COPY"
        database.run("ALTER TABLE t RENAME TO other")
        database.run("CREATE TABLE t (LIKE other)")
    loader.join(WAIT_S)
    assert [error.message.rpartition(": ")[2] for error in failed] == ["another table has its name now"]
    assert database.one("SELECT count(*) FROM t") == 0


def test_a_load_that_is_ended_cancels_what_is_under_way(database: Database, bucket: Path) -> None:
    """A bad object beside one that never comes to its end: the error is told, and nobody waits for the other."""
    objects = [put(bucket, "gated.csv", rows(0, 10)), put(bucket, "bad.csv", "x,y\n")]
    with gate_closed(database):
        with pytest.raises(PgdynoError, match=r"bad\.csv"):
            load(objects, database, connections=2)
        assert wait_until(lambda: database.one(_WAITING) == 0, WAIT_S)
    assert database.one("SELECT count(*) FROM t") == 0


@pytest.mark.parametrize(
    ("answer", "counted"),
    [
        ('87701673 rows imported into relation "t" from file a of 6539180310 bytes', (87701673, 6539180310)),
        ('1 rows imported into relation "s.t" from file a of 3 bytes of 17 bytes', (1, 17)),
        ('5 rows imported into relation "t" from a.csv', (5, 0)),
        ("12", (12, 0)),
    ],
)
def test_the_answer_says_rows_and_bytes(answer: str, counted: tuple[int, int]) -> None:
    assert by_server._counted(answer) == counted


def test_an_answer_without_a_number_is_an_error() -> None:
    with pytest.raises(PgdynoError, match="no row count"):
        by_server._counted("imported")
