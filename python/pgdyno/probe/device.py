"""The block device beneath a directory of a server's, as far as this host shows it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ..machine.mounts import kernel_lines


@dataclass(frozen=True)
class BlockDevice:
    """A block device with the file system that the directory is on."""

    name: str
    """``nvme1n1``, ``dm-0``, ``sda2``: as in ``/sys/class/block``."""
    file_system: str
    mount_options: str


def device_below(path: Path, process: int | None = None) -> BlockDevice | str:
    """The device that a directory is on, or why it cannot be determined; ``process`` sees the directory as ``path`` does.

    ``path`` may go through ``/proc/PID/root`` or ``/proc/PID/cwd``, which lead into that process's own mounts.
    """
    try:
        number = path.stat().st_dev
    except OSError as error:
        return f"its directory cannot be looked at: {error.strerror or error}"
    major_minor = f"{os.major(number)}:{os.minor(number)}"
    mount = _mount(major_minor, process)
    if mount is None:
        return "its file system is mounted where this user cannot see it"
    file_system, source, options = mount
    node = Path(f"/sys/dev/block/{major_minor}")
    if not node.exists() and source.startswith("/dev/"):
        # btrfs and others give their files a number of their own.
        try:
            number = Path(source).stat().st_rdev
        except OSError as error:
            return f"its device {source} cannot be looked at: {error.strerror or error}"
        node = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not node.exists():
        return f"it is on {file_system}, which has no block device here"
    return BlockDevice(node.resolve().name, file_system, options)


def _mount(major_minor: str, process: int | None) -> tuple[str, str, str] | None:
    """Type, source and options of the file system with that number."""
    try:
        lines = kernel_lines(Path(f"/proc/{process or 'self'}/mountinfo"))
    except OSError:
        return None if process is None else _mount(major_minor, None)
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, (file_system, source, *super_options) = left.split(" "), right.split(" ")
        if fields[2] == major_minor:
            options = dict.fromkeys([*fields[5].split(","), *(super_options[0].split(",") if super_options else ())])
            return file_system, _unescaped(source), ",".join(options)
    return None


def _unescaped(text: str) -> str:
    """The kernel writes a space as ``\\040``."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
