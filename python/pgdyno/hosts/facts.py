"""What a host is: what must be equal on all, and what a report should say of each."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from .. import __version__
from ..base import engine as _engine
from ..base.errors import PgdynoError
from ..machine.doctor import steal_shares
from ..server.binaries import embedded_package, version_of


@dataclass(frozen=True)
class HostFacts:
    """A host as it sees itself."""

    pgdyno: str
    """Version of the package."""
    engine: str
    """Build hash of the engine, or why there is none."""
    postgres: str
    """Version of the embedded PostgreSQL, or why there is none."""
    cores: int
    """That the process may use."""
    kernel: str
    memory_bytes: int
    cpu: str
    """Model of the CPU; empty where the kernel does not say it."""
    steal_share: float
    """Share of the CPU's time that other machines got, since boot or now, whichever is more."""


def of_this_host() -> HostFacts:
    """Look at this machine; takes a fifth of a second."""
    return HostFacts(
        pgdyno=__version__,
        engine=_engine_hash(),
        postgres=_postgres_version(),
        cores=len(os.sched_getaffinity(0)),
        kernel=platform.release(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        cpu=_cpu_model(),
        steal_share=max(steal_shares()),
    )


def _engine_hash() -> str:
    try:
        _engine.checked()
        return _engine.facts().build_hash
    except PgdynoError as error:
        return error.message


def _postgres_version() -> str:
    try:
        return version_of(embedded_package() / "pginstall" / "bin" / "postgres")
    except PgdynoError as error:
        return error.message


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
