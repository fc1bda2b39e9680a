"""Keeps idle CPUs polling for work instead of sleeping, while a run lasts.

On a virtual machine a sleeping CPU is woken by way of the hypervisor, which may take hundreds of microseconds: too late
for a volume's answer that is due, and for a statement between driver and server
(``docs/decision/0019-idle-cpus-poll.md``).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..base.errors import HostError

LATENCY = Path("/dev/cpu_dma_latency")
"""The kernel's limit on the time of a wake-up, as long as a process holds this open (Linux, "PM Quality Of Service Interface")."""
_AT_ONCE_US = struct.pack("i", 0)


def possible() -> bool:
    """Whether this process may ask for it."""
    return os.access(LATENCY, os.W_OK)


def decided(result: bool | None) -> bool:
    """What a run does that ``asked`` for it, asked for the opposite, or did not say: then it is done where possible."""
    return possible() if result is None else result


def require() -> None:
    """:class:`HostError` where it cannot be asked for."""
    if not possible():
        raise HostError(
            f"idle CPUs cannot be kept awake: {LATENCY} cannot be written",
            remedy=f"run as root, in a container with `--device {LATENCY}`; or without `world.cpus_awake = true`",
        )


@contextmanager
def kept_awake(*, wanted: bool) -> Iterator[None]:
    """For the length of a ``with`` block, where it is ``wanted``; it ends with the process, whatever ends that."""
    if not wanted:
        yield
        return
    require()
    with LATENCY.open("wb", buffering=0) as held:
        held.write(_AT_ONCE_US)
        yield
