"""Processes named so that a reused process id is never mistaken for them, and ended with a deadline."""

from __future__ import annotations

import functools
import os
import select
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENDING: tuple[tuple[signal.Signals, float], ...] = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 10.0))
"""How a process is asked to end: a signal and the seconds it gets, one after the other."""


@functools.cache
def boot_id() -> str:
    """The kernel's name for the time since the last boot: process ids and settings of another boot mean nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


@dataclass(frozen=True)
class ProcessIdentity:
    """The identity of a process, which is never reused: its id, when it began (clock ticks since boot), and in which boot."""

    pid: int
    start_ticks: int
    boot_id: str

    def alive(self) -> bool:
        """Whether this very process runs; a zombie does not."""
        if self.boot_id != boot_id():
            return False
        state_and_start = _state_and_start(self.pid)
        return state_and_start is not None and state_and_start[1] == self.start_ticks and state_and_start[0] not in "ZX"

    def ending(self) -> bool:
        """Whether its end has begun, or is over.

        A process that ends gives up its memory first, then its files and connections, and is gone last: those that it
        served notice before ``alive`` says so, by far on a busy machine (Linux, ``do_exit`` of kernel/exit.c).
        """
        try:
            given_up = not Path(f"/proc/{self.pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            given_up = True
        return given_up or not self.alive()

    def to_json(self) -> dict[str, Any]:
        """As a JSON object, for the journal."""
        return {"pid": self.pid, "start_ticks": self.start_ticks, "boot_id": self.boot_id}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ProcessIdentity:
        """What :meth:`to_json` wrote."""
        return cls(int(data["pid"]), int(data["start_ticks"]), str(data["boot_id"]))


def identity(pid: int | None = None) -> ProcessIdentity | None:
    """The identity of ``pid`` (of this process when ``None``); ``None`` when there is no such process."""
    pid = os.getpid() if pid is None else pid
    state_and_start = _state_and_start(pid)
    return None if state_and_start is None else ProcessIdentity(pid, state_and_start[1], boot_id())


def own_identity() -> ProcessIdentity:
    """The identity of this process."""
    process_identity = identity()
    assert process_identity is not None, "this process exists"
    return process_identity


def own_name(stem: str) -> str:
    """A name that ends in this process: two commands do not meet in it, and a control group that stays says whose it was."""
    return f"{stem}-{os.getpid()}"


def end(
    process: ProcessIdentity,
    ending: Sequence[tuple[signal.Signals, float]] = ENDING,
    *,
    between: Callable[[], None] | None = None,
) -> bool:
    """End a process by the signals of ``ending``; ``False`` when it still runs after the last one's time.

    ``between`` is called before the second signal: a process that waits for a disk in the kernel goes only when
    that disk is gone. A process of another boot, or one that has ended, is done already.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        for number, (sign, timeout_s) in enumerate(ending):
            if not process.alive():  # asked after the handle was opened, so the handle is that process
                return True
            if number == 1 and between is not None:
                between()
            try:
                signal.pidfd_send_signal(handle, sign)
            except ProcessLookupError:
                return True
            waiting = select.poll()
            waiting.register(handle, select.POLLIN)
            if waiting.poll(timeout_s * 1000):
                return True
        return not process.alive()
    finally:
        os.close(handle)


def end_all(processes: Iterable[ProcessIdentity]) -> list[ProcessIdentity]:
    """End several processes with SIGKILL at once and wait for all; those that still run are returned."""
    chosen = list(processes)
    for process in chosen:
        if process.alive():
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
    return [process for process in chosen if not end(process, ((signal.SIGKILL, 10.0),))]


def working_below(folder: Path) -> list[ProcessIdentity]:
    """Processes whose working directory is ``folder`` or lies in it (PostgreSQL's are in the data directory).

    Only the link in /proc is read, which asks the kernel's names and never the file system.
    """
    return matching(lambda pid: _link_is_below(f"/proc/{pid}/cwd", folder))


def writing_to(log: Path) -> list[ProcessIdentity]:
    """Processes whose standard output or error is the file ``log``."""
    return matching(lambda pid: any(read_link(f"/proc/{pid}/fd/{fd}") == str(log) for fd in (1, 2)))


def matching(wanted: Callable[[int], bool]) -> list[ProcessIdentity]:
    """Processes whose id is ``wanted``, without this one and those that have ended."""
    results = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid() and wanted(int(entry)):
            process = identity(int(entry))
            if process is not None and process.alive():
                results.append(process)
    return results


def read_link(path: str) -> str:
    """Where a link in /proc leads, without the kernel's mark of a file that was removed; empty when it cannot be read."""
    try:
        return os.readlink(path).removesuffix(" (deleted)")
    except OSError:
        return ""


def _link_is_below(path: str, folder: Path) -> bool:
    target = read_link(path)
    return target == str(folder) or target.startswith(f"{folder}/")


def _state_and_start(pid: int) -> tuple[str, int] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold anything, so the fields are counted from the last parenthesis.
    fields = text[text.rindex(")") + 2 :].split()
    state, threads, start_ticks = fields[0], int(fields[17]), int(fields[19])
    # Its first thread has ended, and others still hold its files: it is on the way, and not gone.
    return "R" if state == "Z" and threads > 1 else state, start_ticks
