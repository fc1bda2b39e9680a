"""Databases that are kept: restored once, found again, cloned, removed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from pgdyno.base.errors import HostError, InputError, PgdynoError
from pgdyno.cli.main import cli
from pgdyno.experiment import Experiment, read_experiment
from pgdyno.machine import clean
from pgdyno.machine.waiting import wait_until
from pgdyno.results.kept_database import KeptDatabase, databases_dir, find_kept, kept_databases
from pgdyno.world.dataset import dataset_keys, loaded, unlimited
from pgdyno.world.kept import rehearse, remove
from pgdyno.world.resolved import emulated_arms

from ..support.disk import small_disk
from .shop import Shop

pytestmark = pytest.mark.needs_fuse
PATIENCE_S = 90.0


def added(shop: Shop, *options: str) -> KeptDatabase:
    """The shop, kept by the command."""
    command = [
        "data",
        "add",
        str(shop.dump("custom")),
        "--globals",
        str(shop.globals),
        "--name",
        "shop",
        "--user",
        "app",
    ]
    done = CliRunner().invoke(cli, [*command, "--size", "2GiB", *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    database = find_kept("shop")
    assert database is not None
    return database


def experiment(
    tmp_path: Path, source: str, text: str = "SELECT count(*) FROM orders WHERE id = :client_id;", **keys: str
) -> Experiment:
    """An experiment with one script on a source."""
    (tmp_path / "a.sql").write_text(text)
    more = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    file = tmp_path / "experiment.toml"
    file.write_text(
        'schema_version = 1\n[world]\nvolume = "gp3"\n[workload]\nkind = "script"\nfiles = ["a.sql"]\n'
        f'[workload.database]\nfrom = "{source}"\nuser = "app"\n{more}'
    )
    return read_experiment(file)


def test_a_kept_database_is_found_by_its_source_starts_at_once_and_is_removed(
    databases: Path, image_dir: Path, shop: Shop, tmp_path: Path
) -> None:
    kept = added(shop)
    assert (databases.stat().st_mode & 0o777, kept.folder.stat().st_mode & 0o777) == (0o700, 0o700)
    assert kept.size_bytes > 5 << 20
    assert [kept_database.name for kept_database in kept_databases()] == ["shop"]
    assert sum(path.stat().st_blocks * 512 for path in kept.folder.rglob("*")) < 200 << 20

    for source, keys in (("shop", {}), (str(shop.dump("custom")), {"globals": str(shop.globals)})):
        notes: list[str] = []
        arms = emulated_arms(experiment(tmp_path, source, **keys), to_run=False)
        key = dataset_keys(experiment(tmp_path, source, **keys), arms)[0]
        with loaded({key: arms[0].binaries}, lambda _: lambda _share, _text: None, tmp_path, notes.append) as made:
            assert made[key].images == kept.images
            assert made[key].database == "shop"
            rehearse([arms[0].arm.workload], arms[0].binaries, unlimited(key), made[key].images, "shop")
            with pytest.raises(HostError, match="is in use"):
                remove(kept)
        assert "the kept database shop" in notes[0]

    listed = CliRunner().invoke(cli, ["data", "list", "--json"], catch_exceptions=False)
    assert json.loads(listed.output)["databases"][0]["database"] == "shop"
    refused = CliRunner().invoke(cli, ["data", "remove", "shop"])
    assert isinstance(refused.exception, InputError)
    assert kept.folder.is_dir()
    done = CliRunner().invoke(cli, ["data", "remove", "shop", "--yes"], catch_exceptions=False)
    assert str(kept.folder) in done.output
    assert list(databases.iterdir()) == []
    assert shop.dump("custom").exists()


def test_prepare_on_a_kept_database_begins_with_it_and_scripts_are_rehearsed(
    databases: Path, image_dir: Path, shop: Shop, tmp_path: Path
) -> None:
    del databases
    added(shop)
    script = (
        "CREATE TEMP TABLE mine (a int);\nINSERT INTO mine VALUES (1);\nSELECT * FROM prepared;\nSELECT nowhere FROM orders;\n"
        "SELECT * FROM audit.changes;\n"
    )
    prepare = "CREATE TABLE shop.prepared (); GRANT SELECT ON shop.prepared TO app"
    result = experiment(tmp_path, "shop", script, prepare=prepare)
    arms = emulated_arms(result, to_run=False)
    key = dataset_keys(result, arms)[0]
    with loaded({key: arms[0].binaries}, lambda _: lambda _share, _text: None, tmp_path, lambda _: None) as made:
        images = made[key].images
        with pytest.raises(InputError) as caught:
            rehearse([arms[0].arm.workload], arms[0].binaries, unlimited(key), images, made[key].database)
    assert "refuses 2 of 5 statements" in caught.value.message
    assert 'a.sql:4: column "nowhere" does not exist' in caught.value.message
    assert "a.sql:5: permission denied" in caught.value.message


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_keeping_leaves_nothing(
    databases: Path, shop: Shop, tmp_path: Path, sign: signal.Signals
) -> None:
    slow = tmp_path / "slow.sql"
    slow.write_text("CREATE TABLE a ();\nSELECT pg_sleep(600);\n")
    before = slow.read_bytes()
    command = [sys.executable, "-m", "pgdyno", "data", "add", str(slow), "--name", "slow", "--size", "2GiB"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))
    try:
        assert wait_until(lambda: _sleeps() or process.poll() is not None, PATIENCE_S)
        assert process.poll() is None
        process.send_signal(sign)
        assert process.wait(PATIENCE_S) != 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        deadline = time.monotonic() + PATIENCE_S
        while sign == signal.SIGKILL and not clean.clean() and time.monotonic() < deadline:
            pass
    assert list(databases.iterdir()) == []
    assert slow.read_bytes() == before
    assert wait_until(lambda: not _sleeps(), PATIENCE_S)


def _sleeps() -> bool:
    """Whether a session of this test's server waits in the script."""
    done = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return any(
        line.startswith("postgres: postgres slow ") and line.endswith("SELECT") for line in done.stdout.splitlines()
    )


def test_what_cannot_be_kept_is_refused(databases: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text("CREATE TABLE a ();")
    for name in ("A", "../a", "a" * 40):
        refused = CliRunner().invoke(cli, ["data", "add", str(path), "--name", name])
        assert isinstance(refused.exception, InputError), name
    missing = CliRunner().invoke(cli, ["data", "remove", "nothing"])
    assert isinstance(missing.exception, InputError)
    assert databases_dir() == databases
    assert not databases.exists()


ROOM_MIB = 1400
SCRIPT = "CREATE TABLE large AS SELECT n, repeat(md5(n::text), 30) AS what FROM generate_series(1, 2000000) n;"
"""Two gigabytes, of which its text says nothing."""


@pytest.fixture
def small(databases: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A disk for kept databases that has room for so many MiB."""
    with small_disk(databases, request.param):
        yield databases


@pytest.mark.parametrize("small", [300], indirect=True)
def test_a_disk_without_room_is_said_before_anything_is_made(small: Path, shop: Shop) -> None:
    with pytest.raises(HostError, match=r"needs [\d,]+ MiB in .*, and (?:300|299) MiB are free there"):
        added(shop)
    assert list(small.iterdir()) == []


@pytest.mark.bench
@pytest.mark.parametrize("small", [ROOM_MIB], indirect=True)
def test_a_disk_that_fills_up_while_a_database_is_kept_leaves_nothing(small: Path, tmp_path: Path) -> None:
    source = tmp_path / "large.sql"
    source.write_text(SCRIPT)
    command = ["data", "add", str(source), "--name", "large", "--size", "8GiB"]
    failed = CliRunner().invoke(cli, command)
    assert isinstance(failed.exception, PgdynoError), failed.output
    print(failed.exception.message)
    assert list(small.iterdir()) == []
    assert source.read_text() == SCRIPT
