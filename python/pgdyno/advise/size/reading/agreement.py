"""Whether the figures of a row agree with each other: sysstat prints the same thing several times.

Requests times their mean size are the bytes. Requests times the time that each takes are the mean queue (Little's law).
Requests times ``svctm``, which sysstat printed until 12.0, are the share of the time in which the device was busy. A row that
contradicts itself was damaged: by a program (sysstat 12.2 writes ``wMB/s`` of JSON in sectors), by a counter that overflowed, or
by hand, when a unit was changed. Which of its figures is right cannot be known, so the row is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....base.errors import InputError

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
_NUMBER = re.compile(r"(?P<whole>-?\d+)(?:[.,](?P<part>\d+))?(?P<unit>[kMGTPBs%]?)")
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
    result = _NUMBER.fullmatch(word) if isinstance(word, str) else None
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
