"""A volume carries ext4 or XFS with the options asked for, and a clone brings its own."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from pgdyno.base.errors import EXIT_USAGE, InputError, PgdynoError
from pgdyno.cli.main import run
from pgdyno.machine import volume
from pgdyno.machine.file_system import FILE_SYSTEMS, FileSystem, require_mount_options

from .needs import needs_fuse

KINDS = [pytest.param(kind, marks=pytest.mark.needs_xfs if kind == "xfs" else ()) for kind in FILE_SYSTEMS]


def mounted(mount: Path) -> tuple[str, list[str]]:
    """Kind and options of what is mounted, as the kernel says."""
    lines = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    texts = next(line for line in lines if line[1] == str(mount))
    return texts[2], texts[3].split(",")


@needs_fuse
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_formatted_and_mounted_as_asked(state: Path, kind: FileSystem) -> None:
    mount = state.parent / "mnt"
    with volume.attached("null", mount=mount, file_system=kind, mount_options="noatime,nodev") as attached:
        (mount / "file").write_bytes(bytes(1 << 20))
        text, options = mounted(mount)
        assert text == attached.facts["file_system"] == kind
        assert {"noatime", "nodev"} <= set(options)
        assert attached.facts["mount_options"] == "noatime,nodev"


@needs_fuse
@pytest.mark.parametrize("kind", KINDS)
def test_clones_of_one_image_are_mounted_beside_each_other(state: Path, kind: FileSystem) -> None:
    """XFS refuses a second mount of one identity unless it is told not to look."""
    image, mounts = state.parent / "images" / "saved", [state.parent / name for name in ("a", "b")]
    with volume.attached("null", mount=mounts[0], file_system=kind) as first:
        (mounts[0] / "kept").write_text("kept")
        first.detach(save_image=image)
    with (
        volume.attached("gp3", mount=mounts[0], image=image) as result,
        volume.attached("gp3", mount=mounts[1], image=image, file_system=kind) as two,
    ):
        assert [(mount / "kept").read_text() for mount in mounts] == ["kept", "kept"]
        assert result.facts["file_system"] == two.facts["file_system"] == kind
        (mounts[0] / "mine").touch()
        assert not (mounts[1] / "mine").exists()


def told_stripes(mount: Path) -> tuple[int, int]:
    """Stripe unit and width of a mounted XFS in bytes, as its own tool prints them."""
    printed = subprocess.run(["xfs_info", mount], check=True, capture_output=True, text=True, timeout=60).stdout
    block = re.search(r"^data .*bsize=(\d+)", printed, re.MULTILINE)
    stripes = re.search(r"sunit=(\d+) +swidth=(\d+) blks", printed)
    assert block and stripes, printed
    return int(stripes[1]) * int(block[1]), int(stripes[2]) * int(block[1])


@needs_fuse
@pytest.mark.needs_xfs
@pytest.mark.parametrize(
    ("spec", "stripes"),
    [
        ("null:size=1GiB", (0, 0)),
        ("4xnull:size=256MiB", (512 << 10, 2 << 20)),
        ("raid10:6xnull:size=256MiB,chunk=64KiB", (64 << 10, 192 << 10)),
    ],
    ids=["one volume", "raid0", "raid10"],
)
def test_xfs_is_told_the_stripes_of_an_array(state: Path, spec: str, stripes: tuple[int, int]) -> None:
    image, mount = state.parent / "images" / "saved", state.parent / "mnt"
    with volume.attached(spec, mount=mount, file_system="xfs") as first:
        assert told_stripes(mount) == stripes
        first.detach(save_image=image)
    with volume.attached(spec, mount=mount, image=image):
        assert told_stripes(mount) == stripes, "a clone has them too"


@needs_fuse
@pytest.mark.needs_xfs
def test_an_array_that_xfs_cannot_stripe_is_refused(state: Path) -> None:
    with pytest.raises(InputError, match="xfs needs an array of at least 640 MiB, and this one has 400 MiB") as refused:
        volume.attach("4xnull:size=100MiB", mount=state.parent / "mnt", file_system="xfs")
    assert "size=160MiB or more for each" in refused.value.remedy


@needs_fuse
def test_ext4_takes_a_stripe_at_the_mount(state: Path) -> None:
    mount = state.parent / "mnt"
    with volume.attached("4xnull:size=256MiB", mount=mount, mount_options="stripe=512"):
        assert "stripe=512" in mounted(mount)[1]


@needs_fuse
@pytest.mark.needs_xfs
def test_an_image_of_another_kind_is_refused(state: Path) -> None:
    image, mount = state.parent / "images" / "saved", state.parent / "mnt"
    with volume.attached("null", mount=mount) as first:
        first.detach(save_image=image)
    with pytest.raises(InputError, match="the image holds ext4, not xfs"):
        volume.attach("gp3", mount=mount, image=image, file_system="xfs")
    assert not mount.exists()


@needs_fuse
def test_a_device_that_somebody_has_mounted_is_not_taken_away(state: Path) -> None:
    """Detaching what is in memory loses it: whoever mounted it would be left with errors."""
    mount = state.parent / "theirs"
    mount.mkdir()
    with volume.attached("null", mount=None) as attached:
        subprocess.run(["mkfs.ext4", "-q", attached.block_device], check=True, timeout=60)
        subprocess.run(["mount", attached.block_device, mount], check=True, timeout=60)
        try:
            with pytest.raises(PgdynoError) as refused:
                attached.detach()
            assert refused.value.code == "volume.detach.in_use"
            assert str(mount) in str(refused.value.data)
            (mount / "kept").write_text("kept")
            os.sync()
            assert (mount / "kept").read_text() == "kept"
        finally:
            subprocess.run(["umount", mount], check=True, timeout=60)
        attached.detach()
    assert not volume.list_volumes(state)


@pytest.mark.parametrize("options", ["nobarrier", "noatime,barrier=0", "norecovery", "a b", "x;y", "loop"])
def test_options_that_give_up_durability_are_refused(options: str) -> None:
    with pytest.raises(InputError) as caught:
        require_mount_options(options)
    assert caught.value.remedy


def test_ordinary_options_are_allowed() -> None:
    require_mount_options("")
    require_mount_options("noatime,commit=30,data=ordered,logbsize=256k")


def test_without_a_mount_there_is_nothing_to_hand_them_to(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["volume", "attach", "null", "--no-mount", "--mount-options", "noatime"]) == EXIT_USAGE
    assert "a volume that is not mounted has no mount options" in capsys.readouterr().err


@needs_fuse
def test_the_command_hands_them_on(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mount = state.parent / "mnt"
    assert run(["volume", "attach", "null", "--mount", str(mount), "--name", "v", "--mount-options", "noatime"]) == 0
    try:
        assert "noatime" in mounted(mount)[1]
    finally:
        assert run(["volume", "detach", "v"]) == 0
    assert run(["volume", "attach", "null", "--mount", str(mount), "--mount-options", "nobarrier"]) == EXIT_USAGE
    assert "durable" in capsys.readouterr().err
