"""The disk that is measured: a file on it that is invisible to other processes, or a block device whose content is given up.

The file has no name from the moment it exists: it is unlinked while it is open, and fio reaches it through /proc. So it
is gone with this process, however that ends.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...base.errors import HostError, InputError
from ...machine import mounts

SPARE_SHARE = 0.05
"""Share of a file system that stays free beside the file. A disk that is nearly full is slower than itself, and others need room."""
MIB = 1 << 20


@dataclass(frozen=True)
class FioTarget:
    """What fio is let loose on."""

    path: str
    """What fio opens."""
    shown: str
    """What the user wrote, absolute."""
    region_bytes: int
    """The part that is written and read."""
    disk_bytes: int
    """Size of the file system, or of the device: the twin's size."""
    device: str
    """The block device below, as ``/dev/vda``; or the file system's source if that is not a device."""
    file_system: str | None
    """Type of the file system; ``None`` for a bare device."""


@contextmanager
def opened(path: Path, region_bytes: int, *, overwrite: bool) -> Iterator[FioTarget]:
    """A target for the length of a ``with`` block. Refuses what is in use, what already exists, and too little space."""
    if _is_block_device(path):
        yield _device(path, region_bytes, overwrite=overwrite)
        return
    folder = _folder(path)
    _require_room(folder, region_bytes)
    descriptor = _nameless_file(folder)
    try:
        _allocate(descriptor, region_bytes, folder)
        device, kind = _file_system_of(folder)
        yield FioTarget(
            path=f"/proc/{os.getpid()}/fd/{descriptor}",
            shown=str(path.absolute()),
            region_bytes=region_bytes,
            disk_bytes=shutil.disk_usage(folder).total // MIB * MIB,
            device=device,
            file_system=kind,
        )
    finally:
        os.close(descriptor)


def _is_block_device(path: Path) -> bool:
    try:
        return stat.S_ISBLK(path.stat().st_mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(
            f"{path} cannot be looked at: {error.strerror}", remedy="name a directory of the disk"
        ) from None


def _folder(path: Path) -> Path:
    """The directory in which the file is made: ``path``, or the one of the new file that it names."""
    if path.is_dir():
        return path.resolve()
    if path.exists():
        raise InputError(
            f"{path} already exists, and fitting would overwrite it",
            remedy="name a directory on the disk, or a file that does not exist yet",
        )
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {path.parent}", remedy="name a directory on the disk")
    return path.parent.resolve()


def _nameless_file(folder: Path) -> int:
    try:
        descriptor, name = tempfile.mkstemp(prefix=".pgdyno-fit-", dir=folder)
    except OSError as error:
        raise HostError(f"no file can be made in {folder}: {error.strerror}", remedy="name another directory") from None
    Path(name).unlink()
    return descriptor


def _allocate(descriptor: int, region_bytes: int, folder: Path) -> None:
    try:
        os.posix_fallocate(descriptor, 0, region_bytes)
    except OSError as error:
        raise HostError(
            f"{folder} has no room for {region_bytes / MIB:,.0f} MiB: {error.strerror}",
            remedy="free some space, or choose a smaller --region",
        ) from None


def _require_room(folder: Path, region_bytes: int) -> None:
    usage = shutil.disk_usage(folder)
    needed = region_bytes + SPARE_SHARE * usage.total
    if usage.free < needed:
        raise HostError(
            f"fitting writes a file of {region_bytes / MIB:,.0f} MiB and leaves {SPARE_SHARE:.0%} of the disk free, and"
            f" {folder} has {usage.free / MIB:,.0f} MiB free of {usage.total / MIB:,.0f}",
            remedy="free some space, or choose a smaller --region",
        )


def _device(path: Path, region_bytes: int, *, overwrite: bool) -> FioTarget:
    if not overwrite:
        raise InputError(
            f"{path} is a block device, and fitting would overwrite what is on it",
            remedy="name a directory of its file system, or give its content up with --overwrite-device",
        )
    try:
        # Exclusively: the kernel refuses a device that is mounted, swapped to, or part of another one.
        descriptor = os.open(path, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        raise HostError(
            f"{path} cannot be had alone: {error.strerror}", remedy="unmount it, and run the command as root"
        ) from None
    try:
        size_bytes = os.lseek(descriptor, 0, os.SEEK_END) // MIB * MIB
    finally:
        os.close(descriptor)
    if size_bytes < region_bytes:
        raise HostError(
            f"{path} has {size_bytes / MIB:,.0f} MiB, and {region_bytes / MIB:,.0f} MiB were to be measured",
            remedy="choose a smaller --region",
        )
    real = str(path.resolve())
    return FioTarget(real, str(path.absolute()), region_bytes, size_bytes, real, None)


def _file_system_of(folder: Path) -> tuple[str, str | None]:
    """Source and type of the mount that holds ``folder``: the deepest, and of those at one place the last."""
    holding = [mount for mount in mounts.mounts() if mount.target == folder or mount.target in folder.parents]
    if not holding:
        return "unknown", None
    result = max(holding, key=lambda mount: (len(mount.target.parts), mount.mount_id))
    return result.source, result.fstype
