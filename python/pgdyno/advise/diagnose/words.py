"""A diagnosis on a screen that is understood in ten seconds: the limit, who fills it, two remedies."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from pgdyno.analysis.binding.remedy import Remedy

from ...analysis.binding.consumers import TITLES as CONSUMERS
from ...analysis.binding.rules import TITLES, Limit
from ...analysis.figures import DATA
from ...base.text import address, duration, money, number, percent, size, times
from .diagnosis import OF_STORAGE, Diagnosis, WatchCost
from .free import Free
from .published import RuleFinding
from .statements import StatementLoad
from .titles import WATCHED

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
    yield f"{cost.samples:,} looks" + (f" ({cost.lost:,} lost)" if cost.lost else "")
    if cost.interval_ms is None:
        return
    used = cost.server_cpu_share
    cpu = "" if used is None else f", which took {percent(used)} of a core of the server"
    yield f"one each {number(cost.interval_ms)} ms{cpu}"


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
