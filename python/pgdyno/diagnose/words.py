"""A diagnosis on a screen that is understood in ten seconds: the limit, who fills it, two remedies."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from pgdyno.analysis.binding.limits import TITLES
from pgdyno.analysis.binding.uses import TITLES as CONSUMERS
from pgdyno.analysis.volume_figures import DATA
from pgdyno.diagnose.diagnosis import OF_STORAGE
from pgdyno.diagnose.titles import WATCHED
from pgdyno.text import address, duration, money, number, percent, size, times

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.analysis.binding.limits import Limit
    from pgdyno.analysis.binding.remedy import Remedy
    from pgdyno.diagnose.diagnosis import Cost, Diagnosis
    from pgdyno.diagnose.free import Free
    from pgdyno.diagnose.published import Finding
    from pgdyno.diagnose.statements import Statement

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


def limit_title(found: Diagnosis) -> str:
    """The limit in a few words."""
    verdict, given = found.binding.verdict, found.binding.evidence.given
    if found.silence is not None and found.silence.binds:
        return found.silence.title
    if verdict.limit is None and found.wrong:
        return found.wrong[0].title
    if verdict.limit == "client" and given.pooled:
        return "no limit of the server: clients that wait in the connection pooler are not seen"
    return name_of(verdict.limit, verdict.role, watched=not given.driven)


def headline(found: Diagnosis) -> str:
    """The limit, how sure, and in what share of the time."""
    verdict = found.binding.verdict
    has_share = verdict.limit is not None and not (found.silence is not None and found.silence.binds)
    share = f", in {percent(verdict.share)} of {found.run.record.measure.seconds:,.0f} s" if has_share else ""
    return SURE[verdict.confidence] + limit_title(found) + share


def name_of(limit: Limit | None, role: str | None = None, *, watched: bool = True) -> str:
    """A limit in a few words, with the volume that it is one of where that is not the data's."""
    if limit is None:
        return "no limit stands out"
    title = WATCHED.get(limit, TITLES[limit]) if watched else TITLES[limit]
    return title if role in (None, DATA) else f"{title} of the {role} volume"


def summary(found: Diagnosis) -> str:
    """The verdict in a line: limit, share of the seconds, the largest use of the volume."""
    verdict = found.binding.verdict
    text = headline(found)
    if found.consumers and verdict.limit in OF_STORAGE:
        text += f"; mostly {CONSUMERS[found.consumers[0].what]} ({percent(found.consumers[0].share)})"
    return text


def lines(found: Diagnosis, width: int = WIDTH_MAX) -> Iterator[str]:
    """The screen."""
    verdict = found.binding.verdict
    yield from entry("limit", headline(found), width)
    shown = _other_limits(found)
    if shown:
        yield from entry("", f"of the seconds: {', '.join(shown)}", width)
    for place, one in enumerate(found.evidence):
        yield from entry("because" if place == 0 else "", one, width)
    if found.consumers and verdict.limit in (None, *OF_STORAGE):
        yield from entry("used by", _consumers(found), width)
    yield from remedy_lines(found, width)
    for place, statement in enumerate(found.statements[:SHOWN_STATEMENTS]):
        yield from entry("statement" if place == 0 else "", statement_words(statement), width)
    for place, finding in enumerate(found.findings):
        yield from entry("rules" if place == 0 else "", finding_words(finding), width)
    for place, one in enumerate(found.notes):
        yield from entry("note" if place == 0 else "", one, width)
    for place, one in enumerate(found.missing):
        yield from entry("not seen" if place == 0 else "", one, width)
    from_files = found.run.record.world.server is None and found.sources
    label = "watched" if found.cost is not None else "read" if from_files else "run"
    yield from entry(label, watched_words(found), width)
    notes = dict.fromkeys(note for one in found.sources for note in one.measured.notes)
    for place, note in enumerate(notes):
        yield from entry("note" if place == 0 else "", note, width)


def _other_limits(found: Diagnosis) -> list[str]:
    """Every limit with its share where none stands out, or another has a large part of the seconds too."""
    verdict = found.binding.verdict
    if found.wrong or (found.silence is not None and found.silence.binds):
        return []
    shares = list(verdict.shares.items())
    if verdict.limit is not None and not any(part >= OTHER_SHARE for limit, part in shares if limit != verdict.limit):
        return []
    watched = not found.binding.evidence.given.driven
    kept = [one for one in shares if one[1] >= OTHER_SHARE] if verdict.limit is not None else shares[:3]
    # In a watch "client" means that nothing was seen to bind, which does not answer anything beside another limit.
    names = {"client": "no limit"} if watched else {}
    return [f"{names.get(limit) or name_of(limit, watched=watched)} {percent(part)}" for limit, part in kept]


def _consumers(found: Diagnosis) -> str:
    """``reads 61 %, checkpoints 20 %, of 2,998 IOPS and 23.4 MiB/s``; of another volume than the data's, which."""
    shown = [f"{CONSUMERS[one.what]} {percent(one.share)}" for one in found.consumers[:SHOWN_CONSUMERS]]
    iops, mib_per_s = (sum(getattr(one, name) for one in found.consumers) for name in ("iops", "mib_per_s"))
    volume = "" if found.consumers_role == DATA else f" of the {found.consumers_role} volume"
    return f"{', '.join(shown)}; of {number(iops)} IOPS and {number(mib_per_s)} MiB/s{volume}"


def remedy_lines(found: Diagnosis, width: int) -> Iterator[str]:
    """The best that costs nothing, and what the limit asks for."""
    texts = [_free(one) for one in found.free[:1]]
    if found.remedy is not None:
        texts.append(remedy_words(found.remedy))
    for place, one in enumerate(texts):
        yield from entry("remedy" if place == 0 else "or", one, width)


def _free(one: Free) -> str:
    return one.action + ("" if one.ratio_max is None else f"; up to {times(one.ratio_max)} times the work")


def remedy_words(one: Remedy) -> str:
    """With its price and the most that it can bring."""
    parts = [one.action]
    if one.usd_per_month is not None:
        more = one.usd_more_per_month
        change = "" if more is None else f", {money(abs(more))} {'less' if more < 0 else 'more'}"
        parts.append(f"{money(one.usd_per_month)} a month{change}")
    if one.tps_ratio_max is not None:
        then = "" if one.then is None else f" (the next limit is {TITLES[one.then]})"
        parts.append(f"up to {times(one.tps_ratio_max)} times the work{then}")
    return "; ".join(parts)


def statement_words(one: Statement) -> str:
    """What it moved, most first."""
    parts = {"read": one.read_bytes, "of WAL": one.wal_bytes, "of temporary files": one.temp_bytes}
    moved = [
        f"{size(moved_bytes)} {what}"
        for what, moved_bytes in sorted(parts.items(), key=lambda part: -part[1])
        if moved_bytes
    ]
    text = "" if one.query is None else f": {' '.join(one.query.split())}"
    return f"queryid {one.queryid}: {', '.join(moved)}, in {one.calls:,} calls of {number(one.ms_mean)} ms{text}"


def finding_words(one: Finding) -> str:
    """The rule, what it says here, and whether that is the verdict too."""
    return f"{one.rule} ({one.source}): {one.figure}; {'agrees' if one.agrees else 'does not agree'}: {one.why}"


def watched_words(found: Diagnosis) -> str:
    """The server, for how long, and what the watch cost."""
    return ", ".join(watched_parts(found))


def watched_parts(found: Diagnosis) -> list[str]:
    """The same, one by one."""
    record = found.run.record
    server, workload = record.world.server, record.workload
    files = [f"{one.measured.origin} of {one.measured.device}" for one in found.sources]
    if server is None and found.sources:
        return [*files, duration(record.measure.seconds)]
    what = [f"PostgreSQL {record.postgres.version}"]
    if server is not None and server.host:
        what.append(f"at {address(server.host, server.port)}")
    what += [
        text for key, text in (("standby", "a standby"), ("pooler", "through a connection pooler")) if workload.get(key)
    ]
    return [*what, f"{record.measure.seconds:,.0f} s", *_cost(found.cost), *files]


def _cost(cost: Cost | None) -> Iterator[str]:
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
