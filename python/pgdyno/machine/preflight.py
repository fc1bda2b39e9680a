"""Refusals before anything is changed: each names what is missing and what to do about it."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

from ..base import engine, installation
from ..base.errors import HostError, InputError
from . import mounts
from .memory import memory_available_bytes

FUSE_DEVICE = Path("/dev/fuse")
LOOP_CONTROL = Path("/dev/loop-control")
_CAP_SYS_RESOURCE = 24
_PACKAGES = {"iostat": "sysstat", "mkfs.ext4": "e2fsprogs", "mkfs.xfs": "xfsprogs", "mount": "mount", "umount": "mount"}
"""Which package brings a program, as Debian calls it; the others are in util-linux."""

_PORT_KEEPERS: list[socket.socket] = []
"""Sockets of :func:`free_port`; they end with the process."""


def require_root(what: str) -> None:
    """``what`` (a gerund: "mounting a volume") needs root."""
    if os.geteuid() != 0:
        raise HostError(f"{what} needs root, and this is user {os.geteuid()}", remedy=installation.how_to_run_as_root())


def require_fuse(device: Path = FUSE_DEVICE) -> None:
    """The kernel's FUSE device can be opened."""
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        raise HostError(
            f"{device} is missing, and an emulated volume is served through it",
            remedy="run `modprobe fuse`; in a container pass `--device /dev/fuse --cap-add SYS_ADMIN`",
        ) from None
    except OSError as error:
        raise HostError(
            f"{device} cannot be opened: {error.strerror}",
            remedy="run as root; in a container pass `--device /dev/fuse --cap-add SYS_ADMIN`",
        ) from None


def require_mounts() -> None:
    """The kernel lets this process mount a FUSE file system: tried in a private mount namespace."""
    engine.run_json(["volume", "check-host"])


def require_loop() -> None:
    """Loop devices can be made."""
    try:
        os.close(os.open(LOOP_CONTROL, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise HostError(
            f"{LOOP_CONTROL} {'is missing' if missing else f'cannot be opened: {error.strerror}'}, and an emulated volume"
            " is a loop device",
            remedy="run `modprobe loop`; in a container pass `--privileged`",
        ) from None


def require_programs(*names: str) -> None:
    """Programs of the system are on the path."""
    if missing := missing_programs(*names):
        raise HostError(
            f"this machine has no {', '.join(missing)}",
            remedy="install the packages that bring them with the system's package manager:"
            f" {', '.join(sorted({_PACKAGES.get(name, 'util-linux') for name in missing}))}",
        )


def missing_programs(*names: str) -> list[str]:
    """Those of the programs that are not on the path."""
    return [name for name in names if shutil.which(name) is None]


def may_exceed_resources() -> bool:
    """Whether this process has CAP_SYS_RESOURCE, without which the kernel makes no mounted ext4 larger (``ext4_resize_begin``)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
    effective = int(next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1], 16)
    return bool(effective >> _CAP_SYS_RESOURCE & 1)


def require_mount_point(path: Path) -> None:
    """``path`` is absent, or an empty directory on which nothing is mounted."""
    if mounts.is_mount_point(path):
        raise InputError(
            f"something is mounted on {path} already", remedy="choose another directory, or unmount it first"
        )
    try:
        with os.scandir(path) as scandir:
            first = next(scandir, None)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise InputError(f"{path} is not a directory", remedy="name an empty or a new directory") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", remedy="name another directory") from None
    if first is not None:
        raise InputError(
            f"the mount point {path} is not empty (it holds `{first.name}`), and a mount would hide what is in it",
            remedy="choose an empty or a new directory",
        )


def resolved(path: Path) -> Path:
    """``path`` without symbolic links and relative parts. :class:`InputError` when it cannot be followed."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise InputError(f"{path} cannot be followed: {error}", remedy="name another directory") from None


def missing_directories(path: Path) -> list[Path]:
    """``path`` and the directories above it that do not exist, the deepest first."""
    return [parent for parent in (path, *path.parents) if not os.path.lexists(parent)]


def make_mount_point(path: Path) -> None:
    """Make ``path`` with the directories above it. :class:`InputError` where that is impossible: /proc, a read-only disk."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        above = next((parent for parent in path.parents if parent.exists()), path)
        raise InputError(
            f"the mount point {path} cannot be created in {above}: {error.strerror}",
            remedy="name a directory on a file system that can be written, such as /mnt/NAME",
        ) from None


def require_space(path: Path, needed_bytes: int, what: str) -> None:
    """The file system of ``path`` (or of its first existing parent) has room for ``what``."""
    folder = path
    while not folder.exists():
        folder = folder.parent
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise HostError(
            f"{what} needs {needed_bytes >> 20:,} MiB in {path}, and {free_bytes >> 20:,} MiB are free there",
            remedy="free some space, or name another directory",
        )


def require_memory(needed_bytes: int, what: str) -> None:
    """The machine has that much memory to give now."""
    available = memory_available_bytes()
    if available < needed_bytes:
        raise HostError(
            f"{what} needs {needed_bytes >> 20:,} MiB of memory, and {available >> 20:,} MiB are available",
            remedy="end other programs, or use less memory",
        )


def require_free_port(port: int, host: str = "127.0.0.1") -> None:
    """Require that a TCP port is free."""
    if not 1024 <= port <= 65535:
        raise InputError(
            f"{port} is not a port for a server without privileges", remedy="choose one from 1024 to 65535"
        )
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As PostgreSQL does: a port in TIME_WAIT is free, a port that is listened on is not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            raise HostError(
                f"port {port} of {host} is taken by another program",
                remedy="choose another port, or omit the port: a local socket needs none",
            ) from None


def free_port(host: str = "127.0.0.1") -> int:
    """A TCP port that is free, and that the kernel gives to no other program that asks for any port while this process lives.

    A bound socket that does not listen keeps it: the kernel chooses other ports for port 0 and for outgoing connections, and a
    server that sets ``SO_REUSEADDR``, as PostgreSQL does, can still listen there.
    """
    keeper = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    keeper.bind((host, 0))
    _PORT_KEEPERS.append(keeper)
    return int(keeper.getsockname()[1])
