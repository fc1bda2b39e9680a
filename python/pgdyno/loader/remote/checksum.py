"""Holds what came to the checksum that a store has of it: in order, as it passes.

S3 keeps one of the whole object, or, of an object that was uploaded in parts, one of the checksums of its parts
(``ChecksumType`` of its API: ``FULL_OBJECT``, ``COMPOSITE``). An ETag is not a checksum: it is the MD5 of some objects only.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import zlib
from collections import deque
from collections.abc import Callable
from typing import Protocol

from pgdyno.loader.remote.store import Checksum

Bytes = bytes | bytearray | memoryview


class Digest(Protocol):
    """As those of :mod:`hashlib`."""

    def update(self, data: Bytes, /) -> None:
        """More bytes."""

    def digest(self) -> bytes:
        """The value of all bytes so far."""


class _Crc:
    """A cyclic redundancy check, whose value S3 writes with its highest byte first."""

    def __init__(self, step: Callable[[bytes, int], int], length: int) -> None:
        self._step, self._length, self._value = step, length, 0

    def update(self, data: Bytes, /) -> None:
        """More bytes."""
        self._value = self._step(bytes(data), self._value)

    def digest(self) -> bytes:
        """The value of all bytes so far."""
        return self._value.to_bytes(self._length, "big")


def _crc32c() -> Digest:
    from awscrt import checksums

    return _Crc(checksums.crc32c, 4)


def _crc64nvme() -> Digest:
    from awscrt import checksums

    return _Crc(checksums.crc64nvme, 8)


ALGORITHMS: dict[str, Callable[[], Digest]] = {
    "CRC64NVME": _crc64nvme,
    "CRC32C": _crc32c,
    "CRC32": lambda: _Crc(zlib.crc32, 4),
    "SHA256": hashlib.sha256,
    "SHA512": hashlib.sha512,
    "SHA1": functools.partial(hashlib.sha1, usedforsecurity=False),
}
"""Those of S3's API, and of ``Repr-Digest`` (RFC 9530)."""


class RollingChecksum:
    """The checksum of an object as its bytes pass, from the first to the last."""

    def __init__(self, expected: Checksum) -> None:
        self._expected = expected
        self._make = ALGORITHMS[expected.algorithm]
        self._part, self._parts = self._make(), self._make()
        self._ends = deque(itertools.accumulate(expected.parts))
        """Where the remaining parts end."""
        self._at = 0

    def add(self, data: Bytes) -> None:
        """The next bytes."""
        rest = memoryview(data)
        while rest:
            room = self._ends[0] - self._at if self._ends else len(rest)
            taken, rest = rest[:room], rest[room:]
            self._part.update(taken)
            self._at += len(taken)
            if self._ends and self._at == self._ends[0]:
                self._ends.popleft()
                self._parts.update(self._part.digest())
                self._part = self._make()

    def wrong(self) -> str | None:
        """What is wrong with all that came, in words; None when it is what was stored."""
        digest = (self._parts if self._expected.parts else self._part).digest()
        if digest == self._expected.value:
            return None
        return f"its {self._expected.algorithm} is {digest.hex()}, and the store has {self._expected.value.hex()}"
