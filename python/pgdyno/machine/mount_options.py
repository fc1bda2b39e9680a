"""Whether this kernel takes some mount options for a file system, asked before there is a volume to mount.

fsopen(2) and fsconfig(2) hand a file system its options one by one, and it refuses those that it does not know; nothing is mounted,
and closing the descriptor undoes it all. What only shows on a device (a feature that the volume was not formatted with) is
left to mount(8).
"""

from __future__ import annotations

import ctypes
import errno
import os

from ..base.errors import HostError, InputError
from .file_system import FileSystem

_FSOPEN, _FSCONFIG = 430, 431
"""Numbers of the system calls, the same on every architecture (Linux 5.2); not every libc has functions for them."""
_FSOPEN_CLOEXEC = 1
_SET_FLAG, _SET_STRING = 0, 1
_UNAVAILABLE = (errno.ENOSYS, errno.EPERM)
"""An older kernel, or one that a container's filter stands before: then mount(8) is the first to judge."""
_OF_EVERY_FILE_SYSTEM = frozenset(
    {
        *("async", "sync", "dirsync", "atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime"),
        *("strictatime", "nostrictatime", "lazytime", "nolazytime", "iversion", "noiversion", "mand", "nomand"),
        *("dev", "nodev", "exec", "noexec", "suid", "nosuid", "nosymfollow", "rw", "silent", "loud", "defaults"),
        *("auto", "noauto", "group", "nogroup", "owner", "user", "nouser", "users", "nofail", "_netdev"),
    }
)
"""Options that mount(8) itself understands, of its section "FILESYSTEM-INDEPENDENT MOUNT OPTIONS" (util-linux 2.40)."""
_MESSAGE_BYTES_MAX = 4096


def require_known_options(file_system: FileSystem, options: str) -> None:
    """This kernel knows each of ``options`` for the file system and takes its value; :class:`InputError` names one that it refuses.

    Nothing is said where the kernel cannot be asked. :class:`HostError` if it does not know the file system at all.
    """
    texts = [option for option in options.split(",") if option and option not in _OF_EVERY_FILE_SYSTEM]
    context = _call(_FSOPEN, file_system.encode(), _FSOPEN_CLOEXEC)
    if context < 0:
        if -context == errno.ENODEV:
            raise HostError(
                f"this kernel has no {file_system}", remedy="load its module, or choose another file system"
            )
        assert -context in _UNAVAILABLE, os.strerror(-context)
        return
    try:
        for option in texts:
            _require(context, file_system, option)
    finally:
        os.close(context)


def _require(context: int, file_system: FileSystem, option: str) -> None:
    key, equals, value = option.partition("=")
    given = (_SET_STRING, key.encode(), value.encode()) if equals else (_SET_FLAG, key.encode(), None)
    if _call(_FSCONFIG, context, *given, 0) >= 0:
        return
    raise InputError(
        f"the mount option `{option}` is refused: {_why(context) or f'{file_system} does not take it'}",
        remedy=f"see {file_system}(5) and mount(8) for the options of this kernel, or omit it",
    )


def _why(context: int) -> str:
    """The last thing that the kernel said about the context: ``ext4: Unknown parameter 'bogus'``."""
    try:
        decode = os.read(context, _MESSAGE_BYTES_MAX).decode(errors="replace")
    except OSError:  # nothing was said
        return ""
    return decode.partition(" ")[2].strip()


def _call(number: int, *arguments: bytes | int | None) -> int:
    """A system call; the negative error number where it fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    plain = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    answer = libc.syscall(ctypes.c_long(number), *plain)
    return int(answer) if answer >= 0 else -ctypes.get_errno()
