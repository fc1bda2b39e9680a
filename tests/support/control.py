"""The control socket of an emulated volume, asked directly."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

from pgdyno.machine import paths

if TYPE_CHECKING:
    from pgdyno.machine.volume import AttachedVolume

ANSWER_S = 30.0


def connected(volume: AttachedVolume) -> socket.socket:
    """A connection to the volume's daemon; each answer must come within :data:`ANSWER_S`."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(ANSWER_S)
    connection.connect(str(paths.volumes_dir(volume.state_dir) / volume.name / "control.sock"))
    return connection


def answer_of(connection: socket.socket) -> bytes:
    """One line; what there is where the daemon closes the connection."""
    line = b""
    while not line.endswith(b"\n"):
        more = connection.recv(1 << 16)
        if not more:
            break
        line += more
    return line


def ask(volume: AttachedVolume, request: dict[str, Any]) -> dict[str, Any]:
    """Ask the volume's daemon one question. :class:`ConnectionError` where it closes the connection without an answer."""
    with connected(volume) as connection:
        connection.sendall(json.dumps(request).encode() + b"\n")
        line = answer_of(connection)
    if not line:
        raise ConnectionError("the daemon closed the connection")
    return dict(json.loads(line))
