"""The wheel works wherever pip puts it. Its dependencies are those of the environment that runs the tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pgdyno import _build
from tests.wheel.conftest import Packed
from tools.wheel import description, sdist

BASE = Path(sys.executable).resolve()
"""The interpreter outside of the virtual environment."""
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Installed:
    """Where the package is, the interpreter that finds it, and where the programs are."""

    site: Path
    python: Path
    programs: Path

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        paths = f"{self.site}:{sysconfig.get_path('purelib')}"
        kept = {name: value for name, value in os.environ.items() if name != "PGDYNO_ENGINE"}
        return subprocess.run(
            words, env=kept | {"PYTHONPATH": paths}, cwd="/", capture_output=True, text=True, check=False, timeout=60
        )


def pip(*words: str | Path, python: Path = BASE, **settings: str) -> None:
    """Run the tests' pip for an interpreter, without a registry."""
    command = [sys.executable, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check", *words]
    environment = os.environ | {"PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_ROOT_USER_ACTION": "ignore"} | settings
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def install(way: str, wheel: Path, folder: Path) -> Installed:
    """Install the wheel in one way below a folder."""
    words = ("install", "--no-deps", "--no-index", "--no-compile", wheel)
    site = folder / "lib" / VERSION / "site-packages"
    if way == "--target":
        pip(*words, "--target", folder)
        return Installed(folder, BASE, folder / "bin")
    if way == "--prefix":
        pip(*words, "--prefix", folder)
        return Installed(site, BASE, folder / "bin")
    if way == "--user":
        pip(*words, "--user", PYTHONUSERBASE=str(folder))
        return Installed(site, BASE, folder / "bin")
    environment = folder.with_name("made here") if way == "a virtual environment that was moved" else folder
    subprocess.run([BASE, "-m", "venv", "--without-pip", environment], check=True)
    pip(*words, python=environment / "bin" / "python")
    if environment != folder:
        shutil.make_archive(str(folder), "tar", environment)
        shutil.unpack_archive(f"{folder}.tar", folder)
        shutil.rmtree(environment)
    return Installed(site, folder / "bin" / "python", folder / "bin")


@pytest.mark.parametrize(
    "way", ["--target", "--prefix", "--user", "a virtual environment", "a virtual environment that was moved"]
)
def test_an_installation_finds_its_engine_and_its_files(way: str, packed: Packed, tmp_path: Path) -> None:
    installed = install(way, packed.wheel, tmp_path / "place")
    text = "print(_engine.checked(), _build.source_root(), _build.PACKAGE, installation.data_folder('experiments'))"
    done = installed.run(
        installed.python,
        "-c",
        f"from pgdyno import _build; from pgdyno.base import engine as _engine, installation; {text}",
    )
    if "built from other sources" in done.stderr and "PGDYNO_ENGINE" in os.environ:
        pytest.skip("$PGDYNO_ENGINE names an engine of other sources")
    package = installed.site / "pgdyno"
    expected = [
        str(installed.programs / "pgdyno-engine"),
        "None",
        str(package),
        str(package / "_files" / "experiments"),
    ]
    assert done.stdout.split() == expected, done.stderr
    assert (package / "_files" / "experiments" / "wal-volume.toml").is_file()
    assert "gp3" in installed.run(installed.python, "-m", "pgdyno", "catalog", "volumes").stdout


def test_an_archive_that_lost_the_modes_is_said_with_the_places(packed: Packed, tmp_path: Path) -> None:
    """As Python's zipfile unpacks one: the engine is there, and no program."""
    installed = install("a virtual environment", packed.wheel, tmp_path / "place")
    shutil.make_archive(f"{tmp_path / 'copy'}", "zip", tmp_path / "place")
    shutil.unpack_archive(tmp_path / "copy.zip", tmp_path / "copy")
    site = tmp_path / "copy" / installed.site.relative_to(tmp_path / "place")
    done = replace(installed, site=site).run(BASE, "-m", "pgdyno", "catalog", "volumes")
    assert done.returncode == 3
    program = tmp_path / "copy" / "bin" / "pgdyno-engine"
    assert f"none of these is a program: {site / 'bin' / 'pgdyno-engine'}, {program}" in done.stderr
    assert f"`chmod +x {program}`" in done.stderr
    program.chmod(0o755)
    assert "gp3" in replace(installed, site=site).run(BASE, "-m", "pgdyno", "catalog", "volumes").stdout


def test_the_command_works_its_manual_is_there_and_nothing_stays(packed: Packed, tmp_path: Path) -> None:
    installed = install("a virtual environment", packed.wheel, tmp_path / "place")
    command = installed.programs / "pgdyno"
    assert installed.run(command, "--version").stdout.startswith("pgdyno ")
    assert "wal-volume" in installed.run(command, "show", "examples").stdout
    assert "$schema" in json.loads(installed.run(command, "show", "schema", "experiment").stdout)
    assert installed.run(command, "reproduce", "io2", "--list").stdout.startswith("io2: ")
    assert "panels" in json.loads(installed.run(command, "show", "dashboards", "grafana-volumes").stdout)
    assert "pgdyno compare" in (tmp_path / "place/share/man/man1/pgdyno-compare.1").read_text()
    pip("uninstall", "--yes", "pgdyno", python=installed.python)
    left = [path for path in (tmp_path / "place").rglob("*") if path.is_file() and "pgdyno" in str(path)]
    assert [path for path in left if "__pycache__" not in path.parts] == []


def test_the_source_distribution_is_whole(repository: Path, tmp_path: Path) -> None:
    if not (repository / ".git").exists():
        pytest.skip("needs git's list of files")
    made = sdist.write(repository, tmp_path / "dist")
    with tarfile.open(made) as archive:
        archive.extractall(tmp_path, filter="data")
    [tree] = [path for path in tmp_path.iterdir() if path.name.startswith("pgdyno-")]
    _, _, page = (tree / "PKG-INFO").read_text().partition("\n\n")
    assert description.relative_links(page) == []
    for name in ("tools/build_backend.py", "data/scripts/pgdyno", "experiments/scripts/transfer.sql", "LICENSE"):
        assert (tree / name).is_file(), name
        assert os.access(tree / name, os.X_OK) is os.access(repository / name, os.X_OK), name
    unknown = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "crates", "catalog"],
        cwd=repository,
        capture_output=True,
        check=True,
    ).stdout
    if not unknown:  # what git does not know yet is not in it
        assert _build.hash_sources(tree) == _build.hash_sources(repository)
