"""A diagnosis, or a calendar of many, as one HTML file that needs nothing else: the sections and figures of the reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pgdyno import __version__
from pgdyno.analysis.binding.consumers import TITLES, Consumer
from pgdyno.analysis.binding.consumers import TITLES as CONSUMERS
from pgdyno.report import figures
from pgdyno.report.binding import COLOURS, Stretch
from pgdyno.report.figures.parts import NARROW_PX, RIGHT_PX, Sheet
from pgdyno.report.render import drawing, moment, rendered, write_whole
from pgdyno.report.section import Block, Drawing, Grid, Note, Part, Section, Sentences
from pgdyno.report.server import server_section
from pgdyno.report.theme import Theme

from ...analysis.binding.evidence import is_watched
from ...analysis.binding.rules import LIMITS, Limit
from ...base.text import UNKNOWN, money, number, percent, size, times
from ...report.response import course_section
from ...results.names import EXPERIMENT_FILE
from . import words
from .calendar import Calendar, Hour
from .diagnosis import OF_STORAGE, Diagnosis
from .words import name_of

NAMES_PX = 164
"""Room for the longest name of a consumer."""
ROW_PX = 24
DAY_PX = 92
"""Room for ``Wed 2026-11-25``."""
SURE_OPACITY, LOW_OPACITY = 1.0, 0.45
HOURS = 24


def colour_of(limit: Limit) -> str:
    """Class of the page for a limit; the quietest for a server of which no more is asked."""
    return "role7" if limit == "client" else COLOURS[LIMITS.index(limit)]


def consumers_figure(consumers: Sequence[Consumer], width_px: int, theme: Theme) -> dict[str, Any]:
    """A bar for each use of the volume, the largest first."""
    import altair as alt

    sheet = Sheet((), theme)
    rows = [
        {
            "what": TITLES[consumer.what],
            "share": min(1.0, consumer.share),
            "text": percent(consumer.share),
            "colour": _consumer(consumer, theme),
        }
        for consumer in consumers
    ]
    base = sheet.chart(rows).encode(
        y=alt.Y(
            "what:N", sort=None, axis=alt.Axis(title=None, minExtent=NAMES_PX, maxExtent=NAMES_PX, labelLimit=NAMES_PX)
        ),
        x=alt.X("share:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title=None, format="%", tickCount=4)),
    )
    bars = base.mark_bar(height=ROW_PX - 10).encode(
        fill=alt.Fill("colour:N", scale=None), description=alt.Description("text:N")
    )
    figures = base.mark_text(align="left", dx=6, aria=False).encode(text=alt.Text("text:N"))
    plot_px = width_px - NAMES_PX - RIGHT_PX - 44
    return sheet.finish(alt.layer(bars, figures).properties(width=plot_px, height=ROW_PX * len(rows)))


def _consumer(consumer: Consumer, theme: Theme) -> str:
    return theme["quiet"] if consumer.what == "not_explained" else theme.arm(1)


def calendar_figure(hours: Sequence[Hour], width_px: int, theme: Theme) -> dict[str, Any]:
    """A row for each day and a cell for each hour, coloured by its limit."""
    import altair as alt

    sheet = Sheet((), theme)
    days = list(dict.fromkeys(_day(hour) for hour in hours))
    seen = [_cell(hour, theme) for hour in hours if hour.watches]
    unanswered = [{"day": _day(hour), "hour": hour.begin.hour + 0.5} for hour in hours if hour.missed]
    step = 6 if width_px < NARROW_PX else 3
    x = alt.X("begin:Q", scale=alt.Scale(domain=[0, HOURS], nice=False),
              axis=alt.Axis(title=None, orient="top", values=list(range(0, HOURS + 1, step)), grid=False))  # fmt: skip
    y = alt.Y("day:O", sort=days, axis=alt.Axis(title=None, minExtent=DAY_PX, maxExtent=DAY_PX))
    layers = [
        sheet.chart(seen)
        .mark_rect(stroke=theme["ground"], strokeWidth=1)
        .encode(
            x=x, x2=alt.X2("end:Q"), y=y, fill=alt.Fill("colour:N", scale=None),
            fillOpacity=alt.FillOpacity("opacity:Q", scale=None), description=alt.Description("what:N"),
        )
    ]  # fmt: skip
    if unanswered:
        dots = sheet.chart(unanswered).mark_circle(color=theme["bad"], size=24, aria=False)
        layers.append(dots.encode(x=alt.X("hour:Q"), y=y))
    plot_px = width_px - DAY_PX - RIGHT_PX - 8
    return sheet.finish(alt.layer(*layers).properties(width=plot_px, height=ROW_PX * len(days)))


def _cell(hour: Hour, theme: Theme) -> dict[str, Any]:
    limit = hour.verdict.limit
    low = hour.verdict.confidence == "low"
    return {
        "day": _day(hour),
        "begin": hour.begin.hour,
        "end": hour.begin.hour + 1,
        "colour": theme["line"] if limit is None else theme[colour_of(limit)],
        "opacity": LOW_OPACITY if low else SURE_OPACITY,
        "what": f"{hour.begin:%a %H}:00 {name_of(limit, hour.verdict.role)}, {percent(hour.verdict.share)} of the seconds",
    }


def _day(hour: Hour) -> str:
    return f"{hour.begin:%a %Y-%m-%d}"


_CAPTIONS = {
    "timeline": "Each second since the watch began.",
    "waits": "Mean number of the clients' sessions by the type of wait that pg_stat_activity showed. CPU: active and waiting for nothing that"
    " PostgreSQL knows of. Client: idle for less than a second, or in a transaction and waiting for its next statement.",
}
ROWS_MAX = 400
"""Rows of the table of hours, the newest; the rest is in the JSON."""


def write_page(diagnosis: Diagnosis | Calendar, path: Path) -> None:
    """Write the page to ``path``, over what was there. :class:`pgdyno.base.errors.OutputError` when that fails."""
    from .calendar import Calendar

    write_whole(
        path,
        (of_calendar(diagnosis) if isinstance(diagnosis, Calendar) else of_diagnosis(diagnosis)).encode(),
        "--html",
    )


def of_diagnosis(diagnosis: Diagnosis) -> str:
    """The page of one watch, or of a run."""
    record = diagnosis.run.record
    title = words.headline(diagnosis)
    return _page(
        [
            _limit(diagnosis),
            *_remedies(diagnosis),
            *_consumers(diagnosis),
            *_statements(diagnosis),
            *_published(diagnosis),
            *_courses(diagnosis),
        ],
        headline=title[:1].upper() + title[1:],
        context=[*words.watched_parts(diagnosis), *_bought(diagnosis)],
        missing=diagnosis.missing,
        moment=moment(record.anchor.to_unix_ns(record.measure.begin_ns)),
        source=diagnosis.run.record.arm
        if diagnosis.sources and record.world.server is None
        else str(diagnosis.run.path),
    )


def of_calendar(calendar: Calendar) -> str:
    """The page of a directory of watches."""
    worst = calendar.worst
    binding = words.spans(calendar)
    return _page(
        [_hours(calendar), *_remedies(worst), *_consumers(worst), _table(calendar)],
        headline=words.calendar_headline(calendar),
        context=[calendar.server, *words.calendar_parts(calendar), *_bought(worst)],
        missing=worst.missing if binding else (),
        moment=moment(int(calendar.watches[-1].begin_unix_s * 1e9)),
        source=f"the {len(calendar.watches):,} watches in {calendar.path}",
    )


def key_of(limits: Iterable[Limit | None]) -> tuple[tuple[str, str], ...]:
    """(class of the page, name) of limits, in their order."""
    present = set(limits)
    return tuple((colour_of(limit), words.name_of(limit)) for limit in LIMITS if limit in present)


def _page(sections: Sequence[Section], **values: Any) -> str:
    kept = [section for section in sections if section.parts]
    with figures.unchecked():
        drawn = {part.name: drawing(part.name, part.alternative, part.make)
                 for section in kept for part in section.parts if isinstance(part, Drawing)}  # fmt: skip
    return rendered(
        "diagnose.html", "pgdyno.advise.diagnose", sections=kept, drawn=drawn, many=False, version=__version__, **values
    )


def _limit(diagnosis: Diagnosis) -> Section:
    """Every second of the watch, and the evidence."""
    spans = diagnosis.binding.spans
    stretches = [
        Stretch(
            end - begin,
            f"second {begin + 1} to {end}: {words.name_of(limit)}",
            "" if limit is None else colour_of(limit),
        )
        for begin, end, limit in spans
    ]
    shares = diagnosis.binding.verdict.shares.items()
    described = ", ".join(f"{words.name_of(limit)} {percent(share)} of the seconds" for limit, share in shares)
    values = {
        "stretches": stretches,
        "key": key_of(limit for _, _, limit in spans),
        "described": described or "not explained",
    }
    note = f"Bar: each second. Confidence: {diagnosis.binding.verdict.confidence}."
    parts = (Block("seconds.html", values), Note(note), Sentences(diagnosis.evidence), Sentences(diagnosis.notes))
    return Section("limit", "What limits it", parts if diagnosis.notes else parts[:-1])


def _remedies(diagnosis: Diagnosis) -> list[Section]:
    rows = [(free.action, "nothing", _ratio(free.ratio_max), "") for free in diagnosis.free]
    if (remedy := diagnosis.remedy) is not None:
        price = UNKNOWN if remedy.usd_per_month is None else f"{money(remedy.usd_per_month)} a month"
        if remedy.spec is None:
            price = ""
        then = "" if remedy.then is None else words.name_of(remedy.then)
        rows.append((remedy.action, price, _ratio(remedy.tps_ratio_max), then))
    grid = Grid(("remedy", "costs", "times the work, at most", "next limit"), tuple(rows), look="plain remedies")
    return [Section("remedies", "What to do", (grid,))] if rows else []


def _consumers(diagnosis: Diagnosis) -> list[Section]:
    """Who uses the volume; a bar for each, and the figures."""
    if not diagnosis.consumers or diagnosis.binding.verdict.limit not in (None, *OF_STORAGE):
        return []
    rows = tuple(
        (CONSUMERS[consumer.what], percent(consumer.share), number(consumer.iops), number(consumer.mib_per_s))
        for consumer in diagnosis.consumers
    )
    caption = (
        f"Share of the {diagnosis.consumers_role} volume's requests, or of its bytes where throughput is the limit. An estimate: the page cache"
        " is between PostgreSQL and the volume."
    )
    parts = (
        Drawing("consumers", "Who uses the volume", caption, partial(consumers_figure, diagnosis.consumers)),
        Grid(("consumer", "share", "IOPS", "MiB/s"), rows),
    )
    return [Section("consumers", "Who uses the volume", parts)]


def _statements(diagnosis: Diagnosis) -> list[Section]:
    """Those that read, log or spill most; nothing without pg_stat_statements."""
    rows = tuple(
        (
            statement.query or str(statement.queryid),
            f"{statement.calls:,}",
            number(statement.ms_mean),
            size(statement.read_bytes),
            size(statement.wal_bytes),
            size(statement.temp_bytes),
        )
        for statement in diagnosis.statements
    )
    head = (
        "statement" if any(statement.query for statement in diagnosis.statements) else "queryid",
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


def _published(diagnosis: Diagnosis) -> list[Section]:
    """What rules of documents say of the same figures."""
    texts = tuple(words.finding_words(finding) for finding in diagnosis.findings)
    return [Section("rules", "What published rules say", (Sentences(texts),))] if texts else []


def _courses(diagnosis: Diagnosis) -> list[Section]:
    """The report's sections of one run; those of a run among others are in its experiment's report."""
    experiment = diagnosis.run.path.parents[1]
    if not is_watched(diagnosis.run.record) or not (experiment / EXPERIMENT_FILE).is_file():
        return []
    from pgdyno.analysis.compare import summarise

    comparison = summarise(experiment)
    sections = (course_section(comparison), server_section(comparison))
    return [
        replace(section, parts=tuple(_said_of_a_watch(part) for part in section.parts))
        for section in sections
        if section is not None
    ]


def _said_of_a_watch(part: Part) -> Part:
    """The same figure without the words of experiments: it has no driver and no replicates."""
    if isinstance(part, Drawing) and part.name in _CAPTIONS:
        return replace(part, caption=_CAPTIONS[part.name])
    return part


def _hours(calendar: Calendar) -> Section:
    caption = (
        "Each cell: the limit that bound in most seconds of that hour's watches; paler where the confidence is low. A dot: the server did not"
        " answer in a watch. No cell: no watch."
    )
    key = key_of(hour.verdict.limit for hour in calendar.hours)
    cells = Drawing(
        "calendar", "Which limit bound in each hour", caption, partial(calendar_figure, calendar.hours), key=key
    )
    stretches = tuple(f"{span.text}: {words.span_words(span)}" for span in words.spans(calendar))
    return Section("calendar", "Which limit bound when", (cells, Sentences(stretches[: words.SPANS_MAX])))


def _table(calendar: Calendar) -> Section:
    """Every stretch of hours with one limit, those in which nothing bound and those without an answer too."""
    missed = [(f"{hour.begin:%a %Y-%m-%d}", why, "") for hour in calendar.hours if hour.watches for why in hour.missed]
    rows = [
        (span.text, words.span_words(span), span.hours[0].verdict.confidence)
        for span in words.stretches(calendar)[-ROWS_MAX:]
    ]
    grid = Grid(("hours", "limit", "confidence"), (*missed[-ROWS_MAX:], *rows), look="plain hours")
    return Section("hours", "Hours", (grid,))


def _bought(diagnosis: Diagnosis) -> list[str]:
    volumes = diagnosis.run.record.world.volumes.items()
    return [f"bought: {role} {volume.spec['spec']}" for role, volume in volumes if volume.spec]


def _ratio(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else times(ratio)
