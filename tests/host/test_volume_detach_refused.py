"""A detach that is refused changes nothing: the mount, the limits and the faults are as they were, and who is in the way is named."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from pgdyno.base.errors import InputError
from pgdyno.machine import mounts, volume
from tests.support.commands import pgdyno
from tests.support.machine import own_mounts

pytestmark = pytest.mark.needs_fuse

SLOW = {"kind": {"latency": {"added_ns": 20_000_000}}}
BYSTANDER = "import sys; print('ready', flush=True); sys.stdin.read()"

MAPS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
device = os.open(sys.argv[1], os.O_RDONLY)
place = libc.mmap(None, 4096, 1, 1, device, 0)
assert place not in (None, ctypes.c_void_p(-1).value), ctypes.get_errno()
os.close(device)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def attached(state: Path) -> Iterator[volume.AttachedVolume]:
    with volume.attached("gp3:size=1GiB", mount=state.parent / "mount", name="v") as result:
        yield result


@contextmanager
def bystander(*prefix: str, cwd: Path | None = None, pass_fds: tuple[int, ...] = ()) -> Iterator[int]:
    """A process that does nothing until the block ends; its process id."""
    with process_of([*prefix, sys.executable, "-c", BYSTANDER], cwd, pass_fds) as pid:
        yield pid


@contextmanager
def process_of(command: list[str], cwd: Path | None = None, pass_fds: tuple[int, ...] = ()) -> Iterator[int]:
    """A process that says `ready`, and ends with its standard input; its process id."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd, pass_fds=pass_fds)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
    finally:
        process.communicate(timeout=30)


@contextmanager
def with_the_device_open(attached: volume.AttachedVolume) -> Iterator[int]:
    with Path(attached.block_device).open("rb") as device, bystander(pass_fds=(device.fileno(),)) as pid:
        device.close()
        yield pid


@contextmanager
def that_works_there(attached: volume.AttachedVolume) -> Iterator[int]:
    with bystander(cwd=attached.mount) as pid:
        yield pid


@contextmanager
def with_a_copy_of_the_mount(attached: volume.AttachedVolume) -> Iterator[int]:
    """As a container has it."""
    with bystander(*own_mounts("--propagation", "private", keep=attached.mount)) as pid:
        yield pid


@contextmanager
def that_is_mounted_twice(attached: volume.AttachedVolume) -> Iterator[int]:
    second = attached.state_dir.parent / "second"
    second.mkdir()
    subprocess.run(["mount", attached.block_device, second], check=True)
    try:
        yield 0
    finally:
        subprocess.run(["umount", second], check=True)


@contextmanager
def with_a_mount_inside(attached: volume.AttachedVolume) -> Iterator[int]:
    """Not one of the volume's: only the unmount itself finds it."""
    assert attached.mount is not None
    inside = attached.mount / "inside"
    inside.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", inside], check=True)
    try:
        yield 0
    finally:
        subprocess.run(["umount", inside], check=True)


Way = Callable[[volume.AttachedVolume], AbstractContextManager[int]]
SEEN_BEFORE: list[tuple[Way, str]] = [
    (with_the_device_open, "processes"),
    (that_works_there, "processes"),
    (with_a_copy_of_the_mount, "mounts"),
    (that_is_mounted_twice, "mounts"),
]


def assert_unchanged(attached: volume.AttachedVolume) -> None:
    """It is mounted, its content is its own, and its fault is in force."""
    assert attached.mount is not None
    assert mounts.is_mount_point(attached.mount)
    assert (attached.mount / "file").read_text() == "content"
    assert [fault["kind"] for fault in attached.stats()["faults"]] == ["latency", "latency"], "of reads and of writes"
    assert volume.states(attached.state_dir)["v"]["state"] == "serving"


@pytest.mark.parametrize(("way", "kind"), SEEN_BEFORE, ids=[way.__name__ for way, _ in SEEN_BEFORE])
def test_what_uses_a_volume_is_named_before_anything_is_changed(
    attached: volume.AttachedVolume, way: Way, kind: str
) -> None:
    assert attached.mount is not None
    (attached.mount / "file").write_text("content")
    attached.fail(SLOW)
    with way(attached) as pid:
        with pytest.raises(InputError) as caught:
            attached.detach()
        assert caught.value.code == "volume.detach.in_use"
        named = caught.value.data[kind]
        assert len(named) == 1
        if pid:
            assert named[0]["pid"] == pid
        assert_unchanged(attached)
    attached.heal()


def test_what_only_the_unmount_finds_changes_nothing_either(attached: volume.AttachedVolume) -> None:
    assert attached.mount is not None
    (attached.mount / "file").write_text("content")
    attached.fail(SLOW)
    with with_a_mount_inside(attached):
        with pytest.raises(InputError):
            attached.detach()
        assert_unchanged(attached)
    attached.heal()


def test_a_test_with_mounts_of_its_own_is_in_no_other_tests_way(attached: volume.AttachedVolume) -> None:
    with bystander(*own_mounts("--propagation", "private")) as pid:
        assert str(attached.mount) not in Path(f"/proc/{pid}/mountinfo").read_text()
        attached.detach()


def test_a_copy_that_the_kernel_takes_along_is_in_nobodys_way(state: Path) -> None:
    attached = volume.attach("null:size=64MiB", mount=state.parent / "mount", name="v")
    with bystander(*own_mounts("--propagation", "slave", keep=attached.mount)) as pid:
        seen = Path(f"/proc/{pid}/mountinfo")
        assert str(attached.mount) in seen.read_text()
        parents = [mount for mount in mounts.mounts() if mount.target == attached.mount]
        assert len(parents) == 1
        shared = subprocess.run(
            ["findmnt", "-no", "PROPAGATION", "-T", state.parent.parent], capture_output=True, text=True
        )
        if "shared" not in shared.stdout:
            with pytest.raises(InputError):
                attached.detach()
        else:
            attached.detach()
            assert str(attached.mount) not in seen.read_text()
    if attached.alive:
        attached.detach()


@pytest.mark.slow
def test_an_image_that_is_complete_is_said_to_be_though_the_device_stays(state: Path) -> None:
    """A program that has mapped the device and closed its descriptor is found by no list of descriptors."""
    attached = volume.attach("null:size=64MiB", mount=None, name="v")
    with Path(attached.block_device).open("r+b", buffering=0) as device:
        device.write(b"content")
        os.fsync(device.fileno())
    image = state.parent / "image"
    with process_of([sys.executable, "-c", MAPS, attached.block_device]):
        error = pgdyno("volume", "detach", "v", "--save-image", image, code=2).error
    assert error is not None
    assert error.code == "volume.detach.incomplete"
    assert error.data == {"image": str(image), "image_complete": True}
    attached.detach()
    with (
        volume.attached("null:size=64MiB", mount=None, image=image) as again,
        Path(again.block_device).open("rb") as device,
    ):
        assert device.read(7) == b"content"


def test_a_listed_volume_that_is_not_mounted_any_more_is_shown_so(attached: volume.AttachedVolume) -> None:
    subprocess.run(["umount", str(attached.mount)], check=True)
    listed = pgdyno("volume", "list")
    assert f"not mounted (was {attached.mount})" in " ".join(listed.out.split())
