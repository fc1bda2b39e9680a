"""How numbers are written, wherever a reader sees them: significant digits, shares, ratios, sizes, money, lengths of time.

A value that is not known is :data:`UNKNOWN`. Documents for programs have the numbers themselves.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Collection, Sequence
from itertools import zip_longest
from typing import Any, Final

UNKNOWN: Final = "–"
INTERVAL_REACH_MAX = 10.0
"""Times the ratio, either way: an interval that reaches further and has 1 in it tells nothing, and its ends are noise."""
TOO_FEW: Final = "too few runs"
"""In place of an interval that says nothing."""
PROBABILITY_MIN = 1e-6
"""A smaller probability is not told from the failure of anything else in a data centre."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""What a terminal acts on, what XML has no way to write, and what turns the order of the letters after it round."""
REPLACEMENT: Final = "\ufffd"
"""Stands for a character that is not shown."""
WRAPPED_MIN = 16
"""Columns that words are wrapped in at least: fewer cannot be read."""
_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB")


def printable(text: str) -> str:
    """Text for a terminal or a page: a tab and the end of a line stay, each other control character is :data:`REPLACEMENT`."""
    return _CONTROL.sub(REPLACEMENT, text)


def parsed_json(text: str | bytes) -> Any:
    """What JSON from outside says. :class:`ValueError` where it is none, also for one that is nested more deeply than Python reads."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def has_control(text: str) -> bool:
    """Whether :func:`printable` would change a text."""
    return _CONTROL.search(text) is not None


def number(value: float | None, digits: int = 3) -> str:
    """A number with ``digits`` significant digits and thousands separated: 3.10, 31.0, 3,104; next to nothing has no five zeros."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    if 0 < value < 0.001:
        return "< 0.001"
    # Rounded first, because 9.999 has one digit before the point and 10.0 two.
    rounded = float(f"{value:.{digits - 1}e}") if abs(value) < 10 ** (digits - 1) else value
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:,.{decimals}f}"


def count(value: float | None) -> str:
    """How many there were: whole where it is, else with one decimal."""
    return UNKNOWN if value is None else f"{value:,.1f}".removesuffix(".0")


def times(ratio: float) -> str:
    """A ratio: three digits, and one more around 1, where 0.998 and 1.003 must not look alike."""
    return f"{ratio:.3f}" if 0.9 <= ratio < 1.1 else number(ratio)


def percent(share: float | None) -> str:
    """A share or a relative difference: ``36 %``, below ten per cent ``5.2 %``; a little is not nothing."""
    if share is None:
        return UNKNOWN
    if share == 0:
        return "0 %"
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{share * 100:.1f} %" if share < 0.0995 else f"{share * 100:,.0f} %"


def probability(share: float) -> str:
    """A small probability, two digits: ``0.001 %``."""
    if share < PROBABILITY_MIN:
        return f"< {PROBABILITY_MIN * 100:f}".rstrip("0") + " %"
    return f"{share * 100:.2g} %"


def interval(low: float | None, high: float | None) -> str:
    """``970 to 985``; a dash for one replicate. Of what cannot be negative: one that reaches down to 0 is of too few runs."""
    if low is None or high is None:
        return UNKNOWN
    return TOO_FEW if low <= 0 < high else f"{number(low)} to {number(high)}"


def ratio_interval(low: float | None, high: float | None) -> str:
    """``0.995 to 1.003``; a dash for one replicate, and :data:`TOO_FEW` where the interval tells nothing."""
    if low is None or high is None:
        return UNKNOWN
    reach = math.sqrt(high / low) if low > 0 else math.inf
    if reach > INTERVAL_REACH_MAX and low <= 1 <= high:
        return TOO_FEW
    return f"{times(low)} to {times(high)}"


def money(usd: float | None) -> str:
    """US dollars: cents where there are any, three digits below a dollar."""
    if usd is None:
        return UNKNOWN
    if 0 < usd < 0.001:
        return "< $0.001"
    if 0 < usd < 1:
        return f"${usd:,.2f}" if usd == round(usd, 2) else f"${number(usd)}"
    return f"${usd:,.0f}" if usd == round(usd) else f"${usd:,.2f}"


def size(size_bytes: float | None) -> str:
    """Bytes in the largest binary unit that keeps the number at 1 or above."""
    if size_bytes is None:
        return UNKNOWN
    value, place = float(size_bytes), 0
    while value >= 1024 and place < len(_SIZES) - 1:
        value, place = value / 1024, place + 1
    return f"{value:,.1f}".removesuffix(".0") + f" {_SIZES[place]}"


def gib(size_bytes: int | None) -> str:
    """A capacity in GiB, as providers sell it."""
    return UNKNOWN if size_bytes is None else f"{size_bytes / 2**30:,.0f} GiB"


def duration(seconds: float) -> str:
    """A length of time in the unit that suits it: ``90 s``, ``33 min``, ``4 h``, ``3 days``."""
    for unit, length in (("days", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} s"


def plain(value: object) -> str:
    """A recorded value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(plain(item) for item in value) or UNKNOWN
    return UNKNOWN if value is None or value == "" else str(value)


def address(host: str | None, port: int | None) -> str:
    """Where a server is: ``db.example.org:5432``, ``[::1]:5432``, ``/run/postgresql (port 5432)`` for a socket's folder."""
    if port is None:
        return plain(host)
    if host is not None and host.startswith(("/", "@")):
        return f"{host} (port {port})"
    if host is not None and ":" in host:
        return f"[{host}]:{port}"
    return f"{host or 'this host'}:{port}"


def fitted(rows: Sequence[Sequence[str]], width: int | None, left: Collection[int] = (0,)) -> list[str]:
    """:func:`aligned`, at most ``width`` columns wide where that is not None; the first row is the header.

    Columns of words are wrapped, the widest first. Where that is not enough each row is a block: its first cell, and below it the
    others with their titles.
    """
    lines = aligned(rows, left)
    if width is None or max(map(len, lines)) <= width:
        return lines
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    least = [max(WRAPPED_MIN, len(title)) for title in rows[0]]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        widest = max((place for place in left if widths[place] > least[place]), key=widths.__getitem__, default=None)
        if widest is None:
            return _blocks(rows, width)
        widths[widest] -= 1
    wrapped: list[list[str]] = []
    for row in rows:
        cells = [
            textwrap.wrap(cell, widths[place], break_on_hyphens=False) or [""] if place in left else [cell]
            for place, cell in enumerate(row)
        ]
        wrapped += [list(line) for line in zip_longest(*cells, fillvalue="")]
    return aligned(wrapped, left)


def _blocks(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Each row below the header as its first cell, and below it the others with their titles."""
    blocks = []
    for row in rows[1:]:
        blocks += textwrap.wrap(row[0], width, break_on_hyphens=False) or [""]
        for title, cell in zip(rows[0][1:], row[1:], strict=True):
            text = f"{title}: {cell}" if title else cell
            blocks += textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return blocks


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,), gap: str = "  ") -> list[str]:
    """Rows as lines of text, each column as wide as it needs: names in the columns of ``left``, numbers in the others."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        gap.join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def cpus_of(text: str) -> set[int]:
    """The CPUs of a list in the kernel's notation: ``0-2,5``."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus
