"""The records of machines, in the record of a run."""

from __future__ import annotations

import os
import platform

from ..base.errors import PgdynoError
from .record_base import Count, Record


class HostRecord(Record):
    """The machine that the run was made on."""

    cores: Count
    kernel: str
    memory_bytes: Count
    cpus_awake: bool | None = None
    """Whether idle CPUs polled for work during the run instead of sleeping; None in older records."""
    label: str | None = None
    """Its name, where the runs were spread over hosts; None where they were made on the machine that was asked, and in older records."""
    cpu: str | None = None
    """Model of its CPU; known together with its name, and empty where the kernel does not say it."""

    @classmethod
    def of_this_machine(cls, *, cpus_awake: bool = False) -> HostRecord:
        """What the kernel says; :class:`~pgdyno.base.errors.PgdynoError` where it does not say how much memory there is."""
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if memory_bytes <= 0:
            raise PgdynoError("this machine does not say how much memory it has", remedy="run on Linux")
        cores = len(os.sched_getaffinity(0))
        return cls(cores=cores, kernel=platform.release(), memory_bytes=memory_bytes, cpus_awake=cpus_awake)


class DriverHostRecord(Record):
    """The host of a driver, where that is not the one that recorded."""

    cores: Count
    """That the driver may use."""
    kernel: str
    memory_bytes: Count
    cpu: str
    """Model of its CPU; empty where the kernel does not say it."""
    rtt_ms: float | None = None
    """Shortest time to open a TCP connection to the server before the load: a round trip. None where that could not be measured."""
