"""The columns of iostat, sar and sadf: their names over the years, their units, and what a row makes of a sample.

sysstat has renamed and reordered its columns with nearly every release, and lets the user choose the unit; but it
always writes their names down. So every reader goes by names and no reader by places.

==========================  ==============================================================================
sysstat                     names
==========================  ==============================================================================
before 11.5.7               ``rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await r_await w_await svctm %util``
11.5.7 to 12.0              ``r/s w/s rkB/s wkB/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz ...``
from 12.1                   ``r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s ... d/s dkB/s ... [f/s f_await] aqu-sz %util``
sar -d before 11.5.7        ``DEV tps rd_sec/s wr_sec/s avgrq-sz avgqu-sz await svctm %util``
sar -d now                  ``DEV tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util``
==========================  ==============================================================================

Source: the headers that iostat.c and pr_stats.c of github.com/sysstat/sysstat print at 10.2.0, 11.0.0, 11.7.1, 12.0.0 and
c1eb661a (18 July 2026).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ....base.errors import InputError
from ..measured import IntervalSample, shared_out
from .agreement import PrintedFigure, PrintedRow, decimals_of, figure_of
from .possible import BYTES_MAX, COUNT_MAX, NOT_A_NUMBER, possible

SECTOR_BYTES = 512
"""What sysstat calls a sector or a block, whatever the device's own is."""
_UNIT_BYTES = {
    "k": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "B": 1, "s": SECTOR_BYTES,
}  # fmt: skip
_NUMBER = re.compile(r"(-?\d+(?:[.,]\d+)?)([kMGTPBs%]?)")
_HEAD = re.compile(r"Linux \S+ \(.*\)")
_BYTES_COLUMN = re.compile(
    r"(?P<way>[rwd])?(?:(?P<unit>[kMG])B|(?P<block>sec|Blk))(?:/s)?"  # rkB/s, wMB/s, rsec/s, kB/s; sadf's rkB
    r"|(?P<unit2>[kMG])B_(?P<word>read|wrtn)/s|Blk_(?P<word2>read|wrtn)/s"  # the basic report of iostat
    r"|(?P<way3>rd|wr)_sec(?:/s)?"  # the old sar
)
_SIZE_BYTES = {"rareq-sz": 1024.0, "wareq-sz": 1024.0, "areq-sz": 1024.0, "avgrq-sz": float(SECTOR_BYTES)}
"""Mean sizes of requests, and the bytes of their unit."""
_OTHERS = {"r/s", "w/s", "d/s", "f/s", "tps", "aqu-sz", "avgqu-sz"}
"""Names of which each table has at least one, beside bytes."""
_USED = {"r/s", "w/s", "tps", "aqu-sz", "avgqu-sz", "await", "r_await", "w_await"}
"""Names of which a sample is made, beside bytes that were read or written. What stands in other columns does not matter."""
_TOTALS = ("_read", "_wrtn")
"""Ends of the basic report's names of what was moved in the whole interval: ``kB_read`` beside ``kB_read/s``."""
_TOTAL_MIN = 100.0
"""Rates have two decimals: below a hundred units a total divided by its rate is not to be relied on."""


def is_header(names: list[str]) -> bool:
    """Whether these words are the names of columns: a device's, and at least a rate."""
    return any(name.rstrip(":") in ("Device", "DEV") for name in names) and any(
        _BYTES_COLUMN.fullmatch(name) or name in _OTHERS for name in names
    )


def is_column(word: str) -> bool:
    """Whether a word is the name of a column: of the device, of bytes or of requests."""
    return word.rstrip(":") in ("Device", "DEV") or word in _OTHERS or _BYTES_COLUMN.fullmatch(word) is not None


def device_column(names: Sequence[str]) -> int:
    """Where the device's name stands: the first column, or the last one with ``--pretty``."""
    return next(place for place, name in enumerate(names) if name.rstrip(":") in ("Device", "DEV"))


def number(text: str, name: str) -> float:
    """One cell, bytes where the column ``name`` has bytes. ``12,5`` of other locales and ``1.5M`` of ``-h`` are read too.

    :class:`ValueError` if it is not a number.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return float(match[1].replace(",", ".")) * _scale(name, match[2])


def _scale(name: str, unit: str) -> float:
    """Bytes of a column's unit, unless the cell has one of its own; 1 where the column has no bytes."""
    column = _BYTES_COLUMN.fullmatch(name)
    if column is None:
        return 1
    unit = unit if unit in _UNIT_BYTES else (column["unit"] or column["unit2"] or "s")
    return _UNIT_BYTES[unit]


def row(names: Sequence[str], words: Sequence[object], where: str) -> dict[str, float]:
    """The cells of a row by column, as far as they are numbers; ``where`` is its file and line.

    Words are text as :func:`number` reads it, or the values of a JSON document. :class:`InputError` when a column that is
    used is not a number, or is impossible for a disk.
    """
    row = {}
    for name, word in zip(names, words, strict=True):
        try:
            value = number(word, name) if isinstance(word, str) else _of_json(word, name)
        except (ValueError, OverflowError):
            if _is_used(name):
                raise InputError(
                    f"{where}: {name} is `{'null' if word is None else word}`, which is not a number",
                    remedy="remove the damaged interval, or measure again",
                    code=NOT_A_NUMBER,
                ) from None
            continue
        if _is_used(name):
            value = possible(value, f"{where}: {name}", BYTES_MAX if _BYTES_COLUMN.fullmatch(name) else COUNT_MAX)
        row[name] = value
    return row


def has_numbers(words: Sequence[str]) -> bool:
    """Whether any of the words is a figure, so that they are a row and not the begin of another table."""
    return any(_NUMBER.fullmatch(word) for word in words)


def figures_of(names: Sequence[str], words: Sequence[object]) -> PrintedRow:
    """The same cells with the precision that they were printed with, to be compared with each other."""
    decimals = decimals_of(words)
    figures, ways, scales = dict[str, PrintedFigure](), dict[str, str](), dict[str, float]()
    for name, word in zip(names, words, strict=True):
        column = _BYTES_COLUMN.fullmatch(name)
        scale = _SIZE_BYTES.get(name, 1.0) if column is None else _scale(name, "")
        figure = figure_of(word, scale, decimals)
        if figure is None:
            continue
        figures[name] = figure
        if column is not None:
            ways.setdefault(_way(column), name)
            scales[name] = scale
    return PrintedRow(figures, ways, scales)


def _is_used(name: str) -> bool:
    column = _BYTES_COLUMN.fullmatch(name)
    return name in _USED if column is None else _way(column) != "discard"


def _of_json(value: object, name: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(value)
    return float(value) * _scale(name, "")


def is_cut(lines: Sequence[str], at: int) -> bool:
    """Whether a row may be incomplete because its program was stopped: nothing follows, or the head of the next file."""
    for place in range(at + 1, len(lines)):
        if lines[place].strip():
            return is_head(lines[place])
    return True


def is_head(line: str) -> bool:
    """Whether a program of sysstat begins with this line: ``Linux 6.1.0 (db1)  2026-11-21  _x86_64_  (8 CPU)``."""
    return _HEAD.match(line) is not None


def length_s(cells: Mapping[str, float]) -> float | None:
    """Length of the interval where totals stand beside their rates, as in the basic report of iostat; otherwise ``None``."""
    pairs = [
        (total, cells[f"{name}/s"] / _scale(f"{name}/s", ""))
        for name, total in cells.items()
        if name.endswith(_TOTALS) and f"{name}/s" in cells
    ]
    total, rate = max(pairs, default=(0.0, 0.0))
    return total / rate if total >= _TOTAL_MIN and rate > 0 else None


def sample_of(cells: Mapping[str, float], seconds: float) -> tuple[IntervalSample, bool] | None:
    """The sample of one row, and whether reads and writes were apart. ``None`` when the row has no requests or no bytes.

    ``cells`` are :func:`number` by column. Discards count neither as reads nor as writes: providers publish no limit to
    them.
    """
    read_bytes, write_bytes, all_bytes = (_bytes_of(cells, way) for way in ("read", "write", "all"))
    if read_bytes is None or write_bytes is None:
        if all_bytes is None:
            return None
        read_bytes, write_bytes = 0.0, all_bytes  # `iostat -s` has sums only; all are taken for writes
    split = "r/s" in cells and "w/s" in cells
    if split:
        reads, writes = cells["r/s"], cells["w/s"]
    elif "tps" in cells:
        reads, writes = shared_out(cells["tps"], read_bytes, write_bytes)
    else:
        return None
    queue = cells.get("aqu-sz", cells.get("avgqu-sz"))
    return IntervalSample(
        seconds, reads, writes, read_bytes, write_bytes, queue, _latency_ms(cells, reads, writes)
    ), split


def _bytes_of(cells: Mapping[str, float], way: str) -> float | None:
    for name, value in cells.items():
        column = _BYTES_COLUMN.fullmatch(name)
        if column is not None and _way(column) == way:
            return value
    return None


def _way(column: re.Match[str]) -> str:
    short = column["way"] or column["word"] or column["word2"] or column["way3"] or ""
    if short == "d":
        return "discard"
    return {"": "all", "r": "read", "w": "write"}[short[:1]]


def _latency_ms(cells: Mapping[str, float], reads: float, writes: float) -> float | None:
    if "await" in cells:
        return cells["await"]
    if "r_await" in cells and "w_await" in cells and reads + writes > 0:
        return (cells["r_await"] * reads + cells["w_await"] * writes) / (reads + writes)
    return None
