"""Minutes of the wall clock, as CloudWatch has them, over samples of CLOCK_MONOTONIC."""

from __future__ import annotations

from dataclasses import dataclass

from ...base.errors import InputError
from .samples import CounterHistory

MINUTE_S = 60
"""CloudWatch's period of AWS/EBS: a volume is sampled once a minute."""
_SECOND_NS = 1_000_000_000
_WHOLE_NS = 50_000_000
"""What a period may lack and still be whole: one sample's distance from its deadline."""


@dataclass(frozen=True)
class Period:
    """One minute, or the part of it that was sampled."""

    unix_s: int
    """When the minute began, in seconds since 1970: the timestamp of its datapoint."""
    begin_ns: int
    """Begin of what was sampled of it, CLOCK_MONOTONIC."""
    end_ns: int
    whole: bool
    """Whether all of it was sampled."""

    @property
    def seconds(self) -> float:
        """How much of it was sampled."""
        return (self.end_ns - self.begin_ns) / _SECOND_NS


def minutes(samples: CounterHistory, *, begin_ns: int | None = None, end_ns: int | None = None) -> list[Period]:
    """The minutes from the first sample to the last, the earliest first; the outer ones may be parts.

    Minutes end where the wall clock's do, as CloudWatch's. With ``begin_ns`` the first begins there instead (a run's measure phase),
    and a whole minute is one of that phase; ``end_ns`` is where the last ends.
    """
    first_ns, last_ns = samples.begin_ns, samples.end_ns
    if begin_ns is None:
        unix_ns = samples.anchor.to_unix_ns(first_ns)
        origin_ns = samples.anchor.to_monotonic_ns(unix_ns - unix_ns % (MINUTE_S * _SECOND_NS))
    else:
        origin_ns, first_ns = begin_ns, max(first_ns, begin_ns)
    last_ns = last_ns if end_ns is None else min(last_ns, end_ns)
    minutes = []
    while origin_ns < last_ns:
        next_ns = origin_ns + MINUTE_S * _SECOND_NS
        begin, end = max(origin_ns, first_ns), min(next_ns, last_ns)
        if end > begin:
            whole = begin - origin_ns <= _WHOLE_NS and next_ns - end <= _WHOLE_NS
            unix_s = samples.anchor.to_unix_ns(origin_ns) // _SECOND_NS
            minutes.append(Period(unix_s, begin, end, whole))
        origin_ns = next_ns
    return minutes


def require_period(period_s: int) -> int:
    """A length of time over which minutes can be summed up. :class:`InputError` when it is none."""
    if period_s < MINUTE_S or period_s % MINUTE_S:
        raise InputError(
            f"{period_s} s is not a valid period: a volume is sampled once a minute",
            remedy="use a multiple of 60, such as 60 or 300",
        )
    return period_s
