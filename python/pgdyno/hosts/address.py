"""Where a scheduler or a worker listens: always named, and always behind TLS."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from ..base.errors import InputError

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
