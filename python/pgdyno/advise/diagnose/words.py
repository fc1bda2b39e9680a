"""A diagnosis on a screen that is understood in ten seconds: the limit, who fills it, two remedies."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby

from pgdyno.analysis.binding.remedy import Remedy

from ...analysis.binding.consumers import TITLES as CONSUMERS
from ...analysis.binding.rules import TITLES, Limit
from ...analysis.figures import DATA
from ...base.text import address, duration, money, number, percent, size, times
from .activity import StatementLoad
from .calendar import Calendar, Hour
from .diagnosis import OF_STORAGE, Diagnosis, WatchCost
from .published import WATCHED, RuleFinding
from .remedies import Free

SHOWN_CONSUMERS = 4
SHOWN_STATEMENTS = 3
"""The rest is in the JSON."""
OTHER_SHARE = 0.20
"""Share of the seconds from which another limit than the verdict's is named."""
WIDTH_MAX = 100
_LABEL = 10
_KEPT_TOGETHER = "\N{NO-BREAK SPACE}%"
"""A number and its sign stand on one line."""
SURE = {"high": "", "low": "probably ", "unknown": ""}


def limit_title(diagnosis: Diagnosis) -> str:
    """The limit in a few words."""
    verdict, given = diagnosis.binding.verdict, diagnosis.binding.evidence.given
    if diagnosis.silence is not None and diagnosis.silence.binds:
        return diagnosis.silence.title
    if verdict.limit is None and diagnosis.wrong:
        return diagnosis.wrong[0].title
    if verdict.limit == "client" and given.pooled:
        return "no limit of the server: clients that wait in the connection pooler are not seen"
    return name_of(verdict.limit, verdict.role, watched=not given.driven)


def headline(diagnosis: Diagnosis) -> str:
    """The limit, how sure, and in what share of the time."""
    verdict = diagnosis.binding.verdict
    has_share = verdict.limit is not None and not (diagnosis.silence is not None and diagnosis.silence.binds)
    share = f", in {percent(verdict.share)} of {diagnosis.run.record.measure.seconds:,.0f} s" if has_share else ""
    return SURE[verdict.confidence] + limit_title(diagnosis) + share


def name_of(limit: Limit | None, role: str | None = None, *, watched: bool = True) -> str:
    """A limit in a few words, with the volume that it is one of where that is not the data's."""
    if limit is None:
        return "no limit stands out"
    title = WATCHED.get(limit, TITLES[limit]) if watched else TITLES[limit]
    return title if role in (None, DATA) else f"{title} of the {role} volume"


def summary(diagnosis: Diagnosis) -> str:
    """The verdict in a line: limit, share of the seconds, the largest use of the volume."""
    verdict = diagnosis.binding.verdict
    text = headline(diagnosis)
    if diagnosis.consumers and verdict.limit in OF_STORAGE:
        text += f"; mostly {CONSUMERS[diagnosis.consumers[0].what]} ({percent(diagnosis.consumers[0].share)})"
    return text


def lines(diagnosis: Diagnosis, width: int = WIDTH_MAX) -> Iterator[str]:
    """The screen."""
    verdict = diagnosis.binding.verdict
    yield from entry("limit", headline(diagnosis), width)
    shown = _other_limits(diagnosis)
    if shown:
        yield from entry("", f"of the seconds: {', '.join(shown)}", width)
    for place, text in enumerate(diagnosis.evidence):
        yield from entry("because" if place == 0 else "", text, width)
    if diagnosis.consumers and verdict.limit in (None, *OF_STORAGE):
        yield from entry("used by", _consumers(diagnosis), width)
    yield from remedy_lines(diagnosis, width)
    for place, statement in enumerate(diagnosis.statements[:SHOWN_STATEMENTS]):
        yield from entry("statement" if place == 0 else "", statement_words(statement), width)
    for place, finding in enumerate(diagnosis.findings):
        yield from entry("rules" if place == 0 else "", finding_words(finding), width)
    for place, text in enumerate(diagnosis.notes):
        yield from entry("note" if place == 0 else "", text, width)
    for place, text in enumerate(diagnosis.missing):
        yield from entry("not seen" if place == 0 else "", text, width)
    from_files = diagnosis.run.record.world.server is None and diagnosis.sources
    label = "watched" if diagnosis.cost is not None else "read" if from_files else "run"
    yield from entry(label, watched_words(diagnosis), width)
    notes = dict.fromkeys(note for source in diagnosis.sources for note in source.measured.notes)
    for place, note in enumerate(notes):
        yield from entry("note" if place == 0 else "", note, width)


def _other_limits(diagnosis: Diagnosis) -> list[str]:
    """Every limit with its share where none stands out, or another has a large part of the seconds too."""
    verdict = diagnosis.binding.verdict
    if diagnosis.wrong or (diagnosis.silence is not None and diagnosis.silence.binds):
        return []
    shares = list(verdict.shares.items())
    if verdict.limit is not None and not any(part >= OTHER_SHARE for limit, part in shares if limit != verdict.limit):
        return []
    watched = not diagnosis.binding.evidence.given.driven
    kept = [share for share in shares if share[1] >= OTHER_SHARE] if verdict.limit is not None else shares[:3]
    # In a watch "client" means that nothing was seen to bind, which does not answer anything beside another limit.
    names = {"client": "no limit"} if watched else {}
    return [f"{names.get(limit) or name_of(limit, watched=watched)} {percent(part)}" for limit, part in kept]


def _consumers(diagnosis: Diagnosis) -> str:
    """``reads 61 %, checkpoints 20 %, of 2,998 IOPS and 23.4 MiB/s``; of another volume than the data's, which."""
    shown = [
        f"{CONSUMERS[consumer.what]} {percent(consumer.share)}" for consumer in diagnosis.consumers[:SHOWN_CONSUMERS]
    ]
    iops, mib_per_s = (
        sum(getattr(consumer, name) for consumer in diagnosis.consumers) for name in ("iops", "mib_per_s")
    )
    volume = "" if diagnosis.consumers_role == DATA else f" of the {diagnosis.consumers_role} volume"
    return f"{', '.join(shown)}; of {number(iops)} IOPS and {number(mib_per_s)} MiB/s{volume}"


def remedy_lines(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    """The best that costs nothing, and what the limit asks for."""
    texts = [_free(free) for free in diagnosis.free[:1]]
    if diagnosis.remedy is not None:
        texts.append(remedy_words(diagnosis.remedy))
    for place, text in enumerate(texts):
        yield from entry("remedy" if place == 0 else "or", text, width)


def _free(free: Free) -> str:
    return free.action + ("" if free.ratio_max is None else f"; up to {times(free.ratio_max)} times the work")


def remedy_words(remedy: Remedy) -> str:
    """With its price and the most that it can bring."""
    parts = [remedy.action]
    if remedy.usd_per_month is not None:
        more = remedy.usd_more_per_month
        change = "" if more is None else f", {money(abs(more))} {'less' if more < 0 else 'more'}"
        parts.append(f"{money(remedy.usd_per_month)} a month{change}")
    if remedy.tps_ratio_max is not None:
        then = "" if remedy.then is None else f" (the next limit is {TITLES[remedy.then]})"
        parts.append(f"up to {times(remedy.tps_ratio_max)} times the work{then}")
    return "; ".join(parts)


def statement_words(load: StatementLoad) -> str:
    """What it moved, most first."""
    parts = {"read": load.read_bytes, "of WAL": load.wal_bytes, "of temporary files": load.temp_bytes}
    moved = [
        f"{size(moved_bytes)} {what}"
        for what, moved_bytes in sorted(parts.items(), key=lambda part: -part[1])
        if moved_bytes
    ]
    text = "" if load.query is None else f": {' '.join(load.query.split())}"
    return f"queryid {load.queryid}: {', '.join(moved)}, in {load.calls:,} calls of {number(load.ms_mean)} ms{text}"


def finding_words(finding: RuleFinding) -> str:
    """The rule, what it says here, and whether that is the verdict too."""
    return f"{finding.rule} ({finding.source}): {finding.figure}; {'agrees' if finding.agrees else 'does not agree'}: {finding.why}"


def watched_words(diagnosis: Diagnosis) -> str:
    """The server, for how long, and what the watch cost."""
    return ", ".join(watched_parts(diagnosis))


def watched_parts(diagnosis: Diagnosis) -> list[str]:
    """The same, one by one."""
    record = diagnosis.run.record
    server, workload = record.world.server, record.workload
    files = [f"{source.measured.origin} of {source.measured.device}" for source in diagnosis.sources]
    if server is None and diagnosis.sources:
        return [*files, duration(record.measure.seconds)]
    what = [f"PostgreSQL {record.postgres.version}"]
    if server is not None and server.host:
        what.append(f"at {address(server.host, server.port)}")
    what += [
        text for key, text in (("standby", "a standby"), ("pooler", "through a connection pooler")) if workload.get(key)
    ]
    return [*what, f"{record.measure.seconds:,.0f} s", *_cost(diagnosis.cost), *files]


def _cost(cost: WatchCost | None) -> Iterator[str]:
    if cost is None:
        return
    yield f"{cost.samples:,} samples" + (f" ({cost.lost:,} lost)" if cost.lost else "")
    if cost.interval_ms is None:
        return
    used = cost.server_cpu_share
    cpu = "" if used is None else f", costing {percent(used)} of one core of the server"
    yield f"one every {number(cost.interval_ms)} ms{cpu}"


def entry(label: str, text: str, width: int) -> list[str]:
    """A label and its text, wrapped beside it."""
    wrapped = textwrap.wrap(
        text.replace(" %", _KEPT_TOGETHER),
        max(40, min(width, WIDTH_MAX)),
        initial_indent=f"{label:<{_LABEL}}",
        subsequent_indent=" " * _LABEL,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_KEPT_TOGETHER, " %") for line in wrapped]


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


def calendar_lines(calendar: Calendar, width: int = WIDTH_MAX) -> Iterator[str]:
    """The screen."""
    yield from entry("server", ", ".join([calendar.server, *calendar_parts(calendar)]), width)
    yield ""
    yield from _grid(calendar, width)
    yield ""
    used = dict.fromkeys(hour.verdict.limit for hour in calendar.hours if hour.watches)
    key = [f"{LETTERS[limit]} {name_of(limit)}" for limit in LETTERS if limit in used]
    if any(hour.missed for hour in calendar.hours):
        key.append(f"{MISSED} a watch without an answer")
    yield from entry("key", "; ".join([*key, "a small letter: probably"]), width)
    yield from _spans(calendar, width)
    yield from _missed(calendar, width)
    yield from remedy_lines(calendar.worst, width)
    for path, why in calendar.unreadable.items():
        yield from entry("not read", f"{path}: {why}", width)


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
    sure = SURE[verdict.confidence]
    filled = "" if consumer is None else f"; mostly {CONSUMERS[consumer[0]]} ({percent(consumer[1])})"
    share = "" if verdict.limit is None else f", in {percent(verdict.share)} of the seconds"
    return f"{sure}{name_of(verdict.limit, verdict.role)}{share}{filled}"


def calendar_headline(calendar: Calendar) -> str:
    """``volume IOPS in 9 of 24 hours; no bottleneck: the clients send no more work in 15``."""
    hours = sum(1 for hour in calendar.hours if hour.watches)
    counted = list(calendar.counted.items())
    if not counted:
        return f"No limit stands out in any of {hours} hours{missed_words(calendar)}"
    parts = [f"{name_of(limit)} in {count}" for limit, count in counted[:SHOWN]]
    text = f"{parts[0]} of {hours} hour{'s' if hours != 1 else ''}" + "".join(f"; {part}" for part in parts[1:])
    text += missed_words(calendar)
    return text[:1].upper() + text[1:]


def missed_words(calendar: Calendar) -> str:
    """``; 1 watch without an answer``."""
    count = sum(len(hour.missed) for hour in calendar.hours)
    return f"; {count:,} watch{'es' if count != 1 else ''} without an answer" if count else ""


def calendar_parts(calendar: Calendar) -> list[str]:
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
        yield from entry("no answer" if place == 0 else "", text, width)
    if len(shown) > SPANS_MAX:
        yield from entry("", f"and {len(shown) - SPANS_MAX:,} more before these, in the JSON", width)


def _spans(calendar: Calendar, width: int) -> Iterator[str]:
    binding = spans(calendar)
    if not binding:
        text = (
            "the clients send no more work"
            if any("client" in hour.verdict.shares for hour in calendar.hours)
            else "none stands out"
        )
        yield from entry("limit", f"no limit bound in any watched hour: {text}", width)
        return
    for place, span in enumerate(binding[:SPANS_MAX]):
        yield from entry("limit" if place == 0 else "", f"{span.text}: {span_words(span)}", width)
    if len(binding) > SPANS_MAX:
        yield from entry("", f"and {len(binding) - SPANS_MAX} more stretches, in the JSON", width)


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
