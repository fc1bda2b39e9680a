"""The doctor finds what is missing, says the remedy, and never fails itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from pgdyno.base.errors import EXIT_HOST, HostError
from pgdyno.cli.main import run
from pgdyno.machine import cgroup, doctor, preflight

from .needs import needs_cgroups, needs_fuse, needs_root
from .test_journal import die_leaving

if TYPE_CHECKING:
    import pytest


@needs_cgroups
@needs_fuse
def test_a_machine_that_can_do_it(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["able"] is True
    values = {check["name"]: check["status"] for check in document["checks"]}
    assert values["root"] == values["/dev/fuse"] == values["PostgreSQL"] == values["leftovers"] == "ok"
    assert all(check["remedy"] for check in document["checks"] if check["status"] != "ok")


def test_a_machine_that_cannot(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(preflight.require_fuse, "__defaults__", (tmp_path / "fuse",))
    monkeypatch.setenv("PGDYNO_ENGINE", str(tmp_path / "engine"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run(["doctor"]) == EXIT_HOST
    out = capsys.readouterr().out
    for name in ("root", "/dev/fuse", "engine", "PostgreSQL"):
        assert re.search(rf"^fail  {name} .*\n +remedy: .+", out, re.MULTILINE), name
    missing = re.search(r"Missing for emulated volumes: (.+)\.", out)
    assert missing is not None
    assert {"root", "/dev/fuse", "engine", "PostgreSQL"} <= set(missing[1].split(", "))


def test_a_check_that_breaks_is_a_finding(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable() -> list[int]:
        raise OSError("no /proc")

    monkeypatch.setattr(doctor, "_cpu_ticks", unreadable)
    document = {check.name: check for check in doctor.examine(state)}
    assert document["CPU steal"].status == "warn"
    assert "no /proc" in document["CPU steal"].found


def test_control_groups_that_cannot_be_made_are_said(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def own_group(_self: cgroup.V2) -> None:
        raise HostError("it is a container's own group", remedy="run it outside")

    monkeypatch.setattr(cgroup, "find_hierarchy", lambda *_: cgroup.V2(state, frozenset(("cpu", "cpuset", "memory"))))
    monkeypatch.setattr(cgroup.V2, "require_groups", own_group)
    control_groups = {check.name: check for check in doctor.examine(state)}["control groups"]
    assert (control_groups.status, control_groups.remedy) == ("fail", "run it outside")


def test_room_for_images_is_looked_for_where_they_are_kept(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDYNO_IMAGE_DIR", str(tmp_path / "not" / "yet"))
    free_bytes = {tmp_path.resolve(): 1 << 30}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free_bytes.get(Path(path), 1 << 40)))
    images = {check.name: check for check in doctor.examine(state)}["images"]
    assert (images.status, images.found) == ("fail", f"1.0 GiB free in {tmp_path.resolve()}")
    assert "PGDYNO_IMAGE_DIR" in images.remedy


@needs_fuse
def test_a_machine_that_may_not_mount_is_told_so(state: Path) -> None:
    """Root without CAP_SYS_ADMIN, as in a plain container; attach and compare end with the same code."""
    pgdyno = Path(sys.executable).parent / "pgdyno"
    drop = ["setpriv", "--inh-caps=-sys_admin", "--bounding-set=-sys_admin", "--", pgdyno]
    process = subprocess.run([*drop, "doctor"], capture_output=True, text=True, check=False)
    assert process.returncode == EXIT_HOST
    assert re.search(r"^fail  mounts .*CAP_SYS_ADMIN.*\n +remedy: .*--cap-add SYS_ADMIN", process.stdout, re.MULTILINE)
    for command in (["volume", "attach", "gp3", "--no-mount"], ["compare", "gp3", "io2bx"]):
        process = subprocess.run([*drop, *command], capture_output=True, text=True, check=False, cwd=state.parent)
        assert process.returncode == EXIT_HOST, process.stderr
        assert "CAP_SYS_ADMIN" in process.stderr


@needs_fuse
def test_that_a_mounted_ext4_cannot_grow_is_said(state: Path) -> None:
    drop = ["setpriv", "--inh-caps=-sys_resource", "--bounding-set=-sys_resource", "--"]
    process = subprocess.run(
        [*drop, Path(sys.executable).parent / "pgdyno", "doctor"], capture_output=True, text=True, check=False
    )
    assert re.search(r"^warn  growing ext4 .*\n +remedy: .*--file-system xfs", process.stdout, re.MULTILINE)


@needs_root
def test_leftovers_are_shown_and_cleaned(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "left"
    die_leaving(state, folder)
    run(["doctor"])
    assert f"directory {folder} of the dead process" in capsys.readouterr().out
    assert run(["doctor", "--clean", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"done": [f"removed {folder}"]}
    assert run(["doctor", "--clean"]) == 0
    assert "nothing to clean up" in capsys.readouterr().err
