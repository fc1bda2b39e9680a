"""An object as a file that can be read at any place: for Parquet, whose index is at its end."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from pgdyno.loader.remote.find import Remote
from pgdyno.loader.remote.ranges import Ahead

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Seekable(io.RawIOBase):
    """Each read is as many ranges as it takes, several at a time. Raises what they raise."""

    def __init__(self, remote: Remote) -> None:
        super().__init__()
        self._remote = remote
        self._ahead = Ahead()
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Bytes from the beginning."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._remote.bytes}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fills it, unless the object ends before."""
        into = memoryview(buffer).cast("B")
        end = min(self._at + len(into), self._remote.bytes)
        filled = 0
        for piece in self._ahead.pieces(self._remote.object, self._remote.head, self._at, end):
            into[filled : filled + len(piece)] = piece
            filled += len(piece)
        self._at += filled
        return filled
