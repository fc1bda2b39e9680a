"""Elastic volumes: modified while they are used, and when they may not be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.advise.metrics import samples
from pgdyno.base import engine
from pgdyno.base.errors import EXIT_USAGE, InputError
from pgdyno.cli.main import run
from pgdyno.machine import volume
from pgdyno.machine.clean import clean
from pgdyno.machine.waiting import wait_until

from .needs import needs_fuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.machine.file_system import FileSystem

GIB = 1 << 30


@pytest.fixture
def data(state: Path) -> Iterator[volume.AttachedVolume]:
    """A gp3 of 10 GiB, mounted; nothing is left of it."""
    yield volume.attach("gp3:size=10GiB", mount=state.parent / "mnt", name="data", submit_log=state.parent / "log")
    for list_volume in volume.list_volumes(state):
        list_volume.detach()
    clean(state)


def may_grow_ext4() -> bool:
    """Whether this process has CAP_SYS_RESOURCE, which the kernel wants for that."""
    status = Path("/proc/self/status").read_text()
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> 24 & 1)


@needs_fuse
@pytest.mark.skipif(may_grow_ext4(), reason="this process has CAP_SYS_RESOURCE")
def test_an_ext4_that_cannot_grow_here_is_said_before_anything_changes(data: volume.AttachedVolume) -> None:
    with pytest.raises(InputError, match="grows only with CAP_SYS_RESOURCE"):
        data.modify("gp3:size=20GiB")
    assert data.stats()["modification"] is None
    assert data.stats()["spec"].startswith("gp3:size=10GiB")


@needs_fuse
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_volume_grows_with_its_file_system_under_load(state: Path, kind: FileSystem) -> None:
    if shutil.which("resize2fs" if kind == "ext4" else "xfs_growfs") is None:
        pytest.skip(f"the tools of {kind} cannot make it larger here")
    if kind == "ext4" and not may_grow_ext4():
        pytest.skip("growing a mounted ext4 needs CAP_SYS_RESOURCE")
    mount, log, image = state.parent / "mnt", state.parent / "log", state.parent / "images" / "grown"
    grown = volume.attach("gp3:size=10GiB", mount=mount, name="data", submit_log=log, file_system=kind)
    try:
        (mount / "before").write_bytes(b"kept")
        command = ["dd", "if=/dev/zero", f"of={mount}/load", "bs=8k", "count=3000", "oflag=direct"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as writer:
            answer = grown.modify("gp3:size=20GiB,iops=6000,throughput=250", optimizing_s=0)
            assert writer.wait(60) == 0, "no request fails"
        assert answer["spec"]["size_bytes"] == 20 * GIB
        assert answer["modification"]["state"] == "completed"
        assert shutil.disk_usage(mount).total > 19 * GIB
        assert volume.find("data", state).spec["limits"]["iops"] == 6000
        # What lies beyond the old end is kept, also in an image.
        with (mount / "sparse").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 12 * GIB)
        (mount / "sparse").unlink()
        grown.detach(save_image=image)
        with volume.attached("gp3:size=20GiB", mount=mount, image=image):
            assert (mount / "before").read_bytes() == b"kept"
    finally:
        for list_volume in volume.list_volumes(state):
            list_volume.detach()
        clean(state)
    replayed = engine.run_json(["replay", str(log)])
    assert replayed["complete"]
    assert replayed["first_difference"] is None
    assert replayed["identical"] == replayed["grants"] >= 3000


@needs_fuse
def test_the_rules_of_modification(data: volume.AttachedVolume, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="only be made larger: it has 10 GiB, and 5 GiB was asked for"):
        data.modify("gp3:size=5GiB")
    with pytest.raises(InputError, match="its layout cannot"):
        data.modify("2xgp3:size=10GiB")
    assert run(["volume", "modify", "data", "gp3:size=10GiB,iops=4000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["modification"]["state"] == "modifying"
    assert run(["volume", "modify", "data", "gp3:size=10GiB,iops=5000"]) == EXIT_USAGE
    assert "when its last modification is completed" in capsys.readouterr().err
    assert run(["volume", "modify", "data", "gp3:size=10GiB,iops=5000", "--rule", "2023"]) == EXIT_USAGE
    assert "at most once in 6 hours" in capsys.readouterr().err
    assert data.stats()["modification"]["state"] == "modifying"


@needs_fuse
def test_four_modifications_in_a_day_and_another_type(data: volume.AttachedVolume) -> None:
    for iops in (4000, 4500, 5000):
        data.modify(f"gp3:size=10GiB,iops={iops}", optimizing_s=0)
    data.modify("io2bx:size=10GiB,iops=5000", optimizing_s=0)
    assert data.stats()["spec"].startswith("io2bx:size=10GiB,iops=5000")
    live = samples.of_volume(data)
    assert [spec["limits"]["iops"] for _, spec in live.earlier] == [3000, 4000, 4500, 5000]
    assert live.spec_at(live.begin_ns)["limits"]["iops"] == 3000
    assert live.spec_at(live.end_ns)["type"] == "io2bx"
    with pytest.raises(InputError, match="four times in 24 hours"):
        data.modify("gp3:size=10GiB", optimizing_s=0)


@needs_fuse
def test_the_path_of_a_twin_is_that_of_whoever_asks(
    data: volume.AttachedVolume, twin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon was started in another directory, in which there is no such file."""
    monkeypatch.chdir(twin.parent)
    data.modify(twin.name)
    assert data.stats()["spec"] == f"twin:{twin}"


@needs_fuse
def test_a_volume_is_sampled_while_its_file_system_grows(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The growth waits here until it is let go; a run's probe does not wait for it."""
    real = shutil.which("xfs_growfs")
    if real is None:
        pytest.skip("the tools of xfs cannot make it larger here")
    began, go, program = tmp_path / "began", tmp_path / "go", tmp_path / "xfs_growfs"
    os.mkfifo(go)
    program.write_text(f'#!/bin/sh\ntouch {began}\nread word < {go}\nexec {real} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    release = os.open(go, os.O_RDWR)
    try:
        with (
            ThreadPoolExecutor(1) as asking,
            volume.attached("gp3:size=10GiB", mount=state.parent / "mnt", name="data", file_system="xfs") as data,
        ):
            growing = asking.submit(data.modify, "gp3:size=20GiB", optimizing_s=0)
            try:
                assert wait_until(began.exists, 60)
                assert data.stats()["modification"] is not None
                assert not growing.done()
            finally:
                os.write(release, b"on\n")
            assert growing.result(60)["spec"]["size_bytes"] == 20 * GIB
    finally:
        os.close(release)
