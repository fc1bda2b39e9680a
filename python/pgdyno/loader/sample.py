"""The beginning of a source: its first rows to look at, whole rows to measure with, and how much there is of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgdyno.loader.compression import compression_of, plain_head
from pgdyno.loader.format import DELIMITERS, Format, decoded, has_byte_order_mark, is_utf_16, without_byte_order_mark
from pgdyno.loader.source import RowSource

from ..base.errors import InputError

PLAIN_BYTES_MAX = 16 << 20
"""Of what the stored head gives: text is compressed to a third or a tenth, and the head is 1 MiB."""
LOOK_BYTES = 256 << 10
"""Read for types and names; more takes longer than a person waits for a command to begin."""


@dataclass(frozen=True)
class SourceSample:
    """The beginning of one source."""

    source: RowSource
    data: bytes
    """Uncompressed."""
    rows: list[list[str | None]]
    """Rows in its first :data:`LOOK_BYTES`; a header is the first one."""
    first_line: str
    byte_order_mark: bool

    @property
    def is_whole(self) -> bool:
        """Whether all of the source was looked at, so that its last row is not cut off."""
        return _is_whole(self.source, self.data)

    @property
    def bytes_total(self) -> float | None:
        """About how many uncompressed bytes the source has; None of a stream."""
        if self.source.parquet is not None:
            return self.source.parquet.bytes
        if self.source.bytes_stored is None:
            return None
        return self.source.bytes_stored * max(len(self.data), 1) / len(self.source.head)

    def bytes_per_row(self, formatted: Format) -> float:
        """Mean length of its rows."""
        return max(1.0, len(whole_rows(self.data, formatted, header=False)) / max(1, self._count(formatted)))

    def first_row(self, formatted: Format) -> bytes:
        """Its bytes as they are, without a byte order mark; as far as they are looked at."""
        data = self.data[:LOOK_BYTES]
        ends = _outside(data, formatted)
        return without_byte_order_mark(data[: ends[0]] if ends else data)

    def _count(self, formatted: Format) -> int:
        return len(_outside(self.data, formatted))


def take(source: RowSource, formatted: Format, encoding: str) -> SourceSample:
    """The sample of a source. :class:`InputError` when it is UTF-16, which PostgreSQL does not know."""
    plain = compression_of(source.head) == "none"
    data = source.head if plain else plain_head(source.head, PLAIN_BYTES_MAX)
    if is_utf_16(data[:LOOK_BYTES]):
        raise InputError(
            f"{source.name} is UTF-16, which PostgreSQL does not know",
            remedy="convert it: `iconv -f UTF-16 -t UTF-8 FILE`; a pipe will do, with `-` as the source",
        )
    text = decoded(data[:LOOK_BYTES], encoding)
    rows = formatted.rows(text, whole=_is_whole(source, data))
    first = re.split(r"[\r\n]", text, maxsplit=1)[0]
    return SourceSample(source, data, rows, first, has_byte_order_mark(data))


def _is_whole(source: RowSource, data: bytes) -> bool:
    """Whether all of a source is looked at, so that its last row is not cut off."""
    return source.whole and len(data) <= LOOK_BYTES


def other_delimiter(sample: SourceSample, formatted: Format, encoding: str) -> tuple[str, int] | None:
    """The delimiter with which all rows of a sample would have the same number of values, more than one; and that number."""
    text = decoded(sample.data[:LOOK_BYTES], encoding)
    for delimiter in DELIMITERS:
        widths = {
            len(row)
            for row in replace(formatted, delimiter=delimiter).rows(text, whole=_is_whole(sample.source, sample.data))
        }
        if delimiter != formatted.delimiter and len(widths) == 1 and (width := widths.pop()) > 1:
            return delimiter, width
    return None


def whole_rows(data: bytes, formatted: Format, *, header: bool) -> bytes:
    """The rows of a sample that certainly end in it, without the header. Empty when none does."""
    ends = _outside(data, formatted)
    if len(ends) < (2 if header else 1):
        return b""
    return data[ends[0] + 1 if header else 0 : ends[-1] + 1]


def line_end(sample: SourceSample, formatted: Format) -> bytes | None:
    """How the first row ends, which is how all do; None where it does not end in what is looked at."""
    data = sample.data[:LOOK_BYTES]
    ends = _outside(data, formatted)
    if not ends:
        return None
    end = data[ends[0] : ends[0] + 1]
    return b"\r\n" if end == b"\n" and data[: ends[0]].endswith(b"\r") else end


def total(samples: Sequence[SourceSample]) -> float | None:
    """About how many uncompressed bytes there are; None when a source is a stream."""
    sizes = [sample.bytes_total for sample in samples]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _outside(data: bytes, formatted: Format) -> list[int]:
    """Positions of line ends that are not part of a value: for a sample; the engine does it exactly."""
    if formatted.kind == "text":
        blank = re.sub(rb"\\.", b"xx", data, flags=re.DOTALL)
        return _ends(blank)
    quote, escape = formatted.quote.encode(), formatted.escape.encode()
    blank = data if escape == quote else re.sub(re.escape(escape) + b".", b"xx", data, flags=re.DOTALL)
    parts = blank.split(quote)
    # Text between two quotes belongs to a value, so its line ends do not end rows.
    shown = quote.join(part if number % 2 == 0 else b"x" * len(part) for number, part in enumerate(parts))
    return _ends(shown)


def _ends(data: bytes) -> list[int]:
    newline = b"\n" if b"\n" in data else b"\r"
    return [match.start() for match in re.finditer(newline, data)]
