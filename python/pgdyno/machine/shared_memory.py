"""Shared memory that a PostgreSQL server leaves behind when it is killed, found and removed.

A server that ends by itself removes its own. After SIGKILL its System V segment (an interlock of a few bytes) and
its files ``/dev/shm/PostgreSQL.*`` stay. The System V segment names its maker and one of the files, the control segment,
and that one lists the others. Only what belongs to a server that we started, and that no process has attached, is removed.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import struct
from collections.abc import Iterable
from pathlib import Path

from .process import ProcessIdentity

SHM = Path("/dev/shm")
_NAME = re.compile(r"/dev/shm/(PostgreSQL\.\d+)")
_IPC_RMID = 0
_SHM_RDONLY = 0o10000
_FAILED = ctypes.c_void_p(-1).value
_HEADER = struct.Struct("=iiqqI")
"""PostgreSQL's ``PGShmemHeader`` (storage/pg_shmem.h, the same from 12 to 18): magic, maker, two sizes, control segment."""
_MAGIC = 679834894


def posix_names(processes: Iterable[ProcessIdentity]) -> set[str]:
    """Names in /dev/shm of the PostgreSQL segments that these processes have mapped."""
    posix_names: set[str] = set()
    for process in processes:
        with contextlib.suppress(OSError):
            posix_names |= set(_NAME.findall(Path(f"/proc/{process.pid}/maps").read_text(errors="replace")))
    return posix_names


def remove(server_pid: int, names: Iterable[str]) -> list[str]:
    """Remove what the dead server ``server_pid`` left; returns what was removed."""
    libc = ctypes.CDLL(None)
    unused = _unused_segments(server_pid)
    recorded = {*names, *(name for segment in unused if (name := _control_segment(segment, server_pid)) is not None)}
    gone = [segment for segment in unused if libc.shmctl(segment, _IPC_RMID, None) == 0]
    done = [f"removed System V shared memory {segment}" for segment in gone]
    for name in sorted(recorded | _listed_in(recorded)):
        file = SHM / name
        if _NAME.fullmatch(str(file)) and file.exists() and not _mapped(file):
            file.unlink(missing_ok=True)
            done.append(f"removed {file}")
    return done


def _listed_in(names: set[str]) -> set[str]:
    """Names that the servers' control segments list, made after we looked.

    A control segment is an array that holds, among other words, the number of each segment. Instead of relying on its
    layout every word is taken for a number: one that is also the name of a file of the same owner is not a coincidence.
    """
    listed_in = set()
    for name in names:
        with contextlib.suppress(OSError):
            control = SHM / name
            content = control.read_bytes()
            numbers = set(memoryview(content[: len(content) // 4 * 4]).cast("I"))
            for other in SHM.glob("PostgreSQL.*"):
                number = other.name.removeprefix("PostgreSQL.")
                same_owner = other.stat().st_uid == control.stat().st_uid
                if number.isdigit() and int(number) in numbers and same_owner:
                    listed_in.add(other.name)
    return listed_in


def _unused_segments(server_pid: int) -> list[int]:
    """Ids of System V segments that ``server_pid`` made and no process has attached."""
    unused_segments = []
    for line in Path("/proc/sysvipc/shm").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        segment, creator, attached = int(fields[1]), int(fields[4]), int(fields[6])
        if creator == server_pid and attached == 0:
            unused_segments.append(segment)
    return unused_segments


def _control_segment(segment: int, server_pid: int) -> str | None:
    """The control segment that a server's System V segment names: where the next server would look, too.

    A server that was killed before it was ready left no other trace of it.
    """
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(segment, None, _SHM_RDONLY)
    if address in (None, _FAILED):
        return None
    try:
        magic, maker, total_bytes, _, control = _HEADER.unpack(ctypes.string_at(address, _HEADER.size))
    finally:
        libc.shmdt(ctypes.c_void_p(address))
    sound = magic == _MAGIC and maker == server_pid and total_bytes > 0 and control != 0
    return f"PostgreSQL.{control}" if sound else None


def _mapped(file: Path) -> bool:
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            if str(file) in maps.read_text(errors="replace"):
                return True
    return False
