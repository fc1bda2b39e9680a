"""Cron expressions of AWS: minutes, hours, day of the month, month, day of the week, year; times are UTC.

Source: Amazon EventBridge User Guide, "Cron expressions" (names of days and months, ``L``, ``W`` and ``#`` are not taken).
"""

from __future__ import annotations

import calendar
import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ...base.errors import InputError

FIELDS = (
    ("minutes", 0, 59),
    ("hours", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 1, 7),
    ("year", 1970, 2199),
)
EXAMPLE = "cron(0 3 1 * ? *)"
"""The first day of each month at 03:00."""
_DIGITS = 9
"""No value has more."""
_FIELD_CHARACTERS = 2000
"""More than all values of any field take."""
_DAY_OF_MONTH, _MONTH, _DAY_OF_WEEK, _YEAR = 2, 3, 4, 5
_ANY = ("*", "?")
_YEARS = FIELDS[_YEAR][2] - FIELDS[_YEAR][1] + 1


@dataclass(frozen=True)
class Cron:
    """The values that each field takes."""

    text: str
    values: tuple[frozenset[int], ...]

    def __str__(self) -> str:
        """As it was written."""
        return self.text

    def gaps_s(self) -> tuple[float, float] | None:
        """The shortest and the longest time from one instant to the next; ``None`` without an instant.

        Of a year that may be any, all 28 are looked at after which days of the week and leap years repeat. A single instant has
        the longest time 0.
        """
        minutes, hours, days, months, weekdays, years = self.values
        times = sorted(hour * 3600 + minute * 60 for hour in hours for minute in minutes)
        shortest = min((later - earlier for earlier, later in pairwise(times)), default=math.inf)
        longest = max((later - earlier for earlier, later in pairwise(times)), default=0)
        any_year = len(years) == _YEARS
        before: int | None = None
        for year in range(2028, 2028 + 29) if any_year else sorted(years):
            for month in sorted(months):
                for day in range(1, calendar.monthrange(year, month)[1] + 1):
                    date = dt.date(year, month, day)
                    if day not in days or date.isoweekday() % 7 + 1 not in weekdays:
                        continue
                    if before is not None:
                        gap = (date.toordinal() - before) * 86_400 + times[0] - times[-1]
                        shortest, longest = min(shortest, gap), max(longest, gap)
                    before = date.toordinal()
        return None if before is None else (shortest, longest)

    def instants(self, begin: dt.datetime, end: dt.datetime) -> Iterator[dt.datetime]:
        """Each instant from ``begin`` on and before ``end``."""
        minutes, hours, days, months, weekdays, years = self.values
        day = begin.replace(hour=0, minute=0, second=0, microsecond=0)
        while day < end:
            # 1 is Sunday, as in the provider's guide.
            weekday = day.isoweekday() % 7 + 1
            if day.day in days and day.month in months and weekday in weekdays and day.year in years:
                for hour in sorted(hours):
                    for minute in sorted(minutes):
                        at = day + dt.timedelta(hours=hour, minutes=minute)
                        if begin <= at < end:
                            yield at
            day += dt.timedelta(days=1)


def read_cron(text: str, what: str) -> Cron:
    """A cron expression; ``what`` is the key that an :class:`InputError` names."""
    inside = text.strip().removeprefix("cron(").removesuffix(")").split()
    remedy = f"write six fields as in {EXAMPLE}"
    if len(inside) != len(FIELDS):
        raise InputError(
            f"{what}: `{text}` has {len(inside)} fields, and a cron expression has {len(FIELDS)}", remedy=remedy
        )
    if (inside[_DAY_OF_MONTH] == "?") == (inside[_DAY_OF_WEEK] == "?"):
        raise InputError(f"{what}: one of the two days of `{text}` is `?`, and the other is not", remedy=remedy)
    values = tuple(_values(field, *known, what) for field, known in zip(inside, FIELDS, strict=True))
    return Cron(text.strip(), values)


def _values(field: str, name: str, low: int, high: int, what: str) -> frozenset[int]:
    numbers: set[int] = set()
    if len(field) > _FIELD_CHARACTERS:
        raise InputError(
            f"{what}: {name} has {len(field):,} characters",
            remedy=f"write it as in {EXAMPLE}",
            code="policy.cron.unreadable",
        )
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin = low if first in _ANY else _whole(first)
        end = high if first in _ANY or (step and not last) else _whole(last or first)
        every = _whole(step) if step else 1
        if begin is None or end is None or not every or not low <= begin <= end <= high:
            raise InputError(
                f"{what}: `{field}` is not understood as {name}",
                remedy=f"write values from {low} to {high}, as in {EXAMPLE}",
            )
        numbers.update(range(begin, end + 1, every))
    return frozenset(numbers)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None
