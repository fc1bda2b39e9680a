"""A pipe to the engine, and a second one that marks the end: everything was written into the first.

The kernel closes the pipes of a process that is killed. Without that word the engine would take what came until then for all of
it, and commit a last chunk that ends within a row.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..base.errors import HostError

ALL = b"."
"""The word; any byte is."""


@dataclass(frozen=True)
class Pipe:
    """The descriptors of both. The writer closes the two that are written to."""

    reading: int
    writing: int
    told: int
    telling: int

    @property
    def read(self) -> tuple[int, int]:
        """Those that the engine reads: the content, and the word."""
        return self.reading, self.told

    def leave(self) -> None:
        """Close those that are read: a writer that waits for a reader then gets an error."""
        for descriptor in self.read:
            os.close(descriptor)


def made() -> Pipe:
    """Make both. :class:`HostError` when there is no descriptor left."""
    numbers: list[int] = []
    try:
        for _ in range(2):
            numbers += os.pipe()
    except OSError as error:
        for descriptor in numbers:
            os.close(descriptor)
        raise HostError(f"no pipe can be made: {error.strerror}", remedy="close other programs") from error
    return Pipe(*numbers)
