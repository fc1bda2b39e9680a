"""Where a driver may be started that is not a process of this machine: what is asked of another host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from ..base.engine import EngineProcess
from ..results.record import DriverHostRecord


class RemoteHost(Protocol):
    """Another host."""

    def launch(self, document: Mapping[str, Any], log: Path, *, timeout_s: float) -> EngineProcess:
        """Start a driver there; it is not ready yet. Its standard error goes to ``log``, here."""

    def clock_ns(self) -> int:
        """What CLOCK_MONOTONIC shows there, for every program. :class:`~pgdyno.base.errors.HostError` where it does not answer."""

    def record(self, server: Mapping[str, Any]) -> DriverHostRecord:
        """What the host is, and how far it is from the server that the driver's document names."""
