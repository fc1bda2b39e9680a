"""What every kind of store is asked, and how it may fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ...base.errors import ObjectChanged

CONNECT_S = 10.0
READ_S = 30.0
"""How long a store may take for the next bytes. S3 answers within a fraction of a second, others after some."""
PIECE_BYTES = 64 << 10
"""Taken from a connection at once: a call costs little beside it, and as little is asked for again after a break."""
LENGTH_BYTES_MAX = (1 << 63) - 1
"""What a file may have; the ledger keeps no larger numbers."""
LENGTH_DIGITS_MAX = 19
TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500
"""From this status on it is the store that could not: another try may do."""


@dataclass(frozen=True)
class Checksum:
    """What a store says of an object's content."""

    algorithm: str
    """One of :data:`~pgdyno.loader.remote.checksum.ALGORITHMS`."""
    value: bytes
    parts: tuple[int, ...] = ()
    """Lengths of the parts of an object that was stored in parts, if ``value`` is computed from the parts' values."""


@dataclass(frozen=True)
class ObjectFacts:
    """What says which content an object has."""

    bytes: int
    etag: str | None
    """As the store writes it, with its quotes."""
    version: str | None = None
    modified: str | None = None
    checksum: Checksum | None = None


class Object(Protocol):
    """An object that was found."""

    @property
    def name(self) -> str:
        """What it is called in messages and in the plan: without anything that is secret."""

    @property
    def facts(self) -> ObjectFacts:
        """As it was when it was found."""

    def read(self, first: int, end: int) -> Iterator[bytes]:
        """The bytes from ``first`` to before ``end``, in pieces.

        :class:`TransientError` when they do not all come; :class:`~pgdyno.base.errors.ObjectChanged`, and other errors, when they never will.
        """


class TransientError(Exception):
    """An answer that did not come, or not whole. It is asked for again."""

    def __init__(self, why: str, wait_s: float = 0.0) -> None:
        super().__init__(why)
        self.wait_s = wait_s
        """How long the store asks to be left alone."""


def changed(name: str) -> ObjectChanged:
    """An object that was written to since it was found."""
    return ObjectChanged(
        f"{name} was changed while it was read",
        remedy="load it again when no program writes to it, with --abandon and --truncate",
        code="load.source.changed",
        data={"source": name},
    )


def length(text: object) -> int | None:
    """A length as a store writes it; None for what cannot be one."""
    result = str(text)
    # Not isdigit(): that takes digits that int() does not; and int() refuses thousands of digits.
    number = int(result) if result.isascii() and result.isdigit() and len(result) <= LENGTH_DIGITS_MAX else None
    return number if number is not None and number <= LENGTH_BYTES_MAX else None


def wait_s(retry_after: str | None) -> float:
    """Seconds of a header ``Retry-After``; a date, which stores do not send here, counts as none."""
    return float(length(retry_after) or 0)
