"""``pgdyno load`` of objects: from moto's S3, and from a store that breaks, changes and lies."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pgdyno
from pgdyno.base.errors import EXIT_OK, EXIT_USAGE, InputError, PgdynoError
from pgdyno.cli.main import run
from pgdyno.loader import preflight, source
from pgdyno.loader.asked import LoadOptions
from pgdyno.loader.remote import ranges

from .others import moto
from .stores import Held, Store, store
from .test_files import parquet_file
from .test_load import EXPECTED, ROWS, SMALL, people, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .database import Database

SECRET = "verysecretkeyverysecretkeyverysecretkey"
"""What must stand nowhere."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files have many ranges, too; nobody waits; and there are no credentials but those given here."""
    monkeypatch.setattr(source, "HEAD_BYTES", 3000)
    monkeypatch.setattr(ranges, "RANGE_BYTES", 9000)
    monkeypatch.setattr(ranges.Patience, "pause_s", lambda *_: 0.001)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    given = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "eu-west-1"}
    nowhere = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    for name, value in (given | nowhere | {"AWS_EC2_METADATA_DISABLED": "true"}).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def server() -> Iterator[Store]:
    with store() as started:
        yield started


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    """Where moto's S3 answers."""
    with moto() as place:
        yield place


def bucket(moto_url: str, name: str, **objects: bytes | Path) -> Any:
    """A bucket with objects, and the client that made it. In a name ``__`` is a slash."""
    import boto3

    client = boto3.client("s3", endpoint_url=moto_url, region_name="us-east-1")
    client.create_bucket(Bucket=name)
    for key, content in objects.items():
        body = content.read_bytes() if isinstance(content, Path) else content
        client.put_object(Bucket=name, Key=f"{key.replace('__', '/')}.csv", Body=body, ChecksumAlgorithm="SHA256")
    return client


def load(address: str | list[str], database: Database, **options: Any) -> Any:
    return pgdyno.load(address, database.dsn, **({"chunk_bytes": SMALL, "table": "people", "create": True} | options))


def digest_of(content: bytes) -> dict[str, str]:
    """As a server says it."""
    return {"Repr-Digest": f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"}


def written_down(database: Database) -> str:
    """All that the ledger has."""
    return str(database.rows("SELECT target, plan::text FROM pgdyno_load.job"))


def test_objects_of_s3_are_loaded_once_by_pattern_and_nothing_secret_is_kept(
    database: Database, tmp_path: Path, moto_url: str
) -> None:
    files = {f"in__part-{n}": people(tmp_path, f"p{n}.csv.gz", 1000, 1 + 1000 * n) for n in range(3)}
    client = bucket(moto_url, "once", **files, in__other=b"x\n", in__deep__part=b"y\n")
    events: list[dict[str, Any]] = []
    result = load("s3://once/in/part-*.csv", database, s3_endpoint=moto_url, tell=events.append)
    assert (result.rows_loaded, result.rows_rejected) == (ROWS, 0)
    assert whole(database) == EXPECTED
    plan = next(event for event in events if event["event"] == "plan")
    assert plan["sources"] == [f"s3://once/in/part-{n}.csv" for n in range(3)]
    assert load("s3://once/in/part-*.csv", database, s3_endpoint=moto_url).already
    text = written_down(database) + json.dumps(events)
    assert client.head_object(Bucket="once", Key="in/part-1.csv")["ETag"].strip('"') in text
    assert SECRET not in text
    assert "anyone" not in text


def test_an_object_that_is_another_now_is_refused(database: Database, tmp_path: Path, moto_url: str) -> None:
    client = bucket(moto_url, "changing", people=people(tmp_path))
    address = "s3://changing/people.csv"
    database.run("CREATE TABLE people (id int CHECK (id <> 2500), name text, points int)")
    with pytest.raises(PgdynoError, match=r"s3://changing/people.csv line \d+"):
        load(address, database, s3_endpoint=moto_url)
    client.put_object(Bucket="changing", Key="people.csv", Body=people(tmp_path, rows=10).read_bytes())
    with pytest.raises(InputError, match=r"a different plan: sources\.0\.fingerprint"):
        load(address, database, s3_endpoint=moto_url)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("s3://absent/people.csv", "absent/people.csv does not exist|no such bucket"),
        ("s3://words/absent.csv", "s3://words/absent.csv does not exist"),
        ("s3://words/absent-*.csv", "no object matches"),
        ("s3://words/empty.csv", "is empty"),
    ],
)
def test_an_object_that_is_not_there_is_one_sentence(
    database: Database, moto_url: str, address: str, said: str
) -> None:
    if "absent/" not in address:
        bucket(moto_url, "words", empty=b"")
    with pytest.raises(InputError, match=said) as error:
        load(address, database, s3_endpoint=moto_url)
    assert error.value.remedy


def test_empty_objects_among_others_are_left_out_and_said(database: Database, moto_url: str, server: Store) -> None:
    database.run("CREATE TABLE t (id int)")
    bucket(moto_url, "some", a=b"", b=b"1\n")
    events: list[dict[str, Any]] = []
    load("s3://some/*.csv", database, table="t", header=False, s3_endpoint=moto_url, tell=events.append)
    assert any(event.get("text") == "s3://some/a.csv: empty, and omitted" for event in events)
    server.held |= {"/none.csv": Held(b""), "/some.csv": Held(b"2\n")}
    addresses = [f"{server.url}/none.csv", f"{server.url}/some.csv"]
    assert pgdyno.load(addresses, database.dsn, table="t", header=False).rows_loaded == 1
    with pytest.raises(InputError, match="is empty"):
        load(f"{server.url}/none.csv", database, table="t")


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz"])
def test_a_file_behind_an_address_comes_whole_through_whatever_breaks(
    database: Database, tmp_path: Path, server: Store, name: str
) -> None:
    content = people(tmp_path, name).read_bytes()
    faults = ["drop", "500", "short", "whole", "drop", "503"]
    server.held[f"/d/{name}"] = Held(content, faults=faults, headers=digest_of(content))
    result = load(f"{server.url}/d/{name}?X-Amz-Signature={SECRET}", database, table=None, connections=2)
    assert result.table == "public.people"
    assert (result.rows_loaded, whole(database)) == (ROWS, EXPECTED)
    assert not faults, "all of it happened"
    assert SECRET not in written_down(database)


THERE = "CREATE TABLE people (id bigint, name text, points bigint)"
"""For a load that shall begin at once: types of a table that is to be made want all of the object first."""
MANY = 60_000
"""Rows of a file that is longer than what lies in sockets on the way."""
BEGINNING = 600_000
"""Bytes of it that are known before the load."""


@pytest.fixture
def broken_off(
    database: Database, tmp_path: Path, server: Store, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> tuple[str, int]:
    """A load whose store lets nobody read from some place on: its address, and how far it came. The store then lets read."""
    monkeypatch.setattr(source, "HEAD_BYTES", BEGINNING)
    monkeypatch.setattr(ranges, "RANGE_BYTES", 50_000)
    content = people(tmp_path, rows=MANY).read_bytes()
    held = Held(content, headers=digest_of(content) if request.param else {}, faults=[""] * 20 + ["403"] * 4)
    server.held["/people.csv"] = held
    address = f"{server.url}/people.csv"
    database.run(THERE)
    with pytest.raises(PgdynoError, match="does not let you read it"):
        load(address, database, connections=1, chunk_bytes=8 * SMALL)
    held.faults.clear()
    server.seen.clear()
    return address, database.one("SELECT max(end_byte) FROM pgdyno_load.chunk")


@pytest.mark.parametrize("broken_off", [False, True], ids=["", "checksum"], indirect=True)
def test_a_load_goes_on_at_the_byte_where_its_store_left_it(
    database: Database, server: Store, broken_off: tuple[str, int]
) -> None:
    address, end = broken_off
    assert BEGINNING < end < len(server.held["/people.csv"].content)
    assert load(address, database, chunk_bytes=8 * SMALL).rows_loaded == MANY
    assert whole(database)[:2] == (MANY, MANY * (MANY + 1) // 2)
    probe, *rest = server.gets("/people.csv")
    assert probe == 0
    # What an interrupted run has loaded is held to the checksum as well, and so comes again, but not into the table.
    checked = bool(server.held["/people.csv"].headers)
    assert min(place or 0 for place in rest) == (BEGINNING if checked else end)


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz"])
def test_a_wrong_checksum_is_refused_and_never_gone_on_with(
    database: Database, tmp_path: Path, server: Store, name: str
) -> None:
    content = people(tmp_path, name).read_bytes()
    server.held[f"/{name}"] = Held(content, headers=digest_of(b"something else"))
    address = f"{server.url}/{name}"
    with pytest.raises(PgdynoError, match="came with other content than was stored: its SHA256 is"):
        load(address, database)
    assert database.one("SELECT to_regclass('people')") is None, "it was read for the types before the table was made"
    database.run(THERE)
    with pytest.raises(PgdynoError, match="came with other content than was stored: its SHA256 is") as error:
        load(address, database)
    assert "--abandon and --truncate" in error.value.remedy
    assert "same command" not in error.value.remedy
    assert whole(database)[0] < ROWS, "the last chunk is not in the table"
    # Also when it would be right now: nobody knows which rows are in the table.
    server.held[f"/{name}"] = Held(content, headers=digest_of(content))
    with pytest.raises(InputError) as refused:
        load(address, database)
    assert refused.value.code == "load.job.unfit"
    assert load(address, database, abandon=True, truncate=True).rows_loaded == ROWS
    assert whole(database) == EXPECTED


def test_parquet_is_read_where_it_lies(database: Database, tmp_path: Path, server: Store) -> None:
    server.held["/t.parquet"] = Held(parquet_file(tmp_path / "t.parquet", rows=3000).read_bytes(), faults=["drop"])
    result = load(f"{server.url}/t.parquet", database, table="t")
    assert result.rows_loaded == 3000
    assert database.one("SELECT sum(id) FROM t") == 2999 * 3000 // 2


def test_before_a_load_an_object_is_looked_at_as_a_file_is(database: Database, tmp_path: Path, server: Store) -> None:
    server.held["/people.csv.gz"] = Held(gzip.compress(people(tmp_path).read_bytes()))
    options = LoadOptions((f"{server.url}/people.csv.gz",), database.dsn, create=True)
    result = preflight(options)
    assert result.bytes_total is not None
    assert result.bytes_total > len(server.held["/people.csv.gz"].content)
    assert result.measured is not None
    assert any("no checksum to verify" in note for note in result.notes)
    assert all(place in (0, None) for place in server.gets("/people.csv.gz")), "only its beginning was read"


def test_the_command_reads_a_store_that_it_is_told_of(
    database: Database, tmp_path: Path, moto_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket(moto_url, "told", people=people(tmp_path))
    words = ["load", "s3://told/people.csv", "--into", database.dsn, "--create", "--s3-endpoint", moto_url]
    assert run(words) == EXIT_OK
    assert "3,000 rows loaded" in capsys.readouterr().out
    assert run([*words[:-1], "no address"]) == EXIT_USAGE
    assert "--s3-endpoint" in capsys.readouterr().err


def test_a_killed_load_of_an_object_goes_on(
    database: Database, tmp_path: Path, server: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL of the command alone: the engine ends when nobody gives it bytes any more."""
    monkeypatch.setattr(source, "HEAD_BYTES", 1 << 20)  # as in the other process, since it is a part of the plan
    held = Held(people(tmp_path, rows=MANY + 10_000).read_bytes(), gate=threading.Event())
    server.held["/people.csv"] = held
    address = f"{server.url}/people.csv"
    database.run(THERE)
    words = ["load", address, "--into", database.dsn, "--create", "--chunk", "32KiB", "--json"]
    command = [sys.executable, "-m", "pgdyno", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        # Its beginning comes in, and the rest is waited for.
        assert any(json.loads(line).get("rows_loaded") for line in process.stdout)
        process.kill()
    held.gate.set()
    assert load(address, database, chunk_bytes=8 * SMALL).rows_loaded == MANY + 10_000
    assert whole(database)[0] == MANY + 10_000
    assert database.one("SELECT count(DISTINCT id) FROM people") == MANY + 10_000
