"""A diagnosis, or a calendar of many, as one HTML file that needs nothing else: the sections and figures of the reports."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pgdyno import __version__
from pgdyno.analysis.binding.circumstances import is_watched
from pgdyno.analysis.binding.limits import LIMITS
from pgdyno.analysis.binding.uses import TITLES as CONSUMERS
from pgdyno.diagnose import calendar_words, drawings, words
from pgdyno.diagnose.diagnosis import OF_STORAGE
from pgdyno.report import courses, figures, server
from pgdyno.report.binding import Stretch
from pgdyno.report.render import drawing, moment, rendered, write_whole
from pgdyno.report.section import Block, Drawing, Grid, Note, Part, Section, Sentences
from pgdyno.store.names import EXPERIMENT_FILE
from pgdyno.text import UNKNOWN, money, number, percent, size, times

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pgdyno.analysis.binding.limits import Limit
    from pgdyno.diagnose.calendar import Calendar
    from pgdyno.diagnose.diagnosis import Diagnosis

_CAPTIONS = {
    "timeline": "Each second since the watch began.",
    "waits": "Mean number of the clients' sessions by the type of wait that pg_stat_activity showed. CPU: active and waiting for nothing that"
    " PostgreSQL knows of. Client: idle for less than a second, or in a transaction and waiting for its next statement.",
}
ROWS_MAX = 400
"""Rows of the table of hours, the newest; the rest is in the JSON."""


def write_page(found: Diagnosis | Calendar, path: Path) -> None:
    """Write the page to ``path``, over what was there. :class:`pgdyno.errors.OutputError` when that fails."""
    from pgdyno.diagnose.calendar import Calendar

    write_whole(path, (of_calendar(found) if isinstance(found, Calendar) else of_diagnosis(found)).encode(), "--html")


def of_diagnosis(found: Diagnosis) -> str:
    """The page of one watch, or of a run."""
    record = found.run.record
    title = words.headline(found)
    return _page(
        [
            _limit(found),
            *_remedies(found),
            *_consumers(found),
            *_statements(found),
            *_published(found),
            *_courses(found),
        ],
        headline=title[:1].upper() + title[1:],
        context=[*words.watched_parts(found), *_bought(found)],
        missing=found.missing,
        moment=moment(record.anchor.to_unix_ns(record.measure.begin_ns)),
        source=found.run.record.arm if found.sources and record.world.server is None else str(found.run.path),
    )


def of_calendar(found: Calendar) -> str:
    """The page of a directory of watches."""
    worst = found.worst
    binding = calendar_words.spans(found)
    return _page(
        [_hours(found), *_remedies(worst), *_consumers(worst), _table(found)],
        headline=calendar_words.headline(found),
        context=[found.server, *calendar_words.watched_parts(found), *_bought(worst)],
        missing=worst.missing if binding else (),
        moment=moment(int(found.watches[-1].begin_unix_s * 1e9)),
        source=f"the {len(found.watches):,} watches in {found.path}",
    )


def key_of(limits: Iterable[Limit | None]) -> tuple[tuple[str, str], ...]:
    """(class of the page, name) of limits, in their order."""
    present = set(limits)
    return tuple((drawings.colour_of(limit), words.name_of(limit)) for limit in LIMITS if limit in present)


def _page(sections: Sequence[Section], **values: Any) -> str:
    kept = [section for section in sections if section.parts]
    with figures.unchecked():
        drawn = {part.name: drawing(part.name, part.alternative, part.make)
                 for section in kept for part in section.parts if isinstance(part, Drawing)}  # fmt: skip
    return rendered(
        "diagnose.html", "pgdyno.diagnose", sections=kept, drawn=drawn, many=False, version=__version__, **values
    )


def _limit(found: Diagnosis) -> Section:
    """Every second of the watch, and the evidence."""
    spans = found.binding.spans
    stretches = [
        Stretch(
            end - begin,
            f"second {begin + 1} to {end}: {words.name_of(limit)}",
            "" if limit is None else drawings.colour_of(limit),
        )
        for begin, end, limit in spans
    ]
    shares = found.binding.verdict.shares.items()
    described = ", ".join(f"{words.name_of(limit)} {percent(share)} of the seconds" for limit, share in shares)
    values = {
        "stretches": stretches,
        "key": key_of(limit for _, _, limit in spans),
        "described": described or "not explained",
    }
    note = f"Bar: each second. Confidence: {found.binding.verdict.confidence}."
    parts = (Block("seconds.html", values), Note(note), Sentences(found.evidence), Sentences(found.notes))
    return Section("limit", "What limits it", parts if found.notes else parts[:-1])


def _remedies(found: Diagnosis) -> list[Section]:
    rows = [(one.action, "nothing", _ratio(one.ratio_max), "") for one in found.free]
    if (one := found.remedy) is not None:
        price = UNKNOWN if one.usd_per_month is None else f"{money(one.usd_per_month)} a month"
        if one.spec is None:
            price = ""
        then = "" if one.then is None else words.name_of(one.then)
        rows.append((one.action, price, _ratio(one.tps_ratio_max), then))
    grid = Grid(("remedy", "costs", "times the work, at most", "next limit"), tuple(rows), look="plain remedies")
    return [Section("remedies", "What to do", (grid,))] if rows else []


def _consumers(found: Diagnosis) -> list[Section]:
    """Who uses the volume; a bar for each, and the figures."""
    if not found.consumers or found.binding.verdict.limit not in (None, *OF_STORAGE):
        return []
    rows = tuple(
        (CONSUMERS[one.what], percent(one.share), number(one.iops), number(one.mib_per_s)) for one in found.consumers
    )
    caption = (
        f"Share of the {found.consumers_role} volume's requests, or of its bytes where throughput is the limit. An estimate: the page cache"
        " is between PostgreSQL and the volume."
    )
    parts = (
        Drawing("consumers", "Who uses the volume", caption, partial(drawings.consumers, found.consumers)),
        Grid(("consumer", "share", "IOPS", "MiB/s"), rows),
    )
    return [Section("consumers", "Who uses the volume", parts)]


def _statements(found: Diagnosis) -> list[Section]:
    """Those that read, log or spill most; nothing without pg_stat_statements."""
    rows = tuple(
        (
            one.query or str(one.queryid),
            f"{one.calls:,}",
            number(one.ms_mean),
            size(one.read_bytes),
            size(one.wal_bytes),
            size(one.temp_bytes),
        )
        for one in found.statements
    )
    head = (
        "statement" if any(one.query for one in found.statements) else "queryid",
        "calls",
        "mean ms",
        "read",
        "WAL",
        "temporary files",
    )
    note = Note(
        "By pg_stat_statements, in all databases, during the watch. Read: not in shared_buffers; the page cache may have had it."
    )
    return [Section("statements", "Which statements move most", (Grid(head, rows), note))] if rows else []


def _published(found: Diagnosis) -> list[Section]:
    """What rules of documents say of the same figures."""
    texts = tuple(words.finding_words(one) for one in found.findings)
    return [Section("rules", "What published rules say", (Sentences(texts),))] if texts else []


def _courses(found: Diagnosis) -> list[Section]:
    """The report's sections of one run; those of a run among others are in its experiment's report."""
    experiment = found.run.path.parents[1]
    if not is_watched(found.run.record) or not (experiment / EXPERIMENT_FILE).is_file():
        return []
    from pgdyno.analysis.compare import summarise

    comparison = summarise(experiment)
    sections = (courses.section(comparison), server.section(comparison))
    return [
        replace(one, parts=tuple(_said_of_a_watch(part) for part in one.parts)) for one in sections if one is not None
    ]


def _said_of_a_watch(part: Part) -> Part:
    """The same figure without the words of experiments: it has no driver and no replicates."""
    if isinstance(part, Drawing) and part.name in _CAPTIONS:
        return replace(part, caption=_CAPTIONS[part.name])
    return part


def _hours(found: Calendar) -> Section:
    caption = (
        "Each cell: the limit that bound in most seconds of that hour's watches; paler where the confidence is low. A dot: the server did not"
        " answer in a watch. No cell: no watch."
    )
    key = key_of(hour.verdict.limit for hour in found.hours)
    cells = Drawing(
        "calendar", "Which limit bound in each hour", caption, partial(drawings.calendar, found.hours), key=key
    )
    stretches = tuple(f"{span.text}: {calendar_words.span_words(span)}" for span in calendar_words.spans(found))
    return Section("calendar", "Which limit bound when", (cells, Sentences(stretches[: calendar_words.SPANS_MAX])))


def _table(found: Calendar) -> Section:
    """Every stretch of hours with one limit, those in which nothing bound and those without an answer too."""
    missed = [(f"{hour.begin:%a %Y-%m-%d}", why, "") for hour in found.hours if hour.watches for why in hour.missed]
    rows = [
        (span.text, calendar_words.span_words(span), span.hours[0].verdict.confidence)
        for span in calendar_words.stretches(found)[-ROWS_MAX:]
    ]
    grid = Grid(("hours", "limit", "confidence"), (*missed[-ROWS_MAX:], *rows), look="plain hours")
    return Section("hours", "Hours", (grid,))


def _bought(found: Diagnosis) -> list[str]:
    volumes = found.run.record.world.volumes.items()
    return [f"bought: {role} {volume.spec['spec']}" for role, volume in volumes if volume.spec]


def _ratio(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else times(ratio)
