"""Mounts and loop devices are seen as the kernel has them, and taken down also when they are in use."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pgdyno.machine import mounts
from pgdyno.machine.cgroup import find_hierarchy
from pgdyno.machine.process import identity
from pgdyno.machine.remove import end_tools

from .needs import expect, needs_root

MIB = 1 << 20


def test_names_with_spaces_are_read_as_they_are() -> None:
    assert mounts._unescape(r"/a\040b\134c") == "/a b\\c"


@needs_root
def test_white_space_that_the_kernel_does_not_escape_belongs_to_the_name(state: Path) -> None:
    """Python ends a line at U+2028 and U+0085, and parts columns at U+00A0; the kernel does neither."""
    target = state.parent / "a\u2028b\u0085c\u00a0d e"
    target.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", target], check=True)
    try:
        assert mounts.is_mount_point(target)
        assert [mount.fstype for mount in mounts.mounts_below(target)] == ["tmpfs"]
        assert find_hierarchy().version in (1, 2), "who else reads the list does not stumble"
    finally:
        assert mounts.unmount(mounts.mounts_below(target)[0], 10.0)


@needs_root
def test_a_busy_file_system_on_a_loop_device_is_taken_down(state: Path) -> None:
    folder = state.parent / "with space"
    folder.mkdir()
    image, target = folder / "image", folder / "target"
    target.mkdir()
    with image.open("wb") as file:
        file.truncate(64 * MIB)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    device = subprocess.check_output(["losetup", "--find", "--show", image], text=True).strip()
    loop = mounts.Loop(device, str(image))
    assert loop in mounts.loops()
    subprocess.run(["mount", device, target], check=True)
    mount = mounts.mounts_of(device)[0]
    assert (mount.target, mount.fstype) == (target, "ext4")
    assert mounts.is_mount_point(target)
    assert mounts.mounts_below(folder) == [mount]

    held = os.open(target, os.O_RDONLY)
    try:
        assert not mounts.unmount(mount, 10.0), "it is in use"
        assert mounts.unmount_at_once(mount)
    finally:
        os.close(held)
    assert mounts.mounts_below(folder) == []
    assert mounts.detach_loop(loop)
    assert mounts.detach_loop(loop), "what is detached is done"
    assert loop not in mounts.loops()


@needs_root
def test_a_tool_is_ended_only_while_the_device_has_the_volumes_file(state: Path) -> None:
    """The kernel gives a device that it let go of to the next file, which may be another command's that mounts it now."""
    image, tool = state.parent / "image", state.parent / "mount"
    image.write_bytes(bytes(MIB))
    shutil.copy("/bin/sleep", tool)
    device = subprocess.check_output(["losetup", "--find", "--show", image], text=True).strip()
    try:
        with Path(device).open("rb") as held, subprocess.Popen([tool, "60"], stdin=held) as holder:
            expect(lambda: "mount" in {holder.name for holder in mounts.holders(device, None)}, "it holds the device")
            assert end_tools(mounts.Loop(device, "/gone/volume")) == []
            assert holder.poll() is None
            assert end_tools(mounts.Loop(device, str(image))) == [f"ended mount (process {holder.pid})"]
            assert holder.wait(10) == -9
    finally:
        assert mounts.detach_loop(mounts.Loop(device, str(image)))


def test_a_device_that_another_is_built_on_names_it(tmp_path: Path) -> None:
    """Device-mapper and RAID hold a device without a process that could be named or ended."""
    holders = tmp_path / "loop7" / "holders"
    (holders / "dm-0" / "dm").mkdir(parents=True)
    (holders / "dm-0" / "dm" / "name").write_text("over\n")
    (holders / "md0").mkdir()
    assert mounts.built_on("/dev/loop7", tmp_path) == ["/dev/mapper/over", "/dev/md0"]
    assert mounts.built_on("/dev/loop8", tmp_path) == []


def test_how_to_free_a_device_names_processes_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    process = identity(os.getpid())
    assert process is not None
    monkeypatch.setattr(
        mounts, "holders", lambda device, _: [mounts.Holder(process, "dd")] if device == "/dev/a" else []
    )
    monkeypatch.setattr(mounts, "built_on", lambda device: ["/dev/mapper/over"] if device != "/dev/c" else [])
    ended = f"end dd (process {os.getpid()})"
    removed = "remove /dev/mapper/over (`dmsetup remove`, `mdadm --stop`)"
    assert mounts.how_to_free(["/dev/a"]) == f"{ended} and {removed}"
    assert mounts.how_to_free(["/dev/b"]) == removed
    assert mounts.how_to_free(["/dev/c"]) == ""
