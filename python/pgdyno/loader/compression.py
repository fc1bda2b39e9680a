"""The beginning of a compressed file, as far as some of its bytes give it."""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from typing import Literal

Compression = Literal["none", "gzip", "zstd", "xz", "bzip2"]

MAGIC: dict[bytes, Compression] = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
}
"""First bytes: RFC 1952, RFC 8878, the .xz format 1.0.4."""
_BZIP2 = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
"""The same of bzip2 1.0.8, with the mark of its first block or of its end: text may begin with ``BZh`` too."""
_SKIPPED = tuple(bytes((first,)) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))
"""What a frame begins with that decoders of zstd pass over (RFC 8878, 3.1.2): pzstd's files begin with one."""
_SKIPPED_HEAD_BYTES = 8
SUFFIXES = (".gz", ".gzip", ".zst", ".zstd", ".xz", ".bz2")
"""Ends of names that say how a file is compressed, and nothing of what is in it."""
_BLOCK_BYTES = 16 << 10
_GZIP_WINDOW = 31
"""zlib's word for: with gzip's header, and the largest window."""


def compression_of(head: bytes) -> Compression:
    """How what begins so is compressed; by its bytes, since names are wrong sooner or later."""
    if _BZIP2.match(head):
        return "bzip2"
    if head.startswith(_SKIPPED):
        return "zstd"
    return next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), "none")


def plain_head(head: bytes, bytes_max: int) -> bytes:
    """The content of the stored bytes ``head``, at most ``bytes_max``; for a damaged file at most what precedes the damage."""
    kind = compression_of(head)
    if kind == "none":
        return head[:bytes_max]
    result = b""
    try:
        if kind == "zstd":
            return _zstd(head, bytes_max)
        while head and len(result) < bytes_max:
            more, head = _member(kind, head, bytes_max - len(result))
            result += more
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
        pass  # the engine says what is wrong with the file, and where
    return result


def _member(kind: Compression, head: bytes, bytes_max: int) -> tuple[bytes, bytes]:
    """The first of several compressed files in a row, and the bytes behind it."""
    if kind == "gzip":
        gzip = zlib.decompressobj(_GZIP_WINDOW)
        return gzip.decompress(head, bytes_max), gzip.unused_data
    other = bz2.BZ2Decompressor() if kind == "bzip2" else lzma.LZMADecompressor(lzma.FORMAT_XZ)
    decompress = other.decompress(head, bytes_max)
    return decompress, other.unused_data if other.eof else b""


def _zstd(head: bytes, bytes_max: int) -> bytes:
    import pyarrow as pa

    while head.startswith(_SKIPPED):
        head = head[_SKIPPED_HEAD_BYTES + int.from_bytes(head[4:_SKIPPED_HEAD_BYTES], "little") :]
    result = b""
    with pa.input_stream(pa.BufferReader(head), compression="zstd") as stream:
        try:
            while len(result) < bytes_max and (block := stream.read(_BLOCK_BYTES)):
                result += block
        except OSError:
            pass  # the file continues where these bytes end
    return result[:bytes_max]
