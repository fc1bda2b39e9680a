"""Figures over time: the course of each run, panel below panel, and what volumes wrote while tables were filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.loads import LoadFigures
from pgdyno.analysis.series import TimeSeries
from pgdyno.report.figures.parts import (
    LABELS_PX,
    MS_LABELS,
    RIGHT_PX,
    Sheet,
    event_labels,
    event_marks,
    event_rows,
    log_scale,
)
from pgdyno.report.theme import Theme

HEADROOM = 1.08
"""Times its highest value an axis goes up to, so that no line runs along the edge."""
VOLUME_PANELS = (
    ("iops", "requests per second (IOPS)", False),
    ("mib_per_s", "MiB per second", False),
    ("queue_length", "queue length", False),
    ("read_ms", "mean latency of reads, ms", True),
    ("write_ms", "mean latency of writes, ms", True),
)
"""Panels of a volume: column of a series, title, whether the axis is logarithmic."""
PANELS = (
    ("tps", "Transactions per second", False),
    ("behind_s", "Statements sent late, at most, seconds", False),
    ("latency_ms_mean", "Response time, mean, ms", True),
    ("latency_ms_p50", "Response time, median, ms", True),
    ("latency_ms_p99", "Response time, p99, ms", True),
    ("active_sessions", "Active sessions", False),
    ("server_cpu_share", "CPU of PostgreSQL, share of the machine", False),
    ("cpu_share", "CPU of everything, share of the machine", False),
)
"""Panels of a run as a whole; those of its volumes follow the first."""


def timeline(
    lines: Sequence[tuple[int, bool, TimeSeries]], arms: Sequence[ArmSummary], width_px: int, theme: Theme
) -> dict[str, Any]:
    """Everything over time on one axis.

    A line is an arm's index, whether it is of the arm's representative replicate (the others are thin), and its series.
    """
    import altair as alt

    sheet = Sheet(arms, theme)
    plot_px = width_px - LABELS_PX - RIGHT_PX
    seconds = max(series.t_s[-1] + series.bin_seconds / 2 for _, _, series in lines)
    x = alt.X("t_s:Q", scale=alt.Scale(domain=[0, seconds], nice=False))
    checkpoints = _checkpoint_rows(lines, seconds)
    shown = [panel for panel in _panels(lines) if any(_known(series, panel[0]) for _, _, series in lines)]
    marks = event_rows([event for _, main, series in lines if main for event in series.events], seconds)
    panels = [_checkpoint_lane(sheet, checkpoints, x, plot_px)] if checkpoints else []
    for column, title, logarithmic in shown:
        axis = x.axis(
            alt.Axis(title="seconds since measuring began", tickCount=max(4, width_px // 90), labelFlush=True)
            if column == shown[-1][0]
            else alt.Axis(title=None, labels=False, tickCount=max(4, width_px // 90))
        )
        rows = _line_rows(lines, column)
        named = arms[0].unit.per_second.capitalize() if column == "tps" else title
        panels.append(
            alt.layer(
                _checkpoint_rules(sheet, checkpoints, axis),
                *event_marks(sheet, marks, axis),
                *_lines(sheet, rows, axis, logarithmic),
                *(event_labels(sheet, marks, axis, seconds, plot_px) if column == shown[0][0] else ()),
            ).properties(width=plot_px, height=92 if width_px > 500 else 78, title=named)
        )
    chart = alt.vconcat(*panels, spacing=14).resolve_scale(x="shared", color="independent")
    return sheet.finish(chart)


def courses(
    lines: Sequence[tuple[int, bool, TimeSeries]], arms: Sequence[ArmSummary], width_px: int, theme: Theme
) -> dict[str, Any]:
    """Work per second over time with a small panel for each arm, on common axes: for more arms than lines can be told apart."""
    import altair as alt

    sheet = Sheet(arms, theme)
    columns = 4 if width_px > 800 else 2
    plot_px = (width_px - LABELS_PX - RIGHT_PX - 16 * (columns - 1)) // columns
    shown = {arm: series for arm, main, series in lines if main}
    seconds = max(series.t_s[-1] + series.bin_seconds / 2 for series in shown.values())
    most = max((value for series in shown.values() for value in series.columns["tps"] if value), default=1.0)
    rows = []
    for place in range(0, len(arms), columns):
        panels = []
        for arm in arms[place : place + columns]:
            first, last = arm is arms[place], place + columns >= len(arms)
            points = _line_rows([(arm.index, True, shown[arm.index])], "tps")
            spans = _checkpoint_rows([(arm.index, True, shown[arm.index])], seconds)
            x = alt.X("t_s:Q", scale=alt.Scale(domain=[0, seconds], nice=False),
                      axis=alt.Axis(title=None, labels=last, tickCount=3, labelFlush=True))  # fmt: skip
            y = alt.Y("value:Q", scale=alt.Scale(domain=[0, most * 1.05], nice=False),
                      axis=alt.Axis(title=None, labels=first, tickCount=3, minExtent=LABELS_PX if first else 0,
                                    maxExtent=LABELS_PX if first else 0))  # fmt: skip
            line = (
                sheet.chart(points)
                .mark_line(aria=False, clip=True, strokeWidth=1.5)
                .encode(x=x, y=y, color=sheet.colour())
            )
            bars = (
                sheet.chart(spans)
                .mark_rule(strokeWidth=4, opacity=0.6)
                .encode(
                    x=x,
                    x2=alt.X2("end_s:Q"),
                    y=alt.value(1),
                    color=sheet.colour(),
                    description=alt.Description("what:N"),
                )
            )
            marks = event_marks(sheet, event_rows(shown[arm.index].events, seconds), x)
            title = {"text": _lines_of_title(arm.label, plot_px), "fontSize": 11, "fontWeight": "normal", "offset": 5}
            panels.append(alt.layer(bars, *marks, line).properties(width=plot_px, height=70, title=title))
        rows.append(alt.hconcat(*panels, spacing=16))
    return sheet.finish(alt.vconcat(*rows, spacing=10).resolve_scale(color="independent"))


def _lines_of_title(label: str, width_px: int) -> list[str]:
    """An arm's name in two lines where it is wider than its panel."""
    parts = label.split(" · ")
    if len(label) * 6 <= width_px or len(parts) < 2:
        return [label]
    half = (len(parts) + 1) // 2
    return [" · ".join(parts[:half]) + " ·", " · ".join(parts[half:])]


def _panels(lines: Sequence[tuple[int, bool, TimeSeries]]) -> list[tuple[str, str, bool]]:
    """The panels of the figure; those of further volumes follow the data's."""
    roles = dict.fromkeys(["", *(c.rpartition(".")[0] for _, _, series in lines for c in series.columns if "." in c)])
    of_volumes = [
        (f"{role}.{column}" if role else column, f"{role} volume: {title}" if role else f"Volume: {title}", logarithmic)
        for role in roles
        for column, title, logarithmic in VOLUME_PANELS
    ]
    return [PANELS[0], *of_volumes, *PANELS[1:]]


def _line_rows(lines: Sequence[tuple[int, bool, TimeSeries]], column: str) -> list[dict[str, Any]]:
    """A row for each point. One without a value interrupts its line: nothing is drawn where nothing was recorded."""
    return [
        {
            "line": str(number),
            "arm": str(arm),
            "main": main,
            "t_s": t_s,
            "value": None if value is None else float(f"{value:.4g}"),
        }
        for number, (arm, main, series) in enumerate(lines)
        for t_s, value in zip(series.t_s, series.columns.get(column, (None,) * len(series.t_s)), strict=True)
    ]


def _lines(sheet: Sheet, rows: Sequence[dict[str, Any]], x: Any, logarithmic: bool) -> list[Any]:
    import altair as alt

    values = [row["value"] for row in rows if row["value"]]
    extent: dict[str, Any] = {"title": None, "minExtent": LABELS_PX, "maxExtent": LABELS_PX}
    if logarithmic:
        scale, ticks = log_scale(values, 80)
        axis = alt.Axis(values=ticks, labelExpr=MS_LABELS, **extent)
    else:
        scale = alt.Scale(domain=[0, max(values, default=1.0) * HEADROOM], nice=False)
        axis = alt.Axis(tickCount=3, labelExpr="format(datum.value, datum.value >= 1e5 ? '~s' : ',')", **extent)
    layers = []
    for main, look in ((False, {"strokeWidth": 1, "opacity": 0.3}), (True, {"strokeWidth": 1.8})):
        kept = [row for row in rows if row["main"] is main]
        if kept:
            layers.append(
                sheet.chart(kept)
                .mark_line(aria=False, clip=True, **look)
                .encode(
                    x=x, y=alt.Y("value:Q", scale=scale, axis=axis), detail=alt.Detail("line:N"), color=sheet.colour()
                )
            )
    return layers


def _known(series: TimeSeries, column: str) -> bool:
    return any(value is not None for value in series.columns.get(column, ()))


def _checkpoint_rows(lines: Sequence[tuple[int, bool, TimeSeries]], seconds: float) -> list[dict[str, Any]]:
    """The checkpoints of the representative lines; one without a seen end is drawn as an instant."""
    rows = []
    for arm, main, series in lines:
        for start, end in (series.checkpoints or ()) if main else ():
            until = f" to {end:.0f} s" if end is not None else " s (its end was not seen)"
            shown_end = min(seconds, start + 0.006 * seconds if end is None else end)
            rows.append(
                {"arm": str(arm), "t_s": start, "end_s": shown_end, "what": f"checkpoint from {start:.0f}{until}"}
            )
    return rows


def _checkpoint_lane(sheet: Sheet, rows: Sequence[dict[str, Any]], x: Any, plot_px: int) -> Any:
    import altair as alt

    present = [str(arm.index) for arm in sheet.arms if any(row["arm"] == str(arm.index) for row in rows)]
    return (
        sheet.chart(rows)
        .mark_bar(size=6, cornerRadius=1)
        .encode(
            x=x.axis(None),
            x2=alt.X2("end_s:Q"),
            y=alt.Y("arm:O", axis=None, scale=alt.Scale(domain=present)),
            color=sheet.colour(),
            description=alt.Description("what:N"),
        )
        .properties(width=plot_px, height=10 * len(present), title="Checkpoints")
    )


def _checkpoint_rules(sheet: Sheet, rows: Sequence[dict[str, Any]], x: Any) -> Any:
    return sheet.chart(rows).mark_rule(strokeDash=[2, 3], opacity=0.55, aria=False).encode(x=x, color=sheet.colour())


DRAWN_MAX = 6
"""Loads whose course is drawn; the others have their figures in the table."""
_MARKED_MAX = 30
"""Fewer points than this are marked: a load of a second has one, which makes no line."""
_TITLE_PX = 6.2
"""Width of a letter of a panel's title, about."""


def loading(loads: Sequence[LoadFigures], width_px: int, theme: Theme) -> dict[str, Any]:
    """MiB/s written over the time of each load, a panel for each volume."""
    import altair as alt

    sheet = Sheet((), theme)
    plot_px = width_px - LABELS_PX - RIGHT_PX
    drawn = [(load, volume) for load in loads[:DRAWN_MAX] for volume in load.volumes if volume.course_mib_per_s]
    panels = []
    for place, (item, volume) in enumerate(drawn):
        last = place == len(drawn) - 1
        points = [
            {"t_s": float(f"{t_s:.4g}"), "value": float(f"{value:.4g}")} for t_s, value in volume.course_mib_per_s
        ]
        x = alt.X(
            "t_s:Q",
            scale=alt.Scale(domain=[0, item.seconds], nice=False),
            axis=alt.Axis(
                title="seconds since filling began" if last else None,
                tickCount=max(3, width_px // 90),
                labelFlush=True,
            ),
        )
        y = alt.Y(
            "value:Q",
            scale=alt.Scale(zero=True, nice=True),
            axis=alt.Axis(title=None, tickCount=3, minExtent=LABELS_PX, maxExtent=LABELS_PX),
        )
        title = _wrapped(f"{item.record.title}: {volume.role} volume, MiB/s written", plot_px)
        panels.append(
            sheet.chart(points)
            .mark_line(
                aria=False,
                clip=True,
                strokeWidth=1.8,
                color=theme["role0"],
                point={"color": theme["role0"], "size": 14} if len(points) < _MARKED_MAX else False,
            )
            .encode(x=x, y=y)
            .properties(width=plot_px, height=72, title={"text": title, "fontSize": 11, "fontWeight": "normal"})
        )
    return sheet.finish(alt.vconcat(*panels, spacing=12))


def _wrapped(text: str, width_px: int) -> list[str]:
    """A title in as many lines as it needs."""
    import textwrap

    return textwrap.wrap(text, max(20, int(width_px / _TITLE_PX)), break_long_words=False)
