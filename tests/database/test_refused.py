"""Sources that cannot be used: one sentence and a remedy, before anything is changed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pgdyno.base.errors import InputError
from pgdyno.experiment import Experiment, read_experiment
from pgdyno.results.kept_database import find_kept
from pgdyno.server.binaries import find_binaries
from pgdyno.workload.database import source_of
from pgdyno.world.kept import require_restorable

from .shop import Shop, compressed, own


def refused(source: Path | str, **keys: object) -> InputError:
    """What is said against a source by the embedded PostgreSQL."""
    with pytest.raises(InputError) as caught:
        require_restorable(own(source, **keys), find_binaries())
    assert caught.value.remedy
    return caught.value


BYTES: dict[str, tuple[bytes, str]] = {
    "gpg": (b"-----BEGIN PGP MESSAGE-----\n", "is encrypted (gpg)"),
    "age": (b"age-encryption.org/v1\n-> X25519", "is encrypted (age)"),
    "openssl": (b"Salted__" + bytes(100), "is encrypted (openssl)"),
    "empty": (b"", "is empty"),
    "binary": (bytes(range(1, 200)) + b"\0\1", "is not a dump of pg_dump"),
    "gz": (b"\x1f\x8b\x08\x00 not gzip", "is damaged"),
    "tar": (bytes(257) + b"ustar  \0" + bytes(800) + b"x", "is torn"),
}


@pytest.mark.parametrize("name", BYTES)
def test_a_file_that_is_no_dump_is_said_for_what_it_is(tmp_path: Path, name: str) -> None:
    content, message = BYTES[name]
    path = tmp_path / "dump"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        source_of(str(path))
    assert message in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize("form", ["custom", "tar", "plain", "plain.gz", "plain.zst", "directory"])
def test_a_torn_dump_is_refused(shop: Shop, tmp_path: Path, form: str) -> None:
    name, _, program = form.partition(".")
    whole = shop.dump(name)
    if program:
        whole = compressed(whole, program)
    torn = tmp_path / "torn"
    if whole.is_dir():
        subprocess.run(["cp", "-r", whole, torn], check=True)
        largest = max(torn.iterdir(), key=lambda path: path.stat().st_size)
        largest.write_bytes(largest.read_bytes()[:-500])
    else:
        torn.write_bytes(whole.read_bytes()[:-40_000])
    error = refused(torn)
    assert any(word in error.message for word in ("torn", "cannot read", "damaged")), error.message


def test_a_dump_of_a_newer_version_with_a_foreign_extension_is_refused_with_the_whole_list(
    shop: Shop, tmp_path: Path
) -> None:
    text = shop.dump("plain").read_text()
    text = text.replace("-- Dumped from database version ", "-- Dumped from database version 9", 1)
    text = text.replace(
        "CREATE EXTENSION", "CREATE EXTENSION IF NOT EXISTS postgis WITH SCHEMA shop;\nCREATE EXTENSION", 1
    )
    path = tmp_path / "newer.sql"
    path.write_text(text)
    error = refused(path)
    assert "newer than" in error.message
    assert "extension postgis not installed" in error.message


def test_files_of_another_version_a_running_server_and_missing_wal_are_refused(shop: Shop, tmp_path: Path) -> None:
    assert "a server may be running" in refused(shop.cluster.data_dir).message
    backup = tmp_path / "backup"
    shop.program("pg_basebackup", "-D", str(backup), "-X", "none", "-c", "fast")
    assert "lacks the WAL" in refused(backup).message
    (backup / "backup_label").unlink()
    assert "was not shut down" in refused(backup).message
    (backup / "PG_VERSION").write_text("13\n")
    assert "is of PostgreSQL 13" in refused(backup).message


def test_a_name_of_nothing_is_refused_with_what_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDYNO_DATABASE_DIR", str(tmp_path))
    assert find_kept("nothing") is None
    with pytest.raises(InputError, match="no file, directory or kept database `nothing`") as caught:
        source_of("nothing")
    assert "service=shop" in caught.value.remedy


FILE = """
schema_version = 1
[world]
volume = "gp3"
[workload]
kind = "script"
files = [{ name = "a.sql", text = "SELECT 1;" }]
[workload.database]
from = "shop.sql"
"""


def experiment(tmp_path: Path, change: Callable[[str], str] = lambda text: text) -> Experiment:
    """The experiment of a file beside a script that makes a database."""
    (tmp_path / "shop.sql").write_text("CREATE TABLE t ();\n")
    (tmp_path / "index.sql").write_text("CREATE INDEX ON t ();\n")
    file = tmp_path / "experiment.toml"
    file.write_text(change(FILE))
    return read_experiment(file)


KEYS: dict[str, tuple[str, str, str]] = {
    "scale": ('kind = "script"', 'kind = "script"\nscale = 3', "scale: it is for pgbench's tables"),
    "connections": ('kind = "script"', 'kind = "script"\nload.connections = 3', "restored by database.jobs sessions"),
    "kind": (
        'kind = "script"\nfiles = [{ name = "a.sql", text = "SELECT 1;" }]',
        'kind = "pgbench"',
        'it is for kind = "script"',
    ),
    "template": ('from = "shop.sql"', 'from = "shop.sql"\nname = "template1"', "is a template"),
    "real": ('volume = "gp3"', 'kind = "real"\ndsn = "service=x"', "an existing server has its own"),
    "jobs": ('from = "shop.sql"', 'from = "shop.sql"\njobs = 0', "jobs"),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_that_do_not_go_with_a_database_are_refused(tmp_path: Path, name: str) -> None:
    old, new, message = KEYS[name]
    with pytest.raises(InputError) as caught:
        experiment(tmp_path, lambda text: text.replace(old, new))
    assert message in str(caught.value)


def test_a_password_in_the_source_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        experiment(tmp_path, lambda text: text.replace("shop.sql", "host=db password=hunter2"))
    assert "hunter2" not in str(caught.value)
    assert "does not belong in a file" in caught.value.message


def test_paths_are_relative_to_the_file_and_prepare_is_a_factor(tmp_path: Path) -> None:
    factor = '[factors]\n"workload.database.prepare" = ["", "index.sql", "CREATE INDEX ON t (a)"]\n'
    result = experiment(tmp_path, lambda text: text + factor)
    first, second, third = (arm.workload.own_database for arm in result.arms)
    assert first is not None and second is not None and third is not None
    assert first.from_ == str(tmp_path / "shop.sql")
    assert first.prepare is None
    assert second.prepare is not None and second.prepare.text == "CREATE INDEX ON t ();\n"
    assert third.prepare is not None and third.prepare.text == "CREATE INDEX ON t (a)"
    assert [arm.label for arm in result.arms] == ["as restored", "index.sql", "prepare CREATE INDEX ON t (a)"]
    assert len({arm.workload.data_set() for arm in result.arms}) == 3
    recorded = result.arms[1].workload.record()
    assert recorded["database"]["prepare"] == "index.sql"
    assert "scale" not in recorded


def test_a_record_has_the_place_of_a_server_alone(tmp_path: Path) -> None:
    result = experiment(
        tmp_path, lambda text: text.replace("shop.sql", "host=db user=me dbname=shop sslkey=/secret/key")
    )
    assert "/secret/key" not in json.dumps(result.settings())
    assert result.settings()["workload"]["database"]["from"] == "host=db dbname=shop user=me"


def test_a_changed_dump_is_another_data_set(tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text("CREATE TABLE a ();")
    before = own(path)
    path.write_text("CREATE TABLE b ();\n")
    assert own(path) != before
    assert own(path) == own(path)
    assert own(path) != own(path, user="app")
