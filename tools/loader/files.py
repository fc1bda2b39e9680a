"""Files to load: two halves of one, the whole, packed in two ways, and one for a table with indexes."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLE = "CREATE TABLE t (id bigint, amount numeric, at timestamptz, note text, tag text)"
INDEXED_TABLE = """
CREATE TABLE t (id bigint PRIMARY KEY, amount int, at timestamptz, word text, note text);
CREATE INDEX t_amount ON t (amount); CREATE INDEX t_word ON t (word)
"""
"""A primary key, an integer and a random text, as in the series that the decision about indexes is from."""
_ROW = "{n}\t{a}.{b:02}\t2026-01-02 03:04:05+00\tthe note of row {n} and what else there is\ttag{c}\n"
_INDEXED_ROW = "{n}\t{a}\t2026-01-02 03:04:05+00\t{word:012x}\tthe note of row {n}, no index on it\n"
Name = Literal["whole", "gzip", "zstd", "indexed", "scattered"]
"""Of :class:`Files`."""
ROWS_PER_MEGABYTE = 10_600
"""Of either file, about."""
_GOLDEN = 0x9E37_79B9_7F4A_7C15
"""Knuth's multiplicative hash (The Art of Computer Programming 3, 6.4): consecutive numbers in no order, none twice."""
PACK_TIMEOUT_S = 600.0
SEED = 20261123


@dataclass(frozen=True)
class File:
    """A file to load."""

    path: Path
    plain: Path
    """The same without compression."""
    rows: int
    table: str
    """How its table is made."""

    @property
    def megabytes(self) -> float:
        """Its length without compression, in 10^6 bytes."""
        return self.plain.stat().st_size / 1e6


@dataclass(frozen=True)
class Files:
    """Where they are; where the server may read them, too."""

    halves: tuple[Path, Path]
    whole: File
    gzip: File
    zstd: File
    indexed: File
    scattered: File
    """As ``indexed``, with keys and integers in no order: each row goes to a page of its own in each index."""

    def __getitem__(self, name: Name) -> File:
        """The file of that name."""
        getitem: File = getattr(self, name)
        return getitem


def write(folder: Path, megabytes: int) -> Files:
    """Write them: tab-separated, about a hundred bytes a row; half of it for the table with indexes, twice."""
    import pyarrow

    folder.mkdir()
    half, rows = megabytes * ROWS_PER_MEGABYTE // 2, 2 * (megabytes * ROWS_PER_MEGABYTE // 2)
    halves = (folder / "half0.tsv", folder / "half1.tsv")
    for number, path in enumerate(halves):
        with path.open("w") as file:
            numbers = range(number * half, (number + 1) * half)
            file.writelines(_ROW.format(n=n, a=n * 7919 % 100_003, b=n % 100, c=n % 977) for n in numbers)
    whole = folder / "whole.tsv"
    with whole.open("wb") as out:
        for path in halves:
            out.write(path.read_bytes())
    gzip, zstd = folder / "whole.tsv.gz", folder / "whole.tsv.zst"
    indexed, scattered = folder / "indexed.tsv", folder / "scattered.tsv"
    with gzip.open("wb") as out:
        subprocess.run(["gzip", "-6c", whole], stdout=out, check=True, timeout=PACK_TIMEOUT_S)
    zstd.write_bytes(pyarrow.Codec("zstd").compress(whole.read_bytes(), asbytes=True))
    with indexed.open("w") as file:
        numbers = range(rows // 2)
        file.writelines(_INDEXED_ROW.format(n=n, a=n * 7919 % 100_003, word=_word(n)) for n in numbers)
    with scattered.open("w") as file:
        file.writelines(_scattered(rows // 2))
    for path in folder.iterdir():
        path.chmod(0o644)
    folder.chmod(0o755)
    plain = [File(path, whole, rows, TABLE) for path in (whole, gzip, zstd)]
    return Files(halves, *plain, *(File(path, path, rows // 2, INDEXED_TABLE) for path in (indexed, scattered)))


def _scattered(rows: int) -> Iterator[str]:
    drawn = random.Random(SEED)
    numbers = list(range(rows))
    drawn.shuffle(numbers)
    return (_INDEXED_ROW.format(n=n, a=drawn.getrandbits(31), word=_word(n)) for n in numbers)


def _word(number: int) -> int:
    return (number * _GOLDEN % (1 << 64)) >> 16
