"""What the kernel says of the machine's memory."""

from __future__ import annotations

from pathlib import Path

from ..base.errors import HostError
from . import cgroup

_MEMINFO = Path("/proc/meminfo")


def meminfo_bytes() -> dict[str, int]:
    """``/proc/meminfo`` by the kernel's names (``MemAvailable``, ``Dirty``, …), in bytes."""
    lines = (line.split() for line in _MEMINFO.read_text(encoding="ascii").splitlines())
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) == 3}


def memory_available_bytes() -> int:
    """What new programs can have without swapping, by the kernel's estimate; less where a container has less."""
    machine = meminfo_bytes().get("MemAvailable")
    if machine is None:
        raise HostError("/proc/meminfo does not say what memory is available", remedy="mount /proc")
    container = cgroup.memory_left_bytes()
    return machine if container is None else min(machine, container)
