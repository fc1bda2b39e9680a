"""Mounts and loop devices are seen as the kernel has them, and taken down also when they are in use."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from pgdyno.host import mounts
from pgdyno.host.cgroup import find_hierarchy

from .needs import needs_root

if TYPE_CHECKING:
    from pathlib import Path

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
