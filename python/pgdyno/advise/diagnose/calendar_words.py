"""A calendar of hours on a screen: a row for each day, a letter for the limit that bound in each hour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby

from ...analysis.binding.consumers import TITLES as CONSUMERS
from ...analysis.binding.rules import Limit
from ...base.text import percent
from . import words
from .calendar import Calendar, Hour

LETTERS: dict[Limit | None, str] = {
    "volume_iops": "I",
    "volume_throughput": "T",
    "burst_bucket": "B",
    "instance_bandwidth": "E",
    "volume_latency": "L",
    "commit_latency": "C",
    "checkpoints": "K",
    "server_cpu": "P",
    "locks": "X",
    "client": "-",
    "harness": "H",
    "synchronous_standby": "S",
    "connections": "N",
    "no_answer": "A",
    None: "?",
}
"""Small where the confidence is low. An hour without a watch is blank."""
MISSED = "!"
"""The server did not answer."""
HOURS = 24
DAY_WIDTH = len("Wed 2026-11-25  ")
SHOWN = 3
"""Limits of the headline."""
SPANS_MAX = 8
"""Stretches that the screen lists; the rest is in the JSON."""


@dataclass(frozen=True)
class LimitSpan:
    """Hours that follow each other with the same limit."""

    hours: tuple[Hour, ...]

    @property
    def limit(self) -> Limit | None:
        """Their limit."""
        return self.hours[0].verdict.limit

    @property
    def text(self) -> str:
        """``Wed 2026-11-25 09:00 to 12:00``."""
        first, last = self.hours[0].begin, self.hours[-1].begin
        day = f"{last:%a %Y-%m-%d} " if last.date() != first.date() else ""
        return f"{first:%a %Y-%m-%d %H}:00 to {day}{last:%H}:59"


def lines(calendar: Calendar, width: int = words.WIDTH_MAX) -> Iterator[str]:
    """The screen."""
    yield from words.entry("server", ", ".join([calendar.server, *watched_parts(calendar)]), width)
    yield ""
    yield from _grid(calendar, width)
    yield ""
    used = dict.fromkeys(hour.verdict.limit for hour in calendar.hours if hour.watches)
    key = [f"{LETTERS[limit]} {words.name_of(limit)}" for limit in LETTERS if limit in used]
    if any(hour.missed for hour in calendar.hours):
        key.append(f"{MISSED} a watch without an answer")
    yield from words.entry("key", "; ".join([*key, "a small letter: probably"]), width)
    yield from _spans(calendar, width)
    yield from _missed(calendar, width)
    yield from words.remedy_lines(calendar.worst, width)
    for path, why in calendar.unreadable.items():
        yield from words.entry("not read", f"{path}: {why}", width)


def stretches(calendar: Calendar) -> list[LimitSpan]:
    """Hours that follow each other with the same answer, in their order."""
    return [
        LimitSpan(tuple(hours))
        for _, group in groupby(
            calendar.hours, key=lambda hour: (bool(hour.watches), hour.verdict.limit, hour.verdict.role)
        )
        for hours in _unbroken(list(group))
    ]


def spans(calendar: Calendar) -> list[LimitSpan]:
    """Stretches in which a limit bound, without those of clients that ask for no more; the longest first."""
    binding = [span for span in stretches(calendar) if span.limit not in (None, "client")]
    return sorted(binding, key=lambda span: -len(span.hours))


def span_words(span: LimitSpan) -> str:
    """``volume IOPS of the wal volume, in 97 % of the seconds; mostly reads (61 %)``."""
    if not span.hours[0].watches:
        return f"no answer: {span.hours[0].missed[0].partition(' ')[2]}"
    strongest = max(span.hours, key=lambda hour: hour.verdict.share)
    verdict, consumer = strongest.verdict, strongest.consumer
    sure = words.SURE[verdict.confidence]
    filled = "" if consumer is None else f"; mostly {CONSUMERS[consumer[0]]} ({percent(consumer[1])})"
    share = "" if verdict.limit is None else f", in {percent(verdict.share)} of the seconds"
    return f"{sure}{words.name_of(verdict.limit, verdict.role)}{share}{filled}"


def headline(calendar: Calendar) -> str:
    """``volume IOPS in 9 of 24 hours; nothing binds: the clients ask for no more in 15``."""
    hours = sum(1 for hour in calendar.hours if hour.watches)
    counted = list(calendar.counted.items())
    if not counted:
        return f"No limit stands out in any of {hours} hours{missed_words(calendar)}"
    parts = [f"{words.name_of(limit)} in {count}" for limit, count in counted[:SHOWN]]
    text = f"{parts[0]} of {hours} hour{'s' if hours != 1 else ''}" + "".join(f"; {part}" for part in parts[1:])
    text += missed_words(calendar)
    return text[:1].upper() + text[1:]


def missed_words(calendar: Calendar) -> str:
    """``; 1 watch without an answer``."""
    count = sum(len(hour.missed) for hour in calendar.hours)
    return f"; {count:,} watch{'es' if count != 1 else ''} without an answer" if count else ""


def watched_parts(calendar: Calendar) -> list[str]:
    """How many watches, how long, and when."""
    watches = calendar.watches
    seconds = sum(watch.found.run.record.measure.seconds for watch in watches)
    first, last = calendar.hours[0].begin, calendar.hours[-1].begin
    zone = first.tzname() or ""
    return [
        f"{len(watches):,} watches of {seconds / len(watches):,.0f} s",
        f"{first:%Y-%m-%d %H}:00 to {last:%Y-%m-%d %H}:59 {zone}".strip(),
    ]


def _grid(calendar: Calendar, width: int) -> Iterator[str]:
    """As wide as fits: three, two or one column for each hour."""
    each = next((size for size in (3, 2) if DAY_WIDTH + HOURS * size <= width), 1)
    labels = {
        3: [f"{hour:02d} " for hour in range(HOURS)],
        2: [f"{hour:02d}" if hour % 2 == 0 else "  " for hour in range(HOURS)],
    }
    head = labels.get(each) or [str(hour // 10) if hour % 6 == 0 else " " for hour in range(HOURS)]
    if each == 1:
        head = list("0     6     12    18     ")[:HOURS]
    yield (" " * DAY_WIDTH + "".join(head)).rstrip()
    by_day: dict[date, dict[int, Hour]] = {}
    for hour in calendar.hours:
        by_day.setdefault(hour.begin.date(), {})[hour.begin.hour] = hour
    for day, hours in by_day.items():
        cells = [_cell(hours.get(place), each).ljust(each) for place in range(HOURS)]
        yield f"{day:%a %Y-%m-%d}".ljust(DAY_WIDTH) + "".join(cells).rstrip()


def _cell(hour: Hour | None, each: int) -> str:
    if hour is None:
        return " "
    if not hour.watches:
        return MISSED
    letter = LETTERS[hour.verdict.limit]
    letter = letter.lower() if hour.verdict.confidence == "low" else letter
    if not hour.missed:
        return letter
    return f"{letter}{MISSED}" if each > 1 else MISSED


def _missed(calendar: Calendar, width: int) -> Iterator[str]:
    """The times at which the server did not answer."""
    shown = [f"{hour.begin:%a %Y-%m-%d} {why}" for hour in calendar.hours for why in hour.missed]
    for place, text in enumerate(shown[-SPANS_MAX:]):
        yield from words.entry("no answer" if place == 0 else "", text, width)
    if len(shown) > SPANS_MAX:
        yield from words.entry("", f"and {len(shown) - SPANS_MAX:,} more before these, in the JSON", width)


def _spans(calendar: Calendar, width: int) -> Iterator[str]:
    binding = spans(calendar)
    if not binding:
        text = (
            "the clients ask for no more"
            if any("client" in hour.verdict.shares for hour in calendar.hours)
            else "none stands out"
        )
        yield from words.entry("limit", f"none bound in any hour that was watched: {text}", width)
        return
    for place, span in enumerate(binding[:SPANS_MAX]):
        yield from words.entry("limit" if place == 0 else "", f"{span.text}: {span_words(span)}", width)
    if len(binding) > SPANS_MAX:
        yield from words.entry("", f"and {len(binding) - SPANS_MAX} more stretches, in the JSON", width)


def _unbroken(hours: Sequence[Hour]) -> Iterator[list[Hour]]:
    """Hours of one limit, split where a time without a watch is longer than an hour: nothing is known of that time."""
    run: list[Hour] = []
    for hour in hours:
        if run and _apart(run[-1].begin, hour.begin) > 1:
            yield run
            run = []
        run.append(hour)
    if run:
        yield run


def _apart(earlier: datetime, later: datetime) -> float:
    return (later - earlier).total_seconds() / 3600
