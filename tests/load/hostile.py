"""Files that are meant to be cut in the wrong place, drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

COLUMNS = 3


@dataclass(frozen=True)
class Dialect:
    """A format: as COPY takes it, and as the engine does."""

    options: str
    document: dict[str, Any]
    delimiter: str
    quote: str = ""
    escape: str = ""


DIALECTS = (
    Dialect("FORMAT csv", {"csv": {}}, ",", '"', '"'),
    Dialect(
        "FORMAT csv, DELIMITER ';', QUOTE '''', ESCAPE E'\\\\', NULL 'none'",
        {"csv": {"delimiter": ";", "quote": "'", "escape": "\\", "null": "none"}},
        *(";", "'", "\\"),
    ),
    Dialect("FORMAT text", {"text": {}}, "\t"),
    Dialect("FORMAT text, DELIMITER '|', NULL 'none'", {"text": {"delimiter": "|", "null": "none"}}, "|"),
)


@dataclass(frozen=True)
class Hostile:
    """A file, and how to load it."""

    content: bytes
    dialect: Dialect
    header: bool
    chunk_bytes: int
    connections: int


def drawn(seed: int) -> Hostile:
    """The file of a seed. One in four breaks a rule of its format somewhere; COPY may still take it."""
    random_ = random.Random(seed)
    dialect = random_.choice(DIALECTS)
    ends = {"\n": 0.6, "\r\n": 0.3, "\r": 0.1}
    end = random_.choices(list(ends), list(ends.values()))[0]
    rows = [_row(random_, dialect) for _ in range(random_.choice((1, 3, 40, 150)))]
    lines = [row + end for row in rows]
    if random_.random() < 0.3:
        lines[-1] = rows[-1]
    if random_.random() < 0.25:
        at = random_.randrange(len(lines))
        lines[at] = _broken(random_, lines[at], dialect)
    content = "".join(lines).encode()
    if random_.random() < 0.05:
        at = random_.randrange(len(content) + 1)
        content = content[:at] + random_.choice((b"\xff", b"\0", b"\xef\xbb\xbf")) + content[at:]
    chunk_bytes = random_.choice((1, 200, 1024, 4096, 1 << 20))
    return Hostile(content, dialect, random_.random() < 0.3, chunk_bytes, random_.randint(1, 8))


def _row(random_: random.Random, dialect: Dialect) -> str:
    make = _quoted if dialect.quote else _escaped
    return dialect.delimiter.join(make(random_, dialect) for _ in range(COLUMNS))


def _value(random_: random.Random) -> str:
    alphabet = random_.choice(("abc", "a\n", "a\r\n", "\"'\\", "a,;|\t", "\\.\n", "äé漢"))
    length = random_.choice((0, 1, 3, 10, 10, 300))
    return "".join(random_.choice(alphabet) for _ in range(length))


def _quoted(random_: random.Random, dialect: Dialect) -> str:
    value = _value(random_)
    plain = not any(special in value for special in (dialect.delimiter, dialect.quote, "\n", "\r"))
    if plain and random_.random() < 0.6:
        return value
    if dialect.escape != dialect.quote:
        value = value.replace(dialect.escape, dialect.escape * 2)
    value = value.replace(dialect.quote, dialect.escape + dialect.quote)
    return f"{dialect.quote}{value}{dialect.quote}"


def _escaped(random_: random.Random, dialect: Dialect) -> str:
    value = _value(random_).replace("\\", "\\\\")
    for special in (dialect.delimiter, "\n", "\r"):
        # A backslash before the byte itself means the byte, as the letter would; both must be cut rightly.
        value = value.replace(special, "\\" + special)
    return value


def _broken(random_: random.Random, line: str, dialect: Dialect) -> str:
    at = random_.randrange(len(line) + 1)
    kinds = (
        line[:at] + random_.choice((dialect.quote, "\\", "\r", "\n", "\r\n")) + line[at:],
        line.replace(dialect.delimiter, "", 1),
        line.rstrip("\r\n") + dialect.delimiter + "x\n",
        "\\.\n" + line,
        "\n" + line,
    )
    return random_.choice(kinds)
