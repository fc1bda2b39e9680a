"""The packages of the extra ``pgdyno[hosts]``: they are imported only where hosts are used."""

from __future__ import annotations

import asyncio
import importlib
import logging
from typing import Any

from ..base import installation
from ..base.errors import HostError

EXTRA = "hosts"
CONNECT_S = 10.0
"""A scheduler or a worker that gives no connection within this time is not there."""
ANSWER_S = 6.0
"""A seat is made, and an answer given, in a fifth of a second. With what follows, a run that cannot begin has ended within 10 s."""
_SETTINGS = {
    # What a worker does beside a driver disturbs what the driver measures.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.diagnostics.nvml": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    # A host that is lost should be missed soon, and not asked again.
    "distributed.comm.timeouts.connect": f"{CONNECT_S:g}s",
    "distributed.scheduler.worker-ttl": "30s",
    "distributed.scheduler.allowed-failures": 0,
}


def distributed() -> Any:
    """Dask's ``distributed``, with the settings of all who take part. :class:`HostError` where it is not installed."""
    module = _imported("distributed")
    importlib.import_module("dask.config").set(_SETTINGS)
    logging.getLogger("distributed").setLevel(logging.ERROR)
    return module


def cryptography() -> None:
    """Require the package that makes certificates."""
    _imported("cryptography")


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise HostError(
            f"several hosts need the Python package {name}, which is not installed",
            remedy=installation.how_to_add(EXTRA),
        ) from None


def reason(error: BaseException) -> str:
    """The first cause of what Dask raised, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, asyncio.CancelledError | TimeoutError):
        return "no answer in time"
    return " ".join(str(error).split()) or type(error).__name__
