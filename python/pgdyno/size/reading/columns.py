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
from collections.abc import Mapping

from pgdyno.size.measured import Sample, shared_out

SECTOR_BYTES = 512
"""What sysstat calls a sector or a block, whatever the device's own is."""
_UNIT_BYTES = {
    "k": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "B": 1, "s": SECTOR_BYTES,
}  # fmt: skip
_NUMBER = re.compile(r"(-?\d+(?:[.,]\d+)?)([kMGTPBs%]?)")
_BYTES_COLUMN = re.compile(
    r"(?P<way>[rwd])?(?:(?P<unit>[kMG])B|(?P<block>sec|Blk))(?:/s)?"  # rkB/s, wMB/s, rsec/s, kB/s; sadf's rkB
    r"|(?P<unit2>[kMG])B_(?P<word>read|wrtn)/s|Blk_(?P<word2>read|wrtn)/s"  # the basic report of iostat
    r"|(?P<way3>rd|wr)_sec(?:/s)?"  # the old sar
)
_OTHERS = {"r/s", "w/s", "d/s", "f/s", "tps", "aqu-sz", "avgqu-sz"}
"""Names of which each table has at least one, beside bytes."""


def is_header(names: list[str]) -> bool:
    """Whether these words are the names of columns: a device's, and at least a rate."""
    return any(name.rstrip(":") in ("Device", "DEV") for name in names) and any(
        _BYTES_COLUMN.fullmatch(name) or name in _OTHERS for name in names
    )


def device_column(names: list[str]) -> int:
    """Where the device's name stands: the first column, or the last one with ``--pretty``."""
    return next(place for place, name in enumerate(names) if name.rstrip(":") in ("Device", "DEV"))


def number(text: str, name: str) -> float:
    """One cell, bytes where the column ``name`` has bytes. ``12,5`` of other locales and ``1.5M`` of ``-h`` are read too.

    :class:`ValueError` when it is no number.
    """
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(text)
    value = float(found[1].replace(",", "."))
    column = _BYTES_COLUMN.fullmatch(name)
    if column is None:
        return value
    unit = found[2] if found[2] in _UNIT_BYTES else (column["unit"] or column["unit2"])
    return value * (_UNIT_BYTES[unit] if unit else SECTOR_BYTES)


def numbers(row: Mapping[str, object]) -> dict[str, float]:
    """The numbers of a row that was written as JSON, as :func:`number` gives them."""
    return {
        name: number(str(value), name)
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def sample_of(cells: Mapping[str, float], seconds: float) -> tuple[Sample, bool] | None:
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
    return Sample(seconds, reads, writes, read_bytes, write_bytes, queue, _latency_ms(cells, reads, writes)), split


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
