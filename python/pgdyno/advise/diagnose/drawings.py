"""The figures of a diagnosis's page: who uses the volume, and the calendar of hours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.analysis.binding.consumers import Consumer
from pgdyno.report.binding import COLOURS
from pgdyno.report.figures.parts import NARROW_PX, RIGHT_PX, Sheet
from pgdyno.report.theme import Theme

from ...analysis.binding.consumers import TITLES
from ...analysis.binding.rules import LIMITS, Limit
from ...base.text import percent
from .calendar import Hour
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


def consumers(consumers: Sequence[Consumer], width_px: int, theme: Theme) -> dict[str, Any]:
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


def calendar(hours: Sequence[Hour], width_px: int, theme: Theme) -> dict[str, Any]:
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
