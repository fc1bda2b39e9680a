"""`pgdyno doctor --uninstall` leaves nothing of pgdyno's, and touches nothing of others'."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno import _build
from pgdyno.base.errors import HostError
from pgdyno.cli import main as cli_main
from pgdyno.cli import uninstall
from pgdyno.machine import cgroup, paths
from pgdyno.machine.journal import HostJournal

COPY = "postgres-0123456789abcdef"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine of the test's own, on which pgdyno has worked. Its path is short: a volume has a socket in it."""
    tmp_path = Path(tempfile.mkdtemp(prefix="u-")).resolve()
    monkeypatch.setenv("PGDYNO_STATE_DIR", str(tmp_path / "run" / "state"))
    monkeypatch.setenv("PGDYNO_IMAGE_DIR", str(tmp_path / "shm" / "pgdyno" / "images"))
    monkeypatch.setenv("PGDYNO_POSTGRES_DIR", str(tmp_path / "var"))
    monkeypatch.setattr(paths, "MACHINE_DIR", tmp_path / "run" / "machine")
    groups = cgroup.V2(tmp_path / "cgroup", frozenset())
    monkeypatch.setattr(cgroup, "find_hierarchy", lambda *_: groups)
    for name in (
        "run/state/volumes",
        "run/state/claims",
        "run/state/journal",
        "run/state/mounts",
        "run/state/load",
        "run/state/postgres",
        "run/machine",
        "shm/pgdyno/images/layers",
        f"var/{COPY}/bin",
        f"var/.{COPY}.123.broken",
        "cgroup/pgdyno",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "run/machine/dirty_limits.json").touch()
    (tmp_path / "run/state/clean.lock").touch()
    yield tmp_path
    shutil.rmtree(tmp_path)


def test_nothing_is_left(machine: Path) -> None:
    done, kept = uninstall.remove()
    assert kept == []
    left = {path.relative_to(machine).as_posix() for path in machine.rglob("*")}
    assert left == {"run", "shm", "cgroup"}
    assert f"removed {machine / 'var' / COPY}" in done
    assert uninstall.remove() == ([], [])


def test_what_pgdyno_did_not_make_stays_and_is_named(machine: Path) -> None:
    (machine / "var" / "postgres-of-mine").mkdir()
    (machine / "run" / "state" / "load" / "undo-1.json").touch()
    done, kept = uninstall.remove()
    assert (machine / "var" / "postgres-of-mine").is_dir()
    assert not (machine / "var" / COPY).exists()
    text = "\n".join(kept)
    assert "postgres-of-mine in it was not made by pgdyno" in text
    assert "undo-1.json in it undoes what a load has changed: run `pgdyno load --restore DSN`" in text
    assert str(machine / "run" / "state" / "load") not in "\n".join(done)


def test_the_content_of_a_volume_that_lives_elsewhere_stays(machine: Path) -> None:
    layers = machine / "shm" / "pgdyno" / "images" / "layers"
    (layers / f"mine-{os.getppid()}").touch()
    (layers / "dead-4194305").touch()  # above the kernel's largest process id
    _, kept = uninstall.remove()
    assert [path.name for path in layers.iterdir()] == [f"mine-{os.getppid()}"]
    assert any(f"{layers} stays" in line for line in kept)


def test_it_is_refused_while_another_pgdyno_runs(machine: Path) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        HostJournal(machine / "run" / "state").record("directory", path="/nonexistent")
        os.write(write, b"x")
        signal.pause()
        os._exit(0)
    try:
        os.read(read, 1)
        with pytest.raises(HostError, match=f"another pgdyno runs: process {child}"):
            uninstall.remove()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)
    assert (machine / "var" / COPY).is_dir()


def test_it_is_refused_while_a_server_runs_from_a_copy(machine: Path) -> None:
    program = machine / "var" / COPY / "bin" / "postgres"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with subprocess.Popen([program, "60"]) as server:
        try:
            with pytest.raises(HostError, match=f"a PostgreSQL of pgdyno's runs: process {server.pid}"):
                uninstall.remove()
        finally:
            server.kill()
    assert program.exists()


@pytest.mark.needs_fuse
def test_it_is_refused_while_a_volume_is_attached(machine: Path) -> None:
    from pgdyno.machine import volume

    attached = volume.attach("null:size=64MiB", mount=None, name="mine")
    try:
        with pytest.raises(HostError, match="volumes are attached: mine") as caught:
            uninstall.remove()
        assert "pgdyno volume detach mine" in caught.value.remedy
    finally:
        attached.detach()
    assert uninstall.remove()[1] == []


def test_without_root_the_command_that_works_is_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uninstall.os, "geteuid", lambda: 12345)
    with pytest.raises(HostError, match="needs root"):
        uninstall.remove()
    assert (machine / "var" / COPY).is_dir()


def test_the_command_says_what_is_left_to_do(
    machine: Path, repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_build, "PACKAGE", repository / "python" / "pgdyno")
    assert cli_main.run(["doctor", "--uninstall", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["then"] == "remove the clone"
    assert any(COPY in line for line in document["done"])
    assert cli_main.run(["doctor", "--uninstall"]) == 0
    assert "nothing to remove; to remove the package, remove the clone" in capsys.readouterr().err
    assert cli_main.run(["doctor", "--uninstall", "--clean"]) == 2
