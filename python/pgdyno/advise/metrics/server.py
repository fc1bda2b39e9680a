"""Serves the attached volumes' OpenMetrics text on loopback, for Prometheus or a pair of eyes.

Counters are read at each request, so nothing runs between two scrapes.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ...base.errors import HostError, InputError, PgdynoError
from ...machine.volume import AttachedVolume, find, list_volumes
from . import open_metrics
from .open_metrics import CONTENT_TYPE, VolumeScrape

DEFAULT_LISTEN = "127.0.0.1:9273"
PATH = "/metrics"
REQUEST_TIMEOUT_S = 10.0
"""A client that sends no request is disconnected after this time: a scrape of Prometheus ends after ten seconds, too."""
_ASKED_AT_ONCE = 8


class MetricsServer(ThreadingHTTPServer):
    """Answers ``GET`` and ``HEAD /metrics`` with what ``exposition`` gives."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], exposition: Callable[[], str]) -> None:
        self.exposition = exposition
        try:
            super().__init__(address, _Handler)
        except OSError as error:
            raise HostError(
                f"cannot listen on {address[0]}:{address[1]}: {error.strerror}",
                remedy="choose another port with --listen; port 0 takes any that is free",
            ) from error

    @property
    def url(self) -> str:
        """Where the text is."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}{PATH}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that disconnected before the response, as a scrape does when its time is over."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: MetricsServer
    timeout = REQUEST_TIMEOUT_S

    def do_GET(self) -> None:
        """The text, or where it is."""
        self._respond(with_body=True)

    def do_HEAD(self) -> None:
        """The headers of the same."""
        self._respond(with_body=False)

    def _respond(self, *, with_body: bool) -> None:
        if self.path.partition("?")[0] != PATH:
            answer = HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", f"ask for {PATH}\n"
        else:
            try:
                answer = HTTPStatus.OK, CONTENT_TYPE, self.server.exposition()
            except PgdynoError as error:
                answer = HTTPStatus.SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", f"{error.message}\n"
        self._answer(*answer, with_body=with_body)

    def _answer(self, status: HTTPStatus, kind: str, body: str, *, with_body: bool) -> None:
        content = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Log nothing: a line for each scrape is not useful."""


def parse_listen(listen: str) -> tuple[str, int]:
    """``127.0.0.1:9273`` as host and port. :class:`InputError` if it is not on loopback: there is no authentication."""
    host, _, port = listen.rpartition(":")
    try:
        address, number = ipaddress.IPv4Address("127.0.0.1" if host == "localhost" else host), int(port)
    except ValueError:
        raise InputError(f"`{listen}` is not an address to listen on", remedy=f"write {DEFAULT_LISTEN}") from None
    if not address.is_loopback or not 0 <= number <= 65535:
        raise InputError(
            f"metrics are served on loopback only, not on {listen}",
            remedy=f"listen on {DEFAULT_LISTEN}, and reach it from elsewhere through `ssh -L`",
        )
    return str(address), number


def exposition(names: Sequence[str], *, known: bool = False) -> str:
    """The text of the volumes of those names, or of all that are attached now."""
    return open_metrics.exposition(lines(names, known=known))


def lines(names: Sequence[str], *, known: bool = False) -> list[str]:
    """The same without its end mark. :class:`InputError` for an unknown name.

    Names that were ``known`` before may be of volumes that were detached since: those are down, and hide no other.
    """
    attached = {list_volume.name: list_volume for list_volume in list_volumes()}
    if not known:
        attached |= {name: find(name) for name in names if name not in attached}
    wanted = names or tuple(attached)
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as executor:
        results = list(executor.map(_read, [attached[name] for name in wanted if name in attached]))
    volumes = [*results, *(VolumeScrape(name, {}, None) for name in wanted if name not in attached)]
    return open_metrics.lines_of(open_metrics.FAMILIES, [({"volume": volume.name}, volume) for volume in volumes])


def _read(attached: AttachedVolume) -> VolumeScrape:
    """A volume that does not answer is one that is down: the others must not be missing for it."""
    try:
        return VolumeScrape(attached.name, attached.spec, attached.stats())
    except PgdynoError:
        return VolumeScrape(attached.name, attached.spec, None)
