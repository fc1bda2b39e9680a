"""A restored database equals its source, whatever it came from."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import pytest

from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster
from pgdyno.workload.database import opened
from tools.captured.application import SHOP

from .shop import SIZE, Shop, compressed, fingerprint, of_source, only_root, own, restored


def check(shop: Shop, cluster: Cluster, database: str = "shop") -> None:
    """The cluster's database equals the shop."""
    try:
        with cluster.running({"shared_buffers": "32MB"}):
            document = fingerprint(cluster, database)
    finally:
        cluster.close()
    wanted = of_source(shop.cluster)
    for what, value in wanted.items():
        assert document[what] == value, what


@pytest.mark.parametrize("form", ["custom", "directory", "tar", "plain", "plain.gz"])
def test_a_database_restored_from_a_dump_equals_its_source(shop: Shop, place: Path, form: str) -> None:
    name, _, program = form.partition(".")
    path = shop.dump(name)
    if program:
        path = compressed(path, program)
    if path.is_file():
        only_root(path)
    result, cluster = restored(own(path, globals=shop.globals, user="app"), shop.cluster.binaries, place)
    assert result.database == "shop"
    assert "times the dump" in result.said
    check(shop, cluster)
    (directory,) = (place / "record" / "loads").iterdir()
    record = json.loads((directory / "load.json").read_text())
    assert record["loader"] == "restore"
    assert record["rows"]["shop.orders"] == 1800
    assert {"globals", "restore", "vacuum", "checkpoint"} <= record["seconds"].keys()
    assert record["tables"]["database"]["user"] == "app"


def test_a_script_is_read_as_it_was_whatever_it_is_compressed_with(shop: Shop) -> None:
    path = shop.dump("plain")
    for program in ("gz", "zst"):
        with opened(compressed(path, program)) as file:
            assert file.read() == path.read_bytes(), program


@pytest.mark.needs_system_postgres
def test_a_dump_of_an_older_server_by_its_own_programs_comes_back_there_and_in_a_newer_one(
    older_shop: Shop, place: Path
) -> None:
    path = older_shop.dump("custom")
    tables = own(path, globals=older_shop.globals)
    _, same = restored(tables, older_shop.cluster.binaries, place / "same")
    check(older_shop, same)
    result, newer = restored(tables, find_binaries(), place / "newer")
    try:
        with newer.running({}):
            document = fingerprint(newer, result.database)
    finally:
        newer.close()
    wanted = of_source(older_shop.cluster)
    assert {key: document[key] for key in ("rows", "sequences", "settings", "roles")} == {
        key: wanted[key] for key in ("rows", "sequences", "settings", "roles")
    }


def test_a_base_backup_keeps_bloat_and_loses_what_reaches_out(shop: Shop, place: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    shop.program("pg_basebackup", "-D", str(backup), "-X", "stream", "-c", "fast", "-R")
    with (backup / "postgresql.auto.conf").open("a") as file:
        file.write(
            "archive_mode = on\narchive_command = 'false'\nshared_preload_libraries = 'pg_stat_statements,nowhere'\n"
        )
    result, cluster = restored(own(backup, user="app"), shop.cluster.binaries, place, ("data", "wal"))
    assert result.database == "shop"
    assert "nowhere" in result.said
    assert (cluster.data_dir / "pg_wal").is_symlink()
    with cluster.running({"shared_buffers": "32MB"}):
        settings = {setting["name"]: setting["setting"] for setting in cluster.settings()}
        pages = "SELECT pg_relation_size('shop.orders')"
        with cluster.connect() as mine, shop.cluster.connect(dbname="shop") as theirs:
            assert mine.execute(pages).fetchone() == theirs.execute(pages).fetchone()
    assert settings["primary_conninfo"] == settings["restore_command"] == ""
    assert settings["archive_mode"] == "off"
    assert settings["shared_preload_libraries"] == "pg_stat_statements"
    check(shop, cluster)


def test_a_base_backup_in_tar_files_comes_back(shop: Shop, place: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    shop.program("pg_basebackup", "-D", str(backup), "-F", "t", "-z", "-X", "stream", "-c", "fast")
    result, cluster = restored(own(backup), shop.cluster.binaries, place)
    assert result.database == "shop"
    check(shop, cluster)


def test_a_running_server_is_dumped_with_its_roles_and_the_instant_is_told(shop: Shop, place: Path) -> None:
    dsn = shop.cluster.dsn_of("postgres", "shop")
    result, cluster = restored(own(dsn, user="app"), shop.cluster.binaries, place)
    assert result.database == "shop"
    assert "snapshot of 20" in result.said
    assert "without rights" not in result.said
    check(shop, cluster)
    assert list(Path(tempfile.gettempdir()).glob("pgdyno-dump-*")) == []


def test_a_script_that_makes_the_database_is_a_source(place: Path, tmp_path: Path) -> None:
    binaries = find_binaries()
    script = tmp_path / "shop.sql"
    script.write_text(f"\\set size {SIZE}\n" + (SHOP / "shop.sql").read_text())
    result, cluster = restored(
        own(
            script,
            globals=SHOP / "globals.sql",
            name="mine",
            user="app",
            prepare="CREATE TABLE prepared ();",
        ),
        binaries,
        place,
    )
    cluster.close()
    assert result.database == "mine"
    assert result.size_bytes > 8 << 20, "an empty database has 7 MiB"


def test_roles_that_only_the_dump_names_are_made_without_rights_and_said(shop: Shop, place: Path) -> None:
    result, cluster = restored(own(shop.dump("custom"), user="app"), shop.cluster.binaries, place)
    assert "created without rights: app, reporting, shop_owner" in result.said
    with cluster.running({}), cluster.connect() as connection:
        rows = connection.execute("SELECT rolname, rolcanlogin FROM pg_roles WHERE rolname !~ '^pg_'").fetchall()
    cluster.close()
    assert dict(rows) == {"postgres": True, "app": True, "reporting": False, "shop_owner": False}


def test_errors_stop_a_restore_all_of_them_shown_unless_they_are_allowed(
    shop: Shop, place: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.sql"
    broken.write_text("CREATE TABLE a (b nowhere);\nSELECT 1/0;\nCREATE TABLE c ();\n")
    with pytest.raises(PgdynoError) as caught:
        restored(own(broken), shop.cluster.binaries, place / "one")
    assert 'type "nowhere" does not exist' in caught.value.message
    assert "division by zero" in caught.value.message
    restored(own(broken, allow=['type "nowhere"', "division"]), shop.cluster.binaries, place / "two")[1].close()


def test_no_secret_of_the_globals_and_no_value_is_kept(shop: Shop, place: Path, tmp_path: Path) -> None:
    roles = tmp_path / "roles.sql"
    roles.write_text("CREATE ROLE app;\nALTER ROLE app WITH LOGIN PASSWORD 'SCRAM-SHA-256$4096:secret' NOWHERE;\n")
    with pytest.raises(PgdynoError) as caught:
        restored(own(shop.dump("custom"), globals=roles), shop.cluster.binaries, place)
    assert "secret" not in str(caught.value)
    done = subprocess.run(["grep", "-rl", "secret", str(place)], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_a_prepare_that_fails_is_named(shop: Shop, place: Path) -> None:
    with pytest.raises(InputError, match="prepare fails: table"):
        restored(own(shop.dump("custom"), prepare="DROP TABLE nowhere"), shop.cluster.binaries, place)
