"""A power cut of mounted volumes: what their file systems have not written is lost, what the volumes have stays."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..base.errors import HostError
from .mounts import kernel_lines, mounts
from .program import failure
from .waiting import wait_until

_SHUTDOWN = 0x8004587D
"""``EXT4_IOC_SHUTDOWN`` of fs/ext4/ext4.h and ``XFS_IOC_GOINGDOWN`` of xfs_fs.h: _IOR('X', 125, __u32)."""
_WITHOUT_LOG_FLUSH = 2
"""The file system writes nothing more, not even its journal (``EXT4_GOING_FLAGS_NOLOGFLUSH``)."""
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class _MountFacts:
    """A file system as it was mounted."""

    device: str
    target: Path
    fstype: str
    options: str


def cut(volumes: Mapping[str, Path], end_users: Callable[[], None]) -> None:
    """Cut the power of file systems (device -> mount point) and mount them again, which replays their journals.

    All of them stop writing first, then ``end_users`` ends the processes that use them. What the kernel had in memory alone
    is gone; a device of its own for each content, as ``pgdyno crashtest`` has, is not needed for that. :class:`HostError` when a
    file system cannot be mounted again.
    """
    known = [_mounted(device, target) for device, target in volumes.items()]
    for facts in known:
        _shut_down(facts.target)
    end_users()
    for facts in known:
        if not wait_until(partial(_unmounted, facts.target), TIMEOUT_S):
            raise HostError(
                f"{facts.target} cannot be unmounted after the power cut",
                remedy=f"`fuser -vm {facts.target}` names what uses it",
            )
    for facts in known:
        # Buffers of the device outlive its last mount.
        text = failure("blockdev", "--flushbufs", facts.device)
        text = text or failure("mount", "-t", facts.fstype, "-o", facts.options, facts.device, facts.target)
        if text is not None:
            raise HostError(f"{facts.device} cannot be mounted after the power cut: {text}", remedy="read `dmesg`")


def _mounted(device: str, target: Path) -> _MountFacts:
    mount = next(mount for mount in mounts() if mount.target == target and mount.source == device)
    lines = kernel_lines(Path("/proc/self/mounts"))
    fields = next(line.split(" ") for line in reversed(lines) if line.startswith(f"{device} "))
    options = fields[3] + (",nouuid" if mount.fstype == "xfs" and "nouuid" not in fields[3] else "")
    return _MountFacts(device, target, mount.fstype, options)


def _shut_down(target: Path) -> None:
    folder = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(folder, _SHUTDOWN, struct.pack("I", _WITHOUT_LOG_FLUSH))
    except OSError as error:
        raise HostError(
            f"the file system on {target} cannot be stopped at an instant: {error.strerror}",
            remedy="run as root, on a kernel whose ext4 and XFS can be shut down (Linux 4.11 or later)",
        ) from error
    finally:
        os.close(folder)


def _unmounted(target: Path) -> bool:
    return failure("umount", target) is None
