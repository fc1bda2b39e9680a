"""Mounts and loop devices as the kernel lists them, and removing them without waiting indefinitely.

Nothing here looks *into* a mount: a FUSE server that hangs would hang the look too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import paths
from .process import ProcessIdentity, matching, read_link
from .waiting import wait_until

MNT_FORCE = 1
MNT_DETACH = 2
UMOUNT_NOFOLLOW = 8


@dataclass(frozen=True)
class Mount:
    """One line of /proc/self/mountinfo."""

    mount_id: int
    target: Path
    fstype: str
    source: str


@dataclass(frozen=True)
class Loop:
    """A loop device that is in use, and the file behind it."""

    device: str
    backing_file: str

    @property
    def attached(self) -> bool:
        """Whether the device still has this file behind it."""
        return self in loops()


def mounts() -> list[Mount]:
    """All mounts of this mount namespace, in the order they were made."""
    mounts = []
    for line in kernel_lines(Path("/proc/self/mountinfo")):
        left, right = line.split(" - ", 1)
        fields, (fstype, source, *_) = left.split(" "), right.split(" ")
        mounts.append(Mount(int(fields[0]), Path(_unescape(fields[4])), fstype, _unescape(source)))
    return mounts


def kernel_lines(file: Path) -> list[str]:
    """The lines of a file of the kernel's. In a mountinfo it escapes spaces, tabs and newlines of paths, and nothing else:
    other characters that Python takes for the end of a line, or for white space, belong to the path.
    """
    return [line for line in file.read_bytes().decode(errors="surrogateescape").split("\n") if line]


def loops() -> list[Loop]:
    """All loop devices in use."""
    loops = []
    for entry in sorted(Path("/sys/block").glob("loop*/loop/backing_file")):
        try:
            file = entry.read_bytes().decode(errors="surrogateescape").removesuffix("\n")
        except OSError:
            continue  # detached while we looked
        loops.append(Loop(f"/dev/{entry.parts[3]}", file.removesuffix(" (deleted)")))
    return loops


def mounts_of(device: str) -> list[Mount]:
    """Where a block device is mounted."""
    return [mount for mount in mounts() if mount.source == device]


def mounts_below(folder: Path) -> list[Mount]:
    """Mounts at or below ``folder``, the deepest first: the order to take them down."""
    results = [mount for mount in mounts() if paths.is_below(mount.target, folder)]
    return sorted(results, key=lambda mount: (len(mount.target.parts), mount.mount_id), reverse=True)


def is_mount_point(path: Path) -> bool:
    """Whether something is mounted exactly at ``path``."""
    return any(mount.target == path for mount in mounts())


@dataclass(frozen=True)
class Holder:
    """A process that keeps a device or a mount busy."""

    process: ProcessIdentity
    name: str


def holders(device: str, target: Path | None) -> list[Holder]:
    """Processes that have ``device`` open, or a file below ``target``, or work there.

    Only the links in /proc are read, which ask the kernel's names and never the file system.
    """

    def holds(pid: int) -> bool:
        links = [Path(f"/proc/{pid}/{name}") for name in ("cwd", "root", "exe")]
        with contextlib.suppress(OSError):
            links += Path(f"/proc/{pid}/fd").iterdir()
        named = {read_link(str(link)) for link in links}
        return device in named or (target is not None and any(paths.is_below(text, target) for text in named if text))

    holders = []
    for process in matching(holds):
        with contextlib.suppress(OSError):
            holders.append(Holder(process, Path(f"/proc/{process.pid}/comm").read_text(errors="replace").strip()))
    return holders


def built_on(device: str, block_devices: Path = Path("/sys/block")) -> list[str]:
    """The kernel's own devices that lie on ``device``, of device-mapper or RAID: they keep it busy without a process."""
    built_on = []
    for holder in sorted((block_devices / Path(device).name / "holders").glob("*")):
        name = holder / "dm" / "name"
        built_on.append(f"/dev/mapper/{name.read_text().strip()}" if name.is_file() else f"/dev/{holder.name}")
    return built_on


def how_to_free(devices: Sequence[str], target: Path | None = None) -> str:
    """What keeps devices or a mount busy and what to do about it, for a remedy: ``end dd (process 123)``; empty if unknown."""
    held = [holder for device in devices for holder in holders(device, target)]
    built = [above for device in devices for above in built_on(device)]
    ended = [f"end {', '.join(f'{holder.name} (process {holder.process.pid})' for holder in held)}"] if held else []
    removed = [f"remove {', '.join(built)} (`dmsetup remove`, `mdadm --stop`)"] if built else []
    return " and ".join(ended + removed)


def unmount(mount: Mount, timeout_s: float) -> bool:
    """Unmount in the ordinary way, which writes out what is dirty; ``False`` when busy or not done in time.

    It runs in a process of its own: the kernel may wait for a stuck disk, and such a wait cannot be interrupted.
    """
    command = ["umount", "--no-canonicalize", "--internal-only", str(mount.target)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return mount.mount_id not in {other.mount_id for other in mounts()}


def unmount_at_once(mount: Mount) -> bool:
    """Take a mount out of sight now, ending what waits for it (a FUSE connection is aborted); ``False`` on failure."""
    libc = ctypes.CDLL(None, use_errno=True)
    target = os.fsencode(mount.target)
    for flags in (MNT_FORCE, MNT_DETACH):
        libc.umount2(target, flags | UMOUNT_NOFOLLOW)
        if mount.mount_id not in {other.mount_id for other in mounts()}:
            return True
    return False


def abort_fuse(mount: Mount) -> None:
    """End every request that waits for a FUSE server with an error; the mount stays when it is in use."""
    ctypes.CDLL(None).umount2(os.fsencode(mount.target), MNT_FORCE | UMOUNT_NOFOLLOW)


def detach_loop(loop: Loop, timeout_s: float = 5.0) -> bool:
    """Take the file from a loop device; ``False`` when the device keeps it past ``timeout_s`` (someone has it open)."""
    if not loop.attached:
        return True
    process = subprocess.Popen(["losetup", "-d", loop.device], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return wait_until(lambda: not loop.attached, timeout_s)


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
