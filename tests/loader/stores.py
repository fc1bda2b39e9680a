"""A store on this machine that does everything a store may do: plain HTTP with ranges, and as much of S3 as is asked here."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

MEET_S = 20.0
"""How long a request waits for the others that it is to meet."""


@dataclass
class Held:
    """A file that the store has."""

    content: bytes
    etag: str | None = '"first"'
    modified: str | None = "Sun, 22 Nov 2026 10:00:00 GMT"
    headers: dict[str, str] = field(default_factory=dict)
    """Sent with each answer."""
    parts: tuple[int, ...] = ()
    """What the store says of them."""
    ranges: bool = True
    """Whether it gives parts of it."""
    conditions: bool = True
    """Whether it looks at If-Match."""
    redirect: str | None = None
    faults: list[str] = field(default_factory=list)
    """What happens to the next GETs that ask for more than the beginning: ``drop`` half-way, ``stall``: nothing comes any
    more, ``whole`` instead of a part, ``short``: less than said, a status, or nothing."""
    meet: threading.Barrier | None = None
    """GETs answer when so many have come."""
    gate: threading.Event | None = None
    """GETs answer when it is set."""


@dataclass(frozen=True)
class Seen:
    """A request."""

    method: str
    path: str
    first: int | None
    """Of its range."""
    same: str | None
    """Its If-Match."""


@dataclass
class Store:
    """Where it is, what it has, what it was asked."""

    url: str = ""
    held: dict[str, Held] = field(default_factory=dict)
    """By path, as ``/bucket/key``."""
    seen: list[Seen] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)

    def gets(self, path: str) -> list[int | None]:
        """Where the ranges began that were asked for."""
        return [item.first for item in self.seen if (item.method, item.path) == ("GET", path)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    store: Store

    def handle_error(self, *_: object) -> None:
        """Nothing: whoever asked may go away at any time."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_HEAD(self) -> None:
        held = self._held()
        if held is not None:
            self._begin(held, 200, len(held.content))

    def do_GET(self) -> None:
        held = self._held()
        if held is None:
            return
        if urlsplit(self.path).query.startswith("attributes"):
            self._attributes(held)
            return
        total = len(held.content)
        text = self.headers.get("Range")
        first, last = map(int, text.removeprefix("bytes=").split("-")) if text and held.ranges else (0, total - 1)
        end = min(total, last + 1)
        fault = held.faults.pop(0) if held.faults and first else ""
        if held.meet is not None and first:
            held.meet.wait(MEET_S)
        if held.gate is not None and first:
            held.gate.wait(MEET_S)
        condition = self.headers.get("If-Match")
        if fault.isdigit():
            self._status(int(fault))
        elif held.conditions and condition not in (None, held.etag):
            self._status(412)
        elif first >= total:
            self._status(416, {"Content-Range": f"bytes */{total}"})
        elif fault == "whole" or text is None or not held.ranges:
            self._begin(held, 200, total)
            self.wfile.write(held.content)
        else:
            self._part(held, first, end, fault)

    def _part(self, held: Held, first: int, end: int, fault: str) -> None:
        total = len(held.content)
        number = end - first
        if fault == "short":
            end -= number // 2
        self._begin(held, 206, end - first, {"Content-Range": f"bytes {first}-{first + number - 1}/{total}"})
        if fault == "drop":
            self.wfile.write(held.content[first : first + number // 2])
            self.close_connection = True
        elif fault == "stall":
            self.wfile.flush()
            self.server.store.closed.wait(MEET_S)
            self.close_connection = True
        else:
            self.wfile.write(held.content[first:end])

    def _held(self) -> Held | None:
        path = unquote(urlsplit(self.path).path)
        text = self.headers.get("Range")
        first = int(text.removeprefix("bytes=").split("-")[0]) if text else None
        self.server.store.seen.append(Seen(self.command, path, first, self.headers.get("If-Match")))
        held = self.server.store.held.get(path)
        if held is None:
            self._status(404)
        elif held.redirect is not None:
            self._status(302, {"Location": held.redirect})
            return None
        return held

    def _attributes(self, held: Held) -> None:
        parts = "".join(
            f"<Part><PartNumber>{n}</PartNumber><Size>{s}</Size></Part>" for n, s in enumerate(held.parts, 1)
        )
        body = f"<R><ObjectParts><IsTruncated>false</IsTruncated>{parts}</ObjectParts></R>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _begin(self, held: Held, status: int, length: int, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        known = {"ETag": held.etag, "Last-Modified": held.modified, "Content-Length": str(length), **held.headers}
        for name, value in {**known, **(more or {})}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()

    def _status(self, status: int, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": "0", **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: what was asked is in the store."""


@contextlib.contextmanager
def store() -> Iterator[Store]:
    """An empty one, as long as the block."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.store = Store(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.store
    finally:
        server.store.closed.set()
        server.shutdown()
        server.server_close()
        thread.join()


def content(size: int, seed: int = 0) -> bytes:
    """Bytes of which no part is like another."""
    blocks = (hashlib.sha256(f"{seed} {number}".encode()).digest() for number in range(size // 32 + 1))
    return b"".join(blocks)[:size]
