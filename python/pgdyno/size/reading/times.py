"""Times of day as sysstat prints them, and how long an interval was.

A date may be written month first or day first and with two digits of a year; so only the time of day is used. That is
enough for intervals of less than a day.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

DAY_S = 86_400.0
SET_BACK_S = DAY_S / 2
"""A time of day that is so much later is an earlier one: at the end of summer time, or when a clock is set right."""
SET_BACK = "the clock was set back within an interval: its length is taken to be the usual one"
"""What a reader must know of it."""
_TIME = re.compile(r"(?<![\d:])(\d{1,2}):(\d{2}):(\d{2})\b(?:\s*([AaPp])\.?[Mm]\b)?")
_EPOCH = re.compile(r"\s*(\d{9,11})\s*")


def seconds_of_day(text: str) -> float | None:
    """Seconds since midnight of the first time of day in ``text``, or of seconds since 1970 alone; ``None``: neither."""
    found = _TIME.search(text)
    if found is None:
        epoch = _EPOCH.fullmatch(text)
        return float(epoch[1]) % DAY_S if epoch else None
    hour = int(found[1])
    if found[4]:
        hour = hour % 12 + (12 if found[4] in "Pp" else 0)
    return hour * 3600.0 + int(found[2]) * 60.0 + int(found[3])


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
