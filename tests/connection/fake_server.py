"""A server that sends what a test wants, over TLS or in clear, and records what its clients give away."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import queue
import socket
import ssl
import struct
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SECRET = "S3cret-Pass"
ITERATIONS = 2
WAIT_S = 20.0
"""How long the server waits for a client that neither answers nor hangs up."""
PLUS, PLAIN = b"SCRAM-SHA-256-PLUS", b"SCRAM-SHA-256"
_SSL_REQUEST = 80_877_103
_SALT = b"0123456789abcdef"


def message(tag: bytes, body: bytes = b"") -> bytes:
    """One message of the server."""
    return tag + struct.pack("!I", len(body) + 4) + body


def request(kind: int, body: bytes = b"") -> bytes:
    """A message of authentication."""
    return message(b"R", struct.pack("!I", kind) + body)


def _mechanisms(*names: bytes) -> bytes:
    return request(10, b"".join(name + b"\0" for name in (*names, b"")))


def _refusal(sqlstate: bytes) -> bytes:
    return b"SFATAL\0VFATAL\0C" + sqlstate + b"\0Mno\0\0"


FIXED = {
    "R0": request(0),
    "R3": request(3),
    "R5": request(5, b"salt"),
    "R5 without salt": request(5),
    "R7": request(7),
    "R8": request(8, b"token"),
    "R9": request(9),
    "R99": request(99),
    "R without kind": message(b"R", b"\0"),
    "R10 plain": _mechanisms(PLAIN),
    "R10 plus": _mechanisms(PLUS),
    "R10 both": _mechanisms(PLUS, PLAIN),
    "R10 unknown": _mechanisms(b"SCRAM-SHA-512", b"OTHER"),
    "R10 none": _mechanisms(),
    "R10 torn": request(10, PLAIN),
    "E": message(b"E", _refusal(b"28000")),
    "N": message(b"N", b"SNOTICE\0VNOTICE\0C00000\0Mhello\0\0"),
    "v older": message(b"v", struct.pack("!II", 3 << 16, 0)),
    "v option": message(b"v", struct.pack("!II", 3 << 16, 1) + b"_pq_.x\0"),
    "v newer": message(b"v", struct.pack("!II", (3 << 16) + 2, 0)),
    "S": message(b"S", b"server_version\x0018.1\0"),
    "K": message(b"K", struct.pack("!II", 7, 42)),
    "A": message(b"A", struct.pack("!I", 7) + b"channel\0payload\0"),
    "Z": message(b"Z", b"I"),
    "T": message(b"T", b"\0\0"),
    "G": message(b"G", b"\0\0\0"),
    "C": message(b"C", b"SELECT 1\0"),
    "garbage": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "R huge": b"R" + struct.pack("!II", 100_000, 3),
    "S huge": b"S" + struct.pack("!I", 200_000_000) + b"a\0",
}
"""Messages that need nothing of what the client sent."""
COMPUTED = ("R11", "R11 nonce", "R11 zero", "R11 garbage", "R12", "R12 wrong", "R12 error", "R12 garbage")
"""Messages of SCRAM."""
ANSWERED = ("R3", "R5", "R10", "R11")
"""After these a client sends something, or hangs up."""


@dataclass
class Record:
    """What one connection was like."""

    sent: list[str] = field(default_factory=list)
    """What the client gave away: `password`, `md5`, `proof`."""
    steps: int = 0
    """How many of the script's messages were sent."""
    answers: list[bytes] = field(default_factory=list)
    """Messages of the client behind its startup message."""
    hung_up: bool = False
    """Whether it was the client that ended it."""

    @property
    def asked(self) -> bool:
        """Whether the client sent a statement."""
        return any(answer.startswith((b"Q", b"P")) for answer in self.answers)


class _HungUp(Exception):
    """The client is gone."""


@dataclass
class Script:
    """What a server does with a connection."""

    steps: Sequence[str]
    tls_answer: bytes = b"S"
    """To a request for TLS. What is behind the first byte is sent with it."""
    silent_at: Literal["startup", "handshake"] | None = None
    """From here on the server sends nothing, and waits."""
    every_s: float | None = None
    """Send one byte at a time, so far apart, and never come to an end."""
    iterations: int = ITERATIONS


class FakeServer:
    """Serves one connection after another by :attr:`script`."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self.script = Script(())
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._records: queue.Queue[Record] = queue.Queue()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def record(self) -> Record:
        """The next connection that has ended, in the order in which they came."""
        return self._records.get(timeout=2 * WAIT_S)

    def close(self) -> None:
        """End the thread."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(2 * WAIT_S)
        assert not self._thread.is_alive()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            conversation = _Conversation(peer, self.script, self._context)
            with contextlib.suppress(OSError):
                try:
                    conversation.hold()
                except (_HungUp, ConnectionError, ssl.SSLError):
                    conversation.record.hung_up = True
            conversation.close()
            self._records.put(conversation.record)


class _Conversation:
    def __init__(self, peer: socket.socket, script: Script, context: ssl.SSLContext) -> None:
        peer.settimeout(WAIT_S)
        self._peer, self._script, self._context = peer, script, context
        self.record = Record()
        self._first, self._server_first, self._final = b"n=,r=none", b"", b"c=biws,r=none,p=none"

    def hold(self) -> None:
        if self._startup() == _SSL_REQUEST:
            self._peer.sendall(self._script.tls_answer)
            if not self._script.tls_answer.startswith(b"S") or self._script.silent_at == "handshake":
                self._until_hung_up()
            self._peer = self._context.wrap_socket(self._peer, server_side=True)
            self._startup()
        if self._script.silent_at == "startup":
            self._until_hung_up()
        if self._script.every_s is not None:
            self._trickle(self._script.every_s)
        for step in self._script.steps:
            self._peer.sendall(self._message(step))
            self.record.steps += 1
            if step.startswith(ANSWERED):
                self._hear()
        if self._script.steps and self._script.steps[-1] == "Z":
            self._until_hung_up()

    def close(self) -> None:
        self._peer.close()

    def _trickle(self, every_s: float) -> None:
        """Parameters without end, a byte at a time: it is the socket's time limit that paces them."""
        self._peer.sendall(FIXED["R0"])
        self._peer.settimeout(every_s)
        while True:
            for byte in FIXED["S"]:
                self._peer.sendall(bytes([byte]))
                with contextlib.suppress(TimeoutError):
                    self._take(1)

    def _until_hung_up(self) -> None:
        while True:
            self._hear()

    def _take(self, count: int) -> bytes:
        taken = b""
        while len(taken) < count:
            more = self._peer.recv(count - len(taken))
            if not more:
                raise _HungUp
            taken += more
        return taken

    def _startup(self) -> int:
        (length,) = struct.unpack("!I", self._take(4))
        (code,) = struct.unpack("!I", self._take(length - 4)[:4])
        return int(code)

    def _hear(self) -> None:
        tag = self._take(1)
        (length,) = struct.unpack("!I", self._take(4))
        body = self._take(length - 4)
        self.record.answers.append(tag + body)
        if tag != b"p":
            return
        if body.startswith(b"SCRAM-SHA-256"):
            self._first = body[body.index(b"\0") + 5 :].split(b",", 2)[2]
        elif b",p=" in body:
            self._final = body
            self.record.sent.append("proof")
        else:
            self.record.sent.append("md5" if body.startswith(b"md5") else "password")

    def _message(self, step: str) -> bytes:
        if step in FIXED:
            return FIXED[step]
        kind, _, variant = step.partition(" ")
        return request(11, self._continue(variant)) if kind == "R11" else request(12, self._end(variant))

    def _continue(self, variant: str) -> bytes:
        nonce = b"other" if variant == "nonce" else self._first.partition(b"r=")[2] + b"server"
        iterations = 0 if variant == "zero" else self._script.iterations
        data = b"r=%s,s=%s,i=%d" % (nonce, base64.b64encode(_SALT), iterations)
        self._server_first = b"x=y" if variant == "garbage" else data
        return self._server_first

    def _end(self, variant: str) -> bytes:
        if variant in ("error", "garbage"):
            return {"error": b"e=invalid-proof", "garbage": b"\xff\xfe"}[variant]
        salted = hashlib.pbkdf2_hmac("sha256", SECRET.encode(), _SALT, self._script.iterations)
        key = hmac.digest(salted, b"Server Key", "sha256")
        without_proof = self._final[: self._final.rindex(b",p=")]
        signed = hmac.digest(key, b",".join((self._first, self._server_first, without_proof)), "sha256")
        return b"v=" + base64.b64encode(signed if variant != "wrong" else bytes(32))


@contextlib.contextmanager
def fake_server(certificate: Path, key: Path) -> Iterator[FakeServer]:
    """Yield a server that listens, gone afterwards."""
    server = FakeServer(certificate, key)
    try:
        yield server
    finally:
        server.close()
