"""Whether a server's processes run on this host, proven rather than guessed.

A host name proves nothing: ``localhost`` may be a tunnel, and a container's server is here under another number. The
session's process is the one that calls itself postgres, has the number that the server gives it (in its own process
namespace), and is as old as the session.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..machine.mounts import kernel_lines

if TYPE_CHECKING:
    import psycopg

_NAMES = ("postgres", "postmaster", "edb-postgres")
_AGE_TOLERANCE_S = 0.5
"""The kernel counts a start in ticks of 10 ms; the rest is the way of the answer on a busy machine."""
SESSION = (
    "SELECT pg_catalog.pg_backend_pid(),"
    " extract(epoch FROM pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) backend_start)::pg_catalog.float8"
    " FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())"
)
"""The session's process and its age in seconds, as the server says them: for :func:`process_of`."""


def local_backend(connection: psycopg.Connection[tuple[Any, ...]]) -> int | None:
    """Process id, here, of the process that serves a connection; None when it is not on this host, or hidden."""
    return process_of(connection.execute(SESSION).fetchone())


def process_of(answer: tuple[Any, ...] | None) -> int | None:
    """Process id, here, of the process that a server's answer to :data:`SESSION` is about; None when there is none here."""
    if answer is None or answer[1] is None:
        return None
    server_pid, age_s = int(answer[0]), float(answer[1])
    for pid in _candidates(server_pid):
        found_s = _age_s(pid)
        if found_s is not None and abs(found_s - age_s) <= _AGE_TOLERANCE_S:
            return pid
    return None


def parent(pid: int) -> int | None:
    """The process that started ``pid``; None when there is no such process."""
    texts = _status(pid).get("PPid")
    return int(texts[0]) if texts else None


def cpu_time_ns(pid: int | None) -> int | None:
    """What a process with one thread has used; None when it is gone or the kernel does not count."""
    if pid is None:
        return None
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def in_container(pid: int) -> bool:
    """Whether a process has process ids, and so as a rule mounts, of its own."""
    return len(_status(pid).get("NSpid", [])) > 1


def memory_group(server: int) -> Path | None:
    """The memory control group of a server, where it has one of its own: all its members are the server's."""
    for line in _lines(Path(f"/proc/{server}/cgroup")):
        _, controllers, path = line.split(":", 2)
        if path != "/" and controllers in ("", "memory"):
            for group in _groups(controllers, path):
                if (group / "memory.stat").is_file() and _is_alone(server, group):
                    return group
    return None


def _groups(controller: str, path: str) -> Iterator[Path]:
    """Where a group of version 1's controller, or of version 2 (no name), is mounted."""
    for line in _lines(Path("/proc/self/mountinfo")):
        left, _, right = line.partition(" - ")
        root, target = left.split(" ")[3:5]
        kind, _, options = right.split(" ", 2)
        if (kind == "cgroup2" and not controller) or (kind == "cgroup" and controller in options.split(",")):
            yield Path(target, path.removeprefix(root).lstrip("/"))


def _is_alone(server: int, group: Path) -> bool:
    members = {int(pid) for folder, _, _ in os.walk(group) for pid in _lines(Path(folder, "cgroup.procs"))}
    # One that has no parent any more ended while we looked.
    return server in members and all(pid == server or parent(pid) in (server, None) for pid in members)


def _lines(path: Path) -> list[str]:
    try:
        return kernel_lines(path)
    except OSError:
        return []


def _candidates(server_pid: int) -> Iterator[int]:
    """Processes that the server may mean by that number: as a rule the one that has it here too."""
    others = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    for pid in (server_pid, *others):
        if _name(pid) in _NAMES and _status(pid).get("NSpid", ["0"])[-1] == str(server_pid):
            yield pid


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()  # cut at 15 bytes, also inside a letter
    except OSError:
        return ""


def _status(pid: int) -> dict[str, list[str]]:
    lines = _lines(Path(f"/proc/{pid}/status"))
    return {name: values.split() for name, _, values in (line.partition(":") for line in lines)}


def _age_s(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        begun_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
    return time.clock_gettime(time.CLOCK_BOOTTIME) - begun_s
