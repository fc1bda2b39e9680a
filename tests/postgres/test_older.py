"""Older servers are fetched by Maven, are what was locked, and are installed whole or not at all. Maven is a script here."""

from __future__ import annotations

import hashlib
import io
import platform
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.base.errors import HostError, InputError
from tools.older.install import GROUP, LOCK, Artifact, install, locked

MAVEN = """#!/bin/sh
for word; do
    case "$word" in
    -Dmaven.repo.local=*) repository=${word#*=} ;;
    -Dartifact=*) artifact=${word#*=} ;;
    esac
done
[ -e {jar} ] || { echo "[ERROR] Unknown host"; exit 1; }
version=${artifact##*:}
name=${artifact%:*}; name=${name##*:}
mkdir -p "$repository/{group}/$name/$version"
cp {jar} "$repository/{group}/$name/$version/$name-$version.jar"
"""


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A jar of the shape of the real ones, and a Maven that has it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as inner:
        for name in ("bin/initdb", "bin/postgres", "share/postgresql/postgres.bki"):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = 2, 0o755
            inner.addfile(entry, io.BytesIO(b"#!"))
    path = tmp_path / "server.jar"
    with zipfile.ZipFile(path, "w") as outer:
        outer.writestr("postgres-linux-x86_64.txz", packed.getvalue())
        outer.writestr("META-INF/MANIFEST.MF", "")
    program = tmp_path / "tools" / "mvn"
    program.parent.mkdir()
    text = MAVEN.replace("{jar}", str(path)).replace("{group}", GROUP.replace(".", "/"))
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return path


def _of(jar: Path) -> Artifact:
    return Artifact(12, "12.1.0", "x86_64", "server", hashlib.sha256(jar.read_bytes()).hexdigest())


def test_it_is_installed_whole_and_once(jar: Path, tmp_path: Path) -> None:
    wanted = _of(jar)
    programs = install(wanted, tmp_path / "root")
    assert programs == tmp_path / "root" / "12" / "bin"
    assert (programs / "postgres").stat().st_mode & 0o755 == 0o755
    assert (programs.parent / "share" / "postgresql" / "postgres.bki").is_file()
    assert programs.parent.stat().st_mode & 0o777 == 0o755, "the server's user can enter"
    jar.unlink()
    assert install(wanted, tmp_path / "root") == programs
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["12"]


def test_another_file_than_the_locked_one_is_not_installed(jar: Path, tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"has the SHA-256 \w+, and 0+ is locked"):
        install(replace(_of(jar), sha256="0" * 64), tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []


def test_without_network_or_maven_it_is_named_as_missing(
    jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = _of(jar)
    jar.unlink()
    with pytest.raises(HostError, match=r"PostgreSQL 12\.1\.0 is missing, and Maven does not fetch it: .*Unknown host"):
        install(wanted, tmp_path / "root")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(HostError, match=r"PostgreSQL 12\.1\.0 is missing, and Maven, which fetches it") as missing:
        install(wanted, tmp_path / "root")
    assert "apt install maven" in missing.value.remedy


def test_a_version_that_is_not_locked_is_refused_with_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert locked(12).version.startswith("12.")
    assert len(locked(12).sha256) == 64
    with pytest.raises(InputError, match="no PostgreSQL 9 for x86_64") as refused:
        locked(9)
    assert "12" in refused.value.remedy
    assert LOCK.is_file()
