"""The kernel's limits of dirty memory, set to an instance's size for the length of a run, and put back.

A memory control group alone is not an instance's memory: the kernel starts to write dirty pages at shares of the
*host's* memory (10 and 20 %), and in a group of 512 MiB 468 MiB stayed dirty here. The limits are machine-wide, so
one run at a time may change them (an experiment keeps the right between its runs), and the old values stand in a :class:`~pgdyno.machine.machine_record.MachineRecord`.

In a dilated world the times after which the kernel writes back by itself are made longer with everything else.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..base.errors import HostError
from . import paths
from .machine_record import MachineRecord
from .unwritten import lower_limit

DIRTY_SHARE = 0.20
"""Share of the instance's memory above which writers wait (the kernel's default is 20 % of the host's)."""
BACKGROUND_SHARE = 0.10
"""Share of the instance's memory above which writing starts (the kernel's default is 10 % of the host's)."""

LOOK_S = 1.0
"""Who only looks whether a killed run left something holds the lock for a moment; a run must not be refused for that."""

_PROC = Path("/proc/sys/vm")
_PAIRS = (("dirty_bytes", "dirty_ratio"), ("dirty_background_bytes", "dirty_background_ratio"))
_NAMES = tuple(name for pair in _PAIRS for name in pair)
_TIMERS = {
    "vm.dirty_writeback_centisecs": _PROC / "dirty_writeback_centisecs",
    "vm.dirty_expire_centisecs": _PROC / "dirty_expire_centisecs",
    "fs.xfs.xfssyncd_centisecs": Path("/proc/sys/fs/xfs/xfssyncd_centisecs"),
}
"""When the kernel looks for dirty pages, how old they have to be, and when XFS pushes its log; the last is there while
XFS is loaded."""
_ONE_PAGE = 4096


class DirtyLimits:
    """Holds the machine's dirty limits between :meth:`acquire` and :meth:`release`.

    With version 2 of control groups the kernel applies its two *shares* to each group by itself, so the shares are
    set; with version 1 only the host's figures count, so bytes are set.
    """

    def __init__(
        self, memory_bytes: int, cgroup_version: int, dilation: int = 1, *, kept: MachineRecord | None = None
    ) -> None:
        self.wanted = wanted_limits(memory_bytes, cgroup_version)
        self.old: dict[str, int] = {}
        self.timers: dict[str, int] = {}
        """The kernel's own times in hundredths of a second, as they were; empty where they are left alone."""
        self._dilation = dilation
        self._record = kept or record()
        self._handle: int | None = None
        self._is_reserved = False
        """Whether the lock stays with the experiment (:func:`reserved`)."""

    def acquire(self) -> None:
        """Take the lock, write the old values down, set the new ones.

        It waits while a backlog above the new limits is written (:mod:`pgdyno.machine.unwritten`).
        :class:`HostError` when another run holds it, when the kernel's settings cannot be written, or a backlog stays.
        """
        self._handle = _reserved.get(self._record.path)
        self._is_reserved = self._handle is not None
        if self._handle is None:
            self._handle = _taken(self._record)
        try:
            self._change(self._handle)
        except BaseException as error:
            # Of what cannot be put back either the record stays, for `pgdyno doctor --clean`.
            with contextlib.suppress(OSError):
                self.release()
            if not isinstance(error, OSError):
                raise
            raise HostError(
                f"the kernel's dirty limits cannot be set: {error}",
                remedy="run it on the host itself, or in a privileged container: /proc/sys must be writable",
            ) from None

    def _change(self, handle: int) -> None:
        """Write the old values down, set the new ones."""
        self._record.put_back(handle)
        self.old = current_limits()
        self.timers = current_timers() if self._dilation > 1 else {}
        self._record.write(handle, old=self.old, timers=self.timers)
        # The background limit is the first: what is above the other then begins to be written.
        for name, value in sorted(self.wanted.items()):
            if name == "dirty_bytes":
                lower_limit(value, partial(_set, name))
            else:
                _set(name, value)
        for name, value in self.timers.items():
            _TIMERS[name].write_text(str(value * self._dilation))

    def release(self) -> None:
        """Put the old values back and give the lock up. Releasing twice is allowed."""
        if self._handle is None:
            return
        try:
            self._record.put_back(self._handle)
        finally:
            if not self._is_reserved:
                os.close(self._handle)
            self._handle = None

    @property
    def facts(self) -> dict[str, dict[str, int]]:
        """``{"vm.dirty_bytes": {"old": 0, "new": ...}, ...}``."""
        limits = {f"vm.{name}": {"old": self.old.get(name, 0), "new": new} for name, new in self.wanted.items()}
        return limits | {name: {"old": old, "new": old * self._dilation} for name, old in self.timers.items()}


@contextlib.contextmanager
def reserved(kept: MachineRecord | None = None) -> Iterator[None]:
    """Keep other commands from setting the limits, for an experiment: otherwise another could between its runs.

    :class:`HostError` when another command holds them; nothing is changed here.
    """
    held = kept or record()
    handle = _taken(held)
    _reserved[held.path] = handle
    try:
        yield
    finally:
        del _reserved[held.path]
        os.close(handle)


_reserved: dict[Path, int] = {}
"""Records whose locks this process holds for longer than a run, as descriptors."""


def _taken(kept: MachineRecord) -> int:
    """The lock on the limits, as a descriptor."""
    handle = kept.take(LOOK_S)
    if handle is not None:
        return handle
    pid = _holder(kept)
    raise HostError(
        f"another command{'' if pid is None else f' (process {pid})'} has the kernel's dirty limits, which exist once",
        remedy="wait until it ends; two runs on one machine would disturb each other's numbers anyway",
        code="host.dirty_limits.taken",
        data={} if pid is None else {"pid": pid},
    )


def wanted_limits(memory_bytes: int, cgroup_version: int) -> dict[str, int]:
    """Which settings get which values for an instance of ``memory_bytes``."""
    if cgroup_version == 2:
        return {"dirty_ratio": round(DIRTY_SHARE * 100), "dirty_background_ratio": round(BACKGROUND_SHARE * 100)}
    return {
        "dirty_bytes": int(memory_bytes * DIRTY_SHARE) // _ONE_PAGE * _ONE_PAGE,
        "dirty_background_bytes": int(memory_bytes * BACKGROUND_SHARE) // _ONE_PAGE * _ONE_PAGE,
    }


def current_limits() -> dict[str, int]:
    """The four settings as they are; of bytes and ratio one is 0."""
    return {name: int((_PROC / name).read_text()) for name in _NAMES}


def current_timers() -> dict[str, int]:
    """The kernel's times of writing back, in hundredths of a second."""
    return {name: int(path.read_text()) for name, path in _TIMERS.items() if path.exists()}


def record(path: Path | None = None) -> MachineRecord:
    """Where the machine's own values stand while a run has changed them."""
    return MachineRecord(
        path or paths.MACHINE_DIR / "dirty_limits.json", _restore, "the kernel's dirty limits of a killed run"
    )


def _restore(written: dict[str, Any]) -> list[str]:
    done = []
    old, now = written["old"], current_limits()
    for in_bytes, ratio in _PAIRS:
        # What could not be set cannot be written back either, and need not be.
        if all(now[each] == old[each] for each in (in_bytes, ratio)):
            continue
        # Writing one of a pair zeroes the other, so only the one that was in force is written.
        name = in_bytes if old[in_bytes] else ratio
        _set(name, old[name])
        done.append(f"set vm.{name} back to {old[name]}")
    for name, value in written.get("timers", {}).items():
        if _TIMERS[name].exists() and int(_TIMERS[name].read_text()) != value:
            _TIMERS[name].write_text(str(value))
            done.append(f"set {name} back to {value}")
    return done


def _set(name: str, value: int) -> None:
    (_PROC / name).write_text(str(value))


def _holder(kept: MachineRecord) -> int | None:
    """The process that holds the lock: by its record, or between its runs by the kernel's list of locks."""
    if (pid := kept.written().get("pid")) is not None:
        return int(pid)
    try:
        inode = str(kept.path.stat().st_ino)
        locks = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
    except OSError:
        return None
    pids = (int(lock[4]) for lock in locks if lock[1] == "FLOCK" and lock[5].rpartition(":")[2] == inode)
    return next((pid for pid in pids if pid > 0), None)
