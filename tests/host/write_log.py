"""The file of a write log, read as its format is described in ``crates/crash/src/log.rs``."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"pgdwlog\x01"
EVENT = struct.Struct("<BBxxIQQQ")
WRITE, DISCARD, ANSWER, FLUSH, MARK = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Event:
    """One event; what the figures mean depends on its kind."""

    kind: int
    volume: int
    small: int
    at_ns: int
    first: int
    second: int


@dataclass(frozen=True)
class Log:
    """A whole log."""

    header: dict[str, Any]
    events: list[Event]
    data: bytes

    def of(self, kind: int) -> list[Event]:
        """The events of a kind."""
        return [event for event in self.events if event.kind == kind]

    def marks(self) -> list[str]:
        """The texts of the marks."""
        return [self.data[event.second : event.second + event.small].decode() for event in self.of(MARK)]

    def replay(self, volume: int) -> bytes:
        """The content of a volume after everything in the log."""
        content = bytearray(self.header["volumes"][volume]["size_bytes"])
        for event in self.events:
            if event.volume == volume and event.kind == WRITE:
                content[event.first : event.first + event.small] = self.data[event.second : event.second + event.small]
            elif event.volume == volume and event.kind == DISCARD:
                content[event.first : event.first + event.second] = bytes(event.second)
        return bytes(content)


def read(path: Path) -> Log:
    """Read a log and check that it is whole."""
    result = path.read_bytes()
    assert result[:8] == MAGIC
    end = 16 + int.from_bytes(result[8:16], "little")
    header = json.loads(result[16:end])
    data = end + header["events"] * EVENT.size
    assert len(result) == data + header["data_bytes"]
    return Log(header, [Event(*EVENT.unpack_from(result, at)) for at in range(end, data, EVENT.size)], result[data:])
