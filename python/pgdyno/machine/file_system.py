"""The file system of a volume: which kinds there are, and which mount options a durable database can have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, get_args

from ..base.errors import InputError
from . import program

FileSystem = Literal["ext4", "xfs"]
"""What a volume can be formatted with."""
FILE_SYSTEMS: tuple[FileSystem, ...] = get_args(FileSystem)
"""The kinds; the first is the default."""
TOLD_OF_STRIPES: frozenset[FileSystem] = frozenset({"xfs"})
"""Those that get an array's stripes when they are made (crates/emulate/src/file_system.rs)."""

_OPTION = re.compile(r"[a-z0-9_]+(=[A-Za-z0-9_.:/-]+)?")
_REFUSED = {
    "nobarrier": "a commit would not wait until it is durable",
    "barrier=0": "a commit would not wait until it is durable",
    "norecovery": "a file system that was not unmounted would be read as it is",
    "noload": "a file system that was not unmounted would be read as it is",
    "ro": "PostgreSQL writes",
    "remount": "the volume is mounted for the first time",
    "bind": "the volume is mounted for the first time",
    "loop": "the volume is a device already",
}
"""Options that make the numbers those of something else, with the reason."""


COMMIT_S = 5
"""How often ext4 commits its journal by default (ext4(5), ``commit``)."""


def dilated_options(file_system: FileSystem, options: str, dilation: int) -> str:
    """``options`` with the file system's own timer slowed by this factor; a user's choice is slowed, too.

    XFS has its timer in the kernel's settings (:mod:`pgdyno.machine.dirty_limits`).
    """
    if dilation == 1 or file_system != "ext4":
        return options
    given = [option for option in options.split(",") if option]
    chosen = [option for option in given if not option.startswith("commit=")]
    commit = next((option for option in given if option.startswith("commit=")), f"commit={COMMIT_S}")
    seconds = commit.partition("=")[2]
    if not seconds.isdigit():
        return options  # mount(8) says what is wrong with it
    return ",".join([*chosen, f"commit={int(seconds) * dilation}"])


def require_mount_options(options: str) -> None:
    """``options`` are what ``mount -o`` takes, and none of them gives up durability. :class:`InputError` if not."""
    for option in filter(None, options.split(",")):
        if not _OPTION.fullmatch(option):
            raise InputError(f"`{option}` is not a mount option", remedy="write them as `noatime,commit=30`")
        if option in _REFUSED:
            raise InputError(f"the mount option {option} is refused: {_REFUSED[option]}", remedy="omit it")


def trim(mount: Path, timeout_s: float = program.TIMEOUT_S) -> None:
    """Give the blocks of removed files back to the volume: they are free when the file system's journal says so. :class:`HostError` as of :func:`program.run`."""
    program.run("sync", "--file-system", mount, timeout_s=timeout_s)
    program.run("fstrim", mount, timeout_s=timeout_s)
