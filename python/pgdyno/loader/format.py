"""How rows stand in a file: the options of COPY, and reading a few rows here to know their columns."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pgdyno.loader.asked import FormatName, LoadOptions
from pgdyno.loader.compression import SUFFIXES

from ..base.errors import InputError

_BY_SUFFIX: dict[str, FormatName] = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".copy": "text", ".text": "text"}
_NEVER = "\x01"
"""The quote of a file without quotes. COPY wants one; this control character ("start of heading") is in no text."""
DELIMITERS = (",", "\t", ";", "|")
"""Common delimiters, to be suggested."""
_BACKSLASH = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
UNSPLITTABLE = ("SJIS", "SHIFT_JIS_2004", "BIG5", "GBK", "UHC", "GB18030", "JOHAB")
"""Encodings whose characters may hold bytes of ASCII, so that no byte says where a row ends; clients only may use them."""
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class Format:
    """COPY's own words for it."""

    kind: Literal["csv", "text"]
    delimiter: str
    null: str
    quote: str = ""
    escape: str = ""

    def document(self) -> dict[str, dict[str, str]]:
        """As the engine takes it, and as the plan keeps it."""
        options = {"delimiter": self.delimiter, "null": self.null}
        if self.kind == "csv":
            options |= {"quote": self.quote, "escape": self.escape}
        return {self.kind: options}

    def copy_options(self, encoding: str) -> list[str]:
        """The same as SQL has it, for COPY of a file in this encoding."""
        ((kind, values),) = self.document().items()
        texts = [f"FORMAT {kind}", f"ENCODING {_literal(encoding)}"]
        return [*texts, *(f"{name.upper()} {_literal(value)}" for name, value in values.items())]

    def rows(self, text: str, *, whole: bool) -> list[list[str | None]]:
        """Rows of the beginning of a file; the last one is left out unless it is ``whole``. NULL is None."""
        texts = self._csv(text) if self.kind == "csv" else self._text(text)
        return texts if whole else texts[:-1]

    def _csv(self, text: str) -> list[list[str | None]]:
        doubled = self.escape == self.quote
        # Python's own limit is half of what is looked at: one long value would hide all rows, and the header with them.
        csv.field_size_limit(max(csv.field_size_limit(), len(text)))
        try:
            reader = csv.reader(
                io.StringIO(text, newline=""),
                delimiter=self.delimiter,
                quotechar=self.quote,
                doublequote=doubled,
                escapechar=None if doubled else self.escape,
            )
            # From an empty line Python makes no value, COPY an empty one.
            return [[None if value == self.null else value for value in row or [""]] for row in reader]
        except csv.Error:
            return []  # what the module does not take COPY may

    def _text(self, text: str) -> list[list[str | None]]:
        lines = re.split(r"\r\n|\n|\r", text)
        lines = lines if lines[-1] else lines[:-1]
        return [[self._value(value) for value in line.split(self.delimiter)] for line in lines]

    def _value(self, value: str) -> str | None:
        if value == self.null:
            return None
        return _BACKSLASH.sub(lambda match: _UNESCAPED.get(match[1], match[1]), value)

    def fitting(self, first_line: str, columns: int) -> str | None:
        """The delimiter with which the first line would have this number of values."""
        return next(
            (text for text in DELIMITERS if text != self.delimiter and first_line.count(text) + 1 == columns), None
        )


_NO_DELIMITER_OF_TEXT = "\\.abcdefghijklmnopqrstuvwxyz0123456789"
"""They would be taken for what a backslash escapes, or for the end of the data."""

CSV = Format("csv", ",", "", '"', '"')
"""COPY's own defaults."""


def choose(options: LoadOptions, names: Sequence[str]) -> Format:
    """The format of all files: as asked for, else as their names say. :class:`InputError` when neither does."""
    name = options.format or _by_names(names)
    for flag, value in (("--delimiter", options.delimiter), ("--quote", options.quote), ("--escape", options.escape)):
        if value is not None and (len(value) != 1 or not value.isascii() or value in "\r\n\0"):
            raise InputError(f"{flag}: `{value}` is not one single-byte character", remedy="give one, as `;`")
    if name == "csv":
        quote = options.quote or '"'
        return _sound(Format("csv", options.delimiter or ",", options.null or "", quote, options.escape or quote))
    if options.quote is not None or options.escape is not None:
        raise InputError(
            f"values of the format {name} are not quoted", remedy="omit --quote and --escape, or use --format csv"
        )
    null = "\\N" if options.null is None else options.null
    if name == "tsv":
        return _sound(Format("csv", options.delimiter or "\t", null, _NEVER, _NEVER))
    return _sound(Format("text", options.delimiter or "\t", null))


def _sound(made: Format) -> Format:
    """The same; :class:`InputError` for what COPY would refuse, which would be after the table was emptied.

    Rules: PostgreSQL 18 documentation, COPY, parameters DELIMITER, NULL and QUOTE.
    """
    delimiter, null = made.delimiter, made.null
    for wrong, message, remedy in (
        (
            made.kind == "csv" and delimiter == made.quote,
            f"--delimiter and --quote are both `{delimiter}`",
            "change one",
        ),
        (
            made.kind == "text" and delimiter in _NO_DELIMITER_OF_TEXT,
            f"--delimiter: `{delimiter}` cannot be the delimiter of the format text",
            "use --format csv if it is CSV",
        ),
        (delimiter in null, f"--null: `{null}` has the delimiter in it", "give another one"),
        (made.kind == "csv" and made.quote in null, f"--null: `{null}` has the quote in it", "give another one"),
        ("\r" in null or "\n" in null, "--null: it has the end of a line in it", "give another one"),
    ):
        if wrong:
            raise InputError(message, remedy=remedy)
    return made


def _by_names(names: Sequence[str]) -> FormatName:
    document = {name: _BY_SUFFIX.get(Path(bare(name)).suffix.lower()) for name in names}
    unknown = next((name for name, format_name in document.items() if format_name is None), None)
    kinds = sorted({name for name in document.values() if name is not None})
    if unknown is not None or len(kinds) != 1:
        what = f"the name of {unknown} does not say its format" if unknown else f"the files are {' and '.join(kinds)}"
        raise InputError(
            what, remedy="give it with --format csv, tsv or text; all files of a load have the same format"
        )
    return kinds[0]


def _literal(text: str) -> str:
    """A string as SQL writes it, whatever ``standard_conforming_strings`` says."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'" if "\\" not in text else "E'" + doubled.replace("\\", "\\\\") + "'"


def shown_delimiter(delimiter: str) -> tuple[str, str]:
    """A delimiter as a sentence names it, and as a shell takes it."""
    return ("a tab", "$'\\t'") if delimiter == "\t" else (f"`{delimiter}`", f"'{delimiter}'")


def bare(name: str) -> str:
    """A file's name without what says how it is compressed."""
    path = Path(name)
    return str(path.with_suffix("")) if path.suffix.lower() in SUFFIXES else name


def decoded(data: bytes, encoding: str) -> str:
    """Text for looking at; what does not fit its encoding is the server's to refuse."""
    return data.decode(_codec(encoding), errors="replace").removeprefix(_BYTE_ORDER_MARK)


def has_byte_order_mark(data: bytes) -> bool:
    """Whether a file begins with the three bytes that some programs put before UTF-8."""
    return data.startswith(codecs.BOM_UTF8)


def without_byte_order_mark(data: bytes) -> bytes:
    """The same without that mark."""
    return data.removeprefix(codecs.BOM_UTF8)


def is_utf_16(data: bytes) -> bool:
    """Whether a file is as some programs of Windows write it: the mark, and zeros, which no encoding of PostgreSQL has."""
    return data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in data


def _codec(encoding: str) -> str:
    name = re.sub(r"[^a-z0-9]", "", encoding.lower())
    name = re.sub(r"^win", "cp", name)
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "latin-1"  # every byte is a character; names and digits are the same
