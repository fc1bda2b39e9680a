"""Columns of iostat, sar and sadf: names over the years, units, agreement with each other, and the rows that are judged.

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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ....base.errors import InputError
from ..measured import BYTES_MAX, COUNT_MAX, NOT_A_NUMBER, IntervalSample, possible, shared_out

CONTRADICTION = "size.row.contradiction"
"""The code of the error."""
SLACK = 0.05
"""Figures of one row come from the same counters. What is left after rounding is a difference of clocks within a report."""
QUEUE_RATIO_MIN = 5.0
"""A queue and the time of its requests are counted apart in the kernel, and requests reach over the ends of an interval."""
QUEUE_GAP_MIN = 1.0
"""Requests. Below one of them a ratio says little."""
WAIT_MAX_MS = 250.0
"""Longer requests reach over the ends of the shortest interval, of a second, so often that Little's law does not hold in it."""
BUSY_MAX = 1000.0
"""Per cent: kernels that count a device of many queues twice show a little more than 100, an overflow shows millions."""
HUNDREDTH = 2
"""Decimals that sysstat prints unless ``--dec`` says otherwise."""
_PRINTED_NUMBER = re.compile(r"(?P<whole>-?\d+)(?:[.,](?P<part>\d+))?(?P<unit>[kMGTPBs%]?)")
_UNIT = {"B": 1, "s": 512, "": 1 << 10, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_KIB_SIZES = {"read": "rareq-sz", "write": "wareq-sz", "all": "areq-sz"}
_SECTORS_SIZE = "avgrq-sz"
"""The mean size of sysstat before 11.5.7, in sectors."""
_RATES = {"read": ("r/s",), "write": ("w/s",)}
_TIMES = {"r/s": "r_await", "w/s": "w_await", "d/s": "d_await", "f/s": "f_await"}
_BUSY = ("%util", "util", "util-percent")


@dataclass(frozen=True)
class PrintedFigure:
    """A figure, and half of the last digit that was printed."""

    value: float
    half: float

    @property
    def low(self) -> float:
        """The least that it may have been before it was rounded."""
        return max(0.0, self.value - self.half)

    @property
    def high(self) -> float:
        """The most that it may have been."""
        return self.value + self.half


@dataclass(frozen=True)
class PrintedRow:
    """The figures of a row by column, of bytes in bytes."""

    figures: Mapping[str, PrintedFigure]
    bytes_columns: Mapping[str, str]
    """Way (``read``, ``write``, ``discard``, ``all``) -> column."""
    scales: Mapping[str, float]
    """Column -> bytes of its unit."""

    def in_sectors(self, way: str) -> bool:
        """Whether the bytes of a way are sectors that were not converted: as printed they contradict the row, as sectors they do not."""
        column = self.bytes_columns.get(way)
        if column is None or self.bytes_agree(way) is not False:
            return False
        was = self.figures[column]
        factor = _UNIT["s"] / self.scales[column]
        converted = {**self.figures, column: PrintedFigure(was.value * factor, was.half * factor)}
        return PrintedRow(converted, self.bytes_columns, self.scales).bytes_agree(way) is True

    def require_agreement(self, where: str, *, is_interval: bool = True) -> None:
        """:class:`InputError` where figures contradict each other. A queue is judged for intervals only: its counter overflows."""
        for way in (*_RATES, "all"):
            if self.bytes_agree(way) is False:
                raise self._bytes_refused(way, where)
        busy = next((self.figures[name] for name in _BUSY if name in self.figures), None)
        if busy is not None and busy.low > BUSY_MAX:
            raise _refused(where, "%util", busy.value, 100.0, "a device is busy for at most 100 % of the time")
        if busy is not None:
            self._require_service_time(busy, where)
        if is_interval:
            self._require_queue(where)

    def bytes_agree(self, way: str) -> bool | None:
        """Whether requests times their size are the bytes; ``None`` where a column is missing."""
        product = self._product(way)
        if product is None:
            return None
        rates, size, totals = product
        low = sum(rate.low for rate in rates) * size.low * (1 - SLACK)
        high = sum(rate.high for rate in rates) * size.high * (1 + SLACK)
        least = sum(total.low for total in totals)
        most = sum(total.high for total in totals)
        return low <= most and least <= high

    def _product(self, way: str) -> tuple[list[PrintedFigure], PrintedFigure, list[PrintedFigure]] | None:
        """Requests, their mean size, and the bytes that they must be."""
        if way != "all":
            names = (*_RATES[way], _KIB_SIZES[way], self.bytes_columns.get(way, ""))
            if not all(name in self.figures for name in names):
                return None
            return [self.figures[names[0]]], self.figures[names[1]], [self.figures[names[2]]]
        size = self.figures.get(_KIB_SIZES["all"], self.figures.get(_SECTORS_SIZE))
        rates = self._requests()
        columns = [self.bytes_columns["all"]] if "all" in self.bytes_columns else self._ways()
        if size is None or not rates or not columns:
            return None
        return rates, size, [self.figures[column] for column in columns]

    def _ways(self) -> list[str]:
        """The columns of bytes that make all of them together; none without reads or writes."""
        if not {"read", "write"} <= set(self.bytes_columns):
            return []
        return [self.bytes_columns[way] for way in ("read", "write", "discard") if way in self.bytes_columns]

    def _requests(self) -> list[PrintedFigure]:
        """All requests per second, as one figure or as several."""
        if "tps" in self.figures:
            return [self.figures["tps"]]
        if not {"r/s", "w/s"} <= set(self.figures):
            return []
        return [self.figures[name] for name in ("r/s", "w/s", "d/s") if name in self.figures]

    def _bytes_refused(self, way: str, where: str) -> InputError:
        product = self._product(way)
        assert product is not None, "only what was compared is refused"
        rates, size, totals = product
        column = " + ".join(
            self.bytes_columns[text] for text in ([way] if way in self.bytes_columns else ("read", "write"))
        )
        scale = self.scales[self.bytes_columns.get(way) or self.bytes_columns["read"]]
        printed = sum(total.value for total in totals) / scale
        requests = sum(rate.value for rate in rates)
        computed = requests * size.value / scale
        return _refused(
            where,
            column,
            printed,
            computed,
            f"{requests:,.2f} requests of {size.value / 1024:,.2f} KiB make {computed:,.2f}",
        )

    def _require_service_time(self, busy: PrintedFigure, where: str) -> None:
        """``svctm`` is the busy share of the time over the requests in it."""
        service, rates = self.figures.get("svctm"), self._requests()
        if service is None or not rates:
            return
        low = sum(rate.low for rate in rates) * service.low / 10 * (1 - SLACK)
        high = sum(rate.high for rate in rates) * service.high / 10 * (1 + SLACK)
        if low > busy.high or high < busy.low:
            requests = sum(rate.value for rate in rates)
            computed = requests * service.value / 10
            why = f"{requests:,.2f} requests of {service.value:g} ms (svctm) make {computed:,.2f}"
            raise _refused(where, "%util", busy.value, computed, why)

    def _require_queue(self, where: str) -> None:
        queue = self.figures.get("aqu-sz", self.figures.get("avgqu-sz"))
        held = list(self._held())
        if queue is None or not queue.value or not held or any(wait.value > WAIT_MAX_MS for _, wait in held):
            return  # where one is 0 it is not counted: by drivers without statistics, and in some kernels
        low = sum(rate.low * wait.low for rate, wait in held) / 1000
        high = sum(rate.high * wait.high for rate, wait in held) / 1000
        value = sum(rate.value * wait.value for rate, wait in held) / 1000
        far = queue.low > QUEUE_RATIO_MIN * high or low > QUEUE_RATIO_MIN * queue.high
        if value and far and abs(queue.value - value) >= QUEUE_GAP_MIN:
            why = f"by Little's law the requests and the time that each took make {value:,.2f}"
            raise _refused(where, "aqu-sz" if "aqu-sz" in self.figures else "avgqu-sz", queue.value, value, why)

    def _held(self) -> Iterator[tuple[PrintedFigure, PrintedFigure]]:
        """Requests per second of each kind, and the milliseconds that one takes; nothing where one of them is unknown."""
        if "await" in self.figures:
            for rate in self._requests():
                yield rate, self.figures["await"]
            return
        if {"r_await", "w_await", "r/s", "w/s"} <= set(self.figures):
            for name, wait in _TIMES.items():
                if name in self.figures and wait in self.figures:
                    yield self.figures[name], self.figures[wait]


def _refused(where: str, column: str, printed: float, computed: float, why: str) -> InputError:
    return InputError(
        f"{where}: {column} is {printed:,.2f}, and {why}: the row contradicts itself",
        remedy="give the file as it was written; or remove the damaged interval, or measure again",
        code=CONTRADICTION,
        data={"where": where, "column": column, "printed": printed, "computed": computed},
    )


def figure_of(word: object, scale: float, decimals: int) -> PrintedFigure | None:
    """A cell as a figure, in bytes where ``scale`` is bytes of the column's unit; ``None`` where it is not a number.

    ``decimals`` is how many digits a number of a JSON document had, which the number itself does not say.
    """
    if isinstance(word, int | float) and not isinstance(word, bool):
        digits = 0 if isinstance(word, int) else decimals
        return PrintedFigure(float(word) * scale, 0.5 * 10.0**-digits * scale)
    result = _PRINTED_NUMBER.fullmatch(word) if isinstance(word, str) else None
    if result is None:
        return None
    part = result["part"] or ""
    own = result["unit"] if result["unit"] in _UNIT and result["unit"] else None
    if own is not None and scale != 1:
        scale = _UNIT[own]
    return PrintedFigure(float(f"{result['whole']}.{part or 0}") * scale, 0.5 * 10.0 ** -len(part) * scale)


def decimals_of(words: Sequence[object]) -> int:
    """Digits behind the point of the numbers of a JSON row: of 8.0 and 0.25 two."""
    parts = [repr(word).partition(".")[2] for word in words if isinstance(word, float)]
    return max((len(part) for part in parts if part.isdigit()), default=HUNDREDTH)


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


TWICE = "size.device.twice"
"""The code of the error about a device that an interval has twice, with different figures."""
_LISTED_MAX = 5
"""Damaged devices that a note names."""


class Judge:
    """Reads rows, refuses what is wrong in those that count, and remembers what is wrong in the others."""

    def __init__(self, wanted: Collection[str] = ()) -> None:
        self._wanted = frozenset(name.removeprefix("/dev/") for name in wanted)
        self._damaged: dict[str, str] = {}
        self._repeated: dict[str, str] = {}

    def counts(self, device: str) -> bool:
        """Whether the rows of a device matter."""
        return not self._wanted or device.removeprefix("/dev/") in self._wanted

    def row(
        self, device: str, names: Sequence[str], words: Sequence[object], where: str, *, is_interval: bool = True
    ) -> dict[str, float]:
        """The cells of a row. :class:`InputError` where it is damaged or contradicts itself, of a device that counts."""
        try:
            cells = row(names, words, where)
            figures_of(names, words).require_agreement(where, is_interval=is_interval)
        except InputError as error:
            if self.counts(device):
                if self._wanted:
                    raise
                raise InputError(
                    error.message,
                    remedy=f"{error.remedy}; if {device} is not the volume, name the one that is: --device NAME",
                    code=error.code,
                    data={**error.data, "device": device},
                ) from error
            self._damaged.setdefault(device, where)
            return {}
        return cells

    def text_row(
        self, names: Sequence[str], words: Sequence[str], where: str, *, may_be_cut: bool, is_interval: bool = True
    ) -> tuple[str, dict[str, float]] | None:
        """A device and its cells, of a line. ``None`` where the line was cut off, or begins another table.

        :class:`InputError` as of :meth:`row`, and when cells are missing in the middle of a file: the device would seem to
        have been idle.
        """
        place = device_column(names)
        if len(words) != len(names):
            if may_be_cut or not has_numbers(words):
                return None
            device = words[0] if place == 0 else words[-1]
            if not self.counts(device):
                self._damaged.setdefault(device, where)
                return device, {}
            raise InputError(
                f"{where}: {len(words)} cells below {len(names)} columns",
                remedy="remove the damaged interval, or measure again",
                code="size.row.cells",
                data={"where": where, "cells": len(words), "columns": len(names)},
            )
        pairs = [pair for at, pair in enumerate(zip(names, words, strict=True)) if at != place]
        device = words[place]
        row = self.row(device, [name for name, _ in pairs], [word for _, word in pairs], where, is_interval=is_interval)
        return device, row

    def repeated(self, device: str, where: str) -> None:
        """Remember that an interval has a device twice, with the same figures."""
        self._repeated.setdefault(device, where)

    def notes(self) -> list[str]:
        """What a reader must know of rows that were not used."""
        notes = []
        if self._damaged:
            named = [f"{device} ({where})" for device, where in list(self._damaged.items())[:_LISTED_MAX]]
            more = len(self._damaged) - len(named)
            notes.append(
                f"rows of devices that were not asked for are damaged and were not judged: {', '.join(named)}"
                + (f" and {more} more" if more else "")
            )
        notes += [
            f"{device} is in an interval twice with the same figures ({where}); it counts once"
            for device, where in self._repeated.items()
            if self.counts(device)
        ]
        return notes


@dataclass
class IntervalTable:
    """What one interval says of each device."""

    cells: dict[str, dict[str, float]] = field(default_factory=dict)
    """The cells of each device by column."""
    places: dict[str, str] = field(default_factory=dict)
    """Where each device was found."""

    def add(self, judge: Judge, device: str, row: dict[str, float], where: str) -> None:
        """Add the cells of a device. :class:`InputError` where it has others already, which one of two rows must be wrong for."""
        known = self.cells.setdefault(device, {})
        both = known.keys() & row.keys()
        if both and judge.counts(device):
            if any(known[name] != row[name] for name in both):
                raise InputError(
                    f"{where}: {device} is in this interval twice, with other figures than at {self.places[device]}",
                    remedy="give the output of one run, or remove one of the two rows",
                    code=TWICE,
                    data={"device": device, "where": where, "first": self.places[device]},
                )
            judge.repeated(device, where)
        known.update(row)
        self.places.setdefault(device, where)
