"""Dask's packages of the extra ``pgdyno[hosts]``, and the addresses at which schedulers and workers listen."""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import logging
import re
from dataclasses import dataclass
from typing import Any

from ..base import installation
from ..base.errors import HostError, InputError

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


SCHEDULER_PORT = 8786

WORKER_PORT = 8788

_FORM = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:/\[\]]+))(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True)
class HostAddress:
    """A host and a port."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """As Dask writes it."""
        return f"tls://[{self.host}]:{self.port}" if ":" in self.host else f"tls://{self.host}:{self.port}"


def of_scheduler(text: str, what: str) -> HostAddress:
    """``tls://HOST:PORT``. :class:`InputError` for anything else: without TLS everything that connects could run programs."""
    scheme, separator, rest = text.partition("://")
    if not separator or scheme != "tls":
        why = f"{scheme}:// is not encrypted, and asks for no certificate" if separator else "it has no scheme"
        raise InputError(f"{what}: `{text}`: {why}", remedy="write it as tls://10.0.0.5:8786")
    return _parsed(rest, what, SCHEDULER_PORT)


def to_listen(text: str, default_port: int, what: str = "--listen") -> HostAddress:
    """``ADDRESS[:PORT]`` of one interface. :class:`InputError` for an address of all interfaces."""
    address = _parsed(text, what, default_port)
    try:
        everywhere = ipaddress.ip_address(address.host).is_unspecified
    except ValueError:
        everywhere = False
    if everywhere:
        raise InputError(
            f"{what}: {address.host} is every interface of this machine", remedy="name the address of one, as 10.0.0.5"
        )
    return address


def _parsed(text: str, what: str, default_port: int) -> HostAddress:
    match = _FORM.fullmatch(text.rstrip("/"))
    port = default_port if match is None or match["port"] is None else int(match["port"])
    if match is None or port > 65535:
        raise InputError(f"{what}: `{text}` is not an address", remedy="write it as 10.0.0.5:8786, or [fd00::5]:8786")
    return HostAddress(match["six"] or match["host"], port)
