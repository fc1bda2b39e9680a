"""Times as sysstat prints them: the time of day, how long an interval was, and the instant on the wall clock.

A date may be written month first or day first and with two digits of a year; so lengths of intervals come from the time of day
alone. Where the instant matters, the date is read in the order that brings it nearest to the one that it is compared with.
"""

from __future__ import annotations

import contextlib
import re
import statistics
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone

DAY_S = 86_400.0
SET_BACK_S = DAY_S / 2
"""A time of day that is so much later is an earlier one: at the end of summer time, or when a clock is set right."""
SET_BACK = "the clock was set back within an interval: its length is taken to be the usual one"
"""What a reader must know of it."""
_TIME = re.compile(r"(?<![\d:])(\d{1,2}):(\d{2}):(\d{2})\b(?:\s*([AaPp])\.?\s?[Mm]\b)?")
_DOTTED = re.compile(r"(?:\d\.?\s+|^)(\d{1,2})\.(\d{2})\.(\d{2})(?=\s|$)")
"""``10.00.01``, as Finnish writes it: behind a date, or alone."""
_HOURS_MAX = 24
_EPOCH = re.compile(r"\s*(\d{9,11})\s*")
_DATE = re.compile(r"(?<![\d:])(\d{1,4})([-/.]) ?(\d{1,2})\2 ?(\d{1,4})(?![\d:])")
_WORDED_DATE = re.compile(r"(\d{4})[年년] ?(\d{1,2})[月월] ?(\d{1,2})[日일]")
_WORDED_TIME = re.compile(r"(\d{1,2})[時时시] ?(\d{1,2})[分분] ?(\d{1,2})[秒초]")
"""Japanese, Chinese and Korean have words between the figures."""
_ZONE = re.compile(r":\d{2}(?:[.,]\d+)?\s*(Z|UTC|GMT|([+-])(\d{2}):?(\d{2}))\b")
_CENTURY = 2000
"""Of years with two digits."""


def plain(line: str) -> str:
    """The line with its date and time in figures alone, ``2026-11-25 10:00:01``, where a locale writes words between them."""
    if line.isascii():
        return line
    return _WORDED_TIME.sub(r"\1:\2:\3", _WORDED_DATE.sub(r"\1-\2-\3", line))


def seconds_of_day(text: str, *, dotted: bool = False) -> float | None:
    """Seconds since midnight of the first time of day in ``text``, or of seconds since 1970 alone; ``None``: neither.

    ``dotted``: a text that begins with ``10.00.01`` begins with a time and not with a date.
    """
    match = _TIME.search(text)
    if match is None:
        epoch = _EPOCH.fullmatch(text)
        if epoch:
            return float(epoch[1]) % DAY_S
        return _dotted_seconds(text, dotted)
    hour = int(match[1])
    if match[4]:
        hour = hour % 12 + (12 if match[4] in "Pp" else 0)
    return hour * 3600.0 + int(match[2]) * 60.0 + int(match[3])


def _dotted_seconds(text: str, alone: bool) -> float | None:
    result = next((match for match in _DOTTED.finditer(text) if alone or match.start() > 0), None)
    if result is None:
        return None
    hour, minute, second = (int(result[place]) for place in (1, 2, 3))
    return hour * 3600.0 + minute * 60.0 + second if hour < _HOURS_MAX and minute < 60 and second < 60 else None


def elapsed_s(begin: float, end: float) -> float:
    """Seconds from one time of day to the next, over midnight if need be."""
    return (end - begin) % DAY_S


def without_set_back(lengths: Sequence[float]) -> tuple[list[float], bool]:
    """Lengths of intervals, and whether a clock was set back in one, which would seem to last for most of a day.

    It would outweigh all others in every percentile. Where each is as long, they are what they seem.
    """
    usual = [length for length in lengths if length <= SET_BACK_S]
    if not usual or len(usual) == len(lengths):
        return list(lengths), False
    median = statistics.median(usual)
    return [length if length <= SET_BACK_S else median for length in lengths], True


def unix_s(text: str, near_s: float | None = None) -> float | None:
    """Seconds since 1970 of the date and time in ``text``, or of such seconds alone; ``None`` without both.

    Without a zone it is a time of this machine's. A date that can be read in several ways is the one nearest to ``near_s``; without
    it, the American order comes first.
    """
    epoch = _EPOCH.fullmatch(text)
    if epoch:
        return float(epoch[1])
    of_day, date = seconds_of_day(text), _DATE.search(text)
    if of_day is None or date is None:
        return None
    zone = _zone(text)
    results = [(day.replace(tzinfo=zone) + timedelta(seconds=of_day)).timestamp() for day in _days(date)]
    if near_s is not None:
        return min(results, key=lambda result: abs(result - near_s), default=None)
    return results[0] if results else None


def _zone(text: str) -> timezone | None:
    match = _ZONE.search(text)
    if match is None:
        return None
    if match[2] is None:
        return UTC
    offset = timedelta(hours=int(match[3]), minutes=int(match[4]))
    return timezone(-offset if match[2] == "-" else offset)


def _days(date: re.Match[str]) -> Iterator[datetime]:
    """The days that a date may be, the likeliest first."""
    first, between, middle, last = int(date[1]), date[2], int(date[3]), int(date[4])
    month_first, day_first, year_first = (last, first, middle), (last, middle, first), (first, middle, last)
    orders = [day_first, month_first] if between == "." else [month_first, day_first, year_first]
    for year, month, day in [year_first] if len(date[1]) == 4 else orders:
        with contextlib.suppress(ValueError):
            yield datetime(year if year >= 100 else _CENTURY + year, month, day)  # noqa: DTZ001 (the zone is set by the caller)
