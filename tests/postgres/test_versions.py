"""A PostgreSQL of a package runs as the embedded one does: same life cycle, settings of its own version."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import HostError, InputError
from pgdyno.machine import shared_memory
from pgdyno.machine.process import end_all, working_below
from pgdyno.server import publish, settings
from pgdyno.server.accepted import require_accepted
from pgdyno.server.binaries import embedded_package, find_binaries
from pgdyno.server.cluster import Cluster
from pgdyno.server.user import require_reachable, server_user
from tests.conftest import find_system_postgres
from tests.support.commands import pgdyno

from ..host.needs import expect, needs_root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.binaries import PgBinaries

GIB = 1 << 30
SERVERS = ["embedded", pytest.param("system", marks=pytest.mark.needs_system_postgres)]


@pytest.fixture(params=SERVERS)
def binaries(request: pytest.FixtureRequest) -> PgBinaries:
    """The embedded programs, then those of a package of this machine."""
    return find_binaries(find_system_postgres() if request.param == "system" else None)


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installation of the usual shape below a directory that only its owner may enter; its programs."""
    monkeypatch.setenv("PGDYNO_POSTGRES_DIR", str(tmp_path / "var"))
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    package = embedded_package()
    prefix = shutil.copytree(package / "pginstall", home / "postgres", symlinks=True)
    for library in (package.parent / f"{package.name}.libs").glob("*"):
        shutil.copy2(library, prefix / "lib")
    for folder in (tmp_path, *tmp_path.parents):
        # pytest's own are private too, and the copy must be reachable.
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 1:
            folder.chmod(folder.stat().st_mode | 0o011)
    yield prefix / "bin"


def test_a_cluster_lives_with_the_tuned_set_of_its_version(binaries: PgBinaries, state: Path) -> None:
    cluster = Cluster(binaries, state.parent / "data")
    try:
        cluster.initdb()
        tuned = settings.tuned(GIB, binaries.major)
        with cluster.running(tuned):
            rows = {row["name"]: row for row in cluster.settings()}
            assert {name for name in tuned if rows[name]["source"] != "configuration file"} == set()
            assert rows["effective_io_concurrency"]["setting"] == "16", "the same on every version"
            with cluster.connect() as connection:
                row = connection.execute("SHOW server_version_num").fetchone()
            assert row is not None
            assert int(row[0]) // 10000 == binaries.major
            env = os.environ | {"PGHOST": str(cluster.socket_dir), "PGUSER": "postgres", "PGDATABASE": "postgres"}
            load = [str(binaries.program("pgbench")), "-i", "-s", "1", "-q"]
            subprocess.run(load, env=env, check=True, capture_output=True, timeout=60)
        assert not cluster.alive
        cluster.start(settings.defaults())
        cluster.kill()
    finally:
        cluster.close()


def test_shared_memory_is_found_without_a_record_of_it(binaries: PgBinaries, state: Path) -> None:
    """Its postmaster and its command may both be killed before the names are written down."""
    cluster = Cluster(binaries, state.parent / "data")
    try:
        cluster.initdb()
        cluster.start()
        pid, processes = cluster.pid, working_below(cluster.data_dir)
        names = shared_memory.posix_names(processes)
        os.kill(pid, signal.SIGKILL)
        end_all(processes)
        expect(lambda: not cluster.alive, "the server is dead")
        done = shared_memory.remove(pid, ())
        assert names
        assert {f"removed /dev/shm/{name}" for name in names} <= set(done)
        assert any("System V" in line for line in done)
        assert shared_memory.remove(pid, ()) == []
    finally:
        cluster.close()


@pytest.mark.parametrize("major", range(12, 19))
def test_every_version_has_its_own_set(major: int) -> None:
    names = set(settings.tuned(GIB, major))
    assert ("io_method" in names) == (major >= 18)
    assert ("effective_io_concurrency" in names) == (major < 18)
    assert ("maintenance_io_concurrency" in names) == (13 <= major < 18)
    assert ("vacuum_buffer_usage_limit" in names) == (major == 16)


def test_the_tuned_set_is_accepted(binaries: PgBinaries) -> None:
    require_accepted(binaries, settings.tuned(GIB, binaries.major))
    require_accepted(binaries, {})


@pytest.mark.parametrize(
    ("chosen", "remedy"),
    [
        ({"work_men": "4MB"}, "work_mem"),
        ({"checkpoint_timeout": "5 weeks"}, "Valid units"),
        ({"wal_level": "most"}, "replica"),
        ({"max_connections": "0"}, "a value"),
    ],
)
def test_what_a_version_refuses_is_said_before_anything_is_made(
    binaries: PgBinaries, chosen: dict[str, str], remedy: str
) -> None:
    with pytest.raises(InputError) as caught:
        require_accepted(binaries, chosen)
    assert (caught.value.code, caught.value.data) == ("postgres.settings.refused", {"settings": list(chosen)})
    assert binaries.version in caught.value.message
    assert remedy in caught.value.remedy


def test_a_refused_setting_of_an_experiment_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "trial.toml"
    text = 'schema_version = 1\n[world]\nvolume = "gp3"\n[postgres.parameters]\njit = "off"\nwal_level = "most"\n'
    path.write_text(text, encoding="utf-8")
    error = pgdyno("run", path, "--dry-run", code=2).error
    assert error is not None
    assert error.code == "postgres.settings.refused"
    assert error.data.items() >= {"key": "postgres.parameters.wal_level", "line": 6, "settings": ["wal_level"]}.items()


@pytest.mark.needs_system_postgres
def test_a_setting_of_a_later_version_is_refused() -> None:
    binaries = find_binaries(find_system_postgres())
    if binaries.major >= 18:
        pytest.skip("the installed PostgreSQL is the newest")
    with pytest.raises(InputError, match="io_method"):
        require_accepted(binaries, {"io_method": "worker"})


@pytest.mark.needs_system_postgres
def test_programs_that_everyone_can_run_are_used_in_place() -> None:
    folder = find_system_postgres()
    assert folder is not None
    binaries = find_binaries(folder)
    assert (binaries.bin_dir, binaries.library_dir, binaries.source) == (folder.resolve(), None, str(folder.resolve()))


@needs_root
def test_programs_in_a_private_directory_are_copied(private: Path, state: Path) -> None:
    binaries = find_binaries(private)
    assert binaries.bin_dir != private
    assert binaries.source == str(private)
    require_reachable(binaries.bin_dir, server_user())
    cluster = Cluster(binaries, state.parent / "data")
    try:
        cluster.initdb()
        with cluster.running():
            assert cluster.alive
    finally:
        cluster.close()
    assert find_binaries(private) == binaries, "the second time the copy is there"


@needs_root
def test_a_prefix_that_is_not_its_own_is_not_copied(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.server.binaries.COPY_BYTES_MAX", 1 << 20)
    with pytest.raises(HostError, match="own prefix") as caught:
        find_binaries(private)
    assert "chmod" in caught.value.remedy


@needs_root
def test_a_copy_that_does_not_run_says_why(private: Path) -> None:
    shutil.rmtree(private.parent / "share")
    (private.parent / "share").mkdir()
    with pytest.raises(HostError, match="nor a copy of it"):
        find_binaries(private)


def test_a_copy_is_of_the_folders_named(tmp_path: Path) -> None:
    for name in ("bin", "lib", "other"):
        (tmp_path / "prefix" / name).mkdir(parents=True)
        (tmp_path / "prefix" / name / "file").touch()
    prefix = tmp_path / "prefix"
    copy = publish.publish(prefix, [prefix / "bin", prefix / "lib"], tmp_path / "var")
    assert sorted(file.name for file in copy.iterdir() if file.is_dir()) == ["bin", "lib"]
