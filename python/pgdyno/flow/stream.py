"""What a host that makes runs says while it does: JSON lines, each with the bytes that it announces.

::

    {"begin": "03-gp3-r2", "position": 3}
    {"file": "logs/pgbench.log", "bytes": 812}      and 812 bytes; a large file comes in several such parts
    {"run": "03-gp3-r2", "bytes": 4711}             and its run.json, when all files have come
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PART_BYTES = 1 << 20
_ANNOUNCED = "bytes"


@dataclass(frozen=True)
class Frame:
    """One line, and what it announced."""

    head: dict[str, Any]
    body: bytes = b""


def packed(body: bytes = b"", **head: Any) -> bytes:
    """A frame as it is sent."""
    announced = head | ({_ANNOUNCED: len(body)} if body else {})
    return json.dumps(announced).encode() + b"\n" + body


def files(directory: Path, but: str = "") -> Iterator[bytes]:
    """The files below a directory as frames, each by its path in it; without the one that is named ``but``."""
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if not path.is_file() or name == but:
            continue
        with path.open("rb") as file:
            part = file.read(PART_BYTES)
            yield packed(part, file=name)
            while part := file.read(PART_BYTES):
                yield packed(part, file=name)


class Frames:
    """Takes the stream in pieces of any size and gives back its frames."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._head: dict[str, Any] | None = None

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """The frames that are whole with this piece."""
        self._rest += piece
        while True:
            if self._head is None:
                line, newline, _ = self._rest.partition(b"\n")
                if not newline:
                    return
                del self._rest[: len(line) + 1]
                self._head = json.loads(line)
            size = int(self._head.get(_ANNOUNCED, 0))
            if len(self._rest) < size:
                return
            head, body = self._head, bytes(self._rest[:size])
            del self._rest[:size]
            self._head = None
            yield Frame(head, body)
