"""Figures with a bar or dot for each arm: headline, CPU time by role, sessions by wait, seconds of each query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.queries import queries_of
from pgdyno.report.figures.parts import NARROW_PX, RIGHT_PX, Sheet
from pgdyno.report.theme import Theme

from ...base.text import number, percent
from ..server import TYPES, waits_by_type

ROW_PX = 62
"""Height of an arm's row: its name and figure, the interval, the replicates."""
ROW_MANY_PX = 42
"""The same where there are many."""


def headline(arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """Each arm: mean and interval, and every replicate as a point, from zero."""
    import altair as alt

    sheet = Sheet(arms, theme)
    plot_px = width_px - 2 * RIGHT_PX
    means = [_mean_row(arm) for arm in arms]
    points = [_point_row(arm, place) for arm in arms for place in range(len(arm.replicates))]
    most = max([1e-3] + [row["high"] for row in means] + [row["value"] for row in points])
    axis = alt.Axis(
        title=arms[0].metric.title,
        tickCount=max(3, width_px // 120),
        format="~s" if most >= 1e5 else ",.0f" if most >= 5 else ",.2~f",
        labelFlush=True,
    )
    x = alt.X("mean:Q", scale=alt.Scale(domain=[0, most * 1.03], nice=False), axis=axis)
    y = alt.Y("row:O", axis=None, sort=None)
    colour = sheet.colour()
    base = sheet.chart(means).encode(y=y)
    interval = base.mark_rule(strokeWidth=2.5, strokeCap="round").encode(
        x=alt.X("low:Q"), x2=alt.X2("high:Q"), color=colour
    )
    ends = [
        base.mark_tick(thickness=2.5, size=14, opacity=1, aria=False).encode(x=alt.X(f"{end}:Q"), color=colour)
        for end in ("low", "high")
    ]
    mean = base.mark_point(size=110, filled=True, opacity=1).encode(
        x=x, color=colour, description=alt.Description("what:N")
    )
    every = (
        sheet.chart(points)
        .mark_point(size=34, strokeWidth=1.5, opacity=1, filled=False)
        .encode(
            x=alt.X("value:Q"),
            y=y,
            yOffset=alt.YOffset("offset:Q", scale=alt.Scale(domain=[-1, 1])),
            color=colour,
            description=alt.Description("what:N"),
            shape=_shape(),
        )
    )
    # On a phone many arms leave room for their names alone: the table above has their figures.
    crowded = sheet.many and width_px < NARROW_PX
    above_px = -15 if sheet.many else -22
    names = sheet.text(
        base, "label", 0, align="left", dy=above_px, fontWeight="bold", limit=plot_px * (1 if crowded else 0.62)
    )
    values = [] if crowded else [sheet.text(base, "figure", plot_px, align="right", dy=above_px)]
    layers = alt.layer(every, interval, *ends, mean, names, *values)
    row_px = ROW_MANY_PX if sheet.many else ROW_PX
    return sheet.finish(layers.properties(width=plot_px, height=row_px * len(arms) + 12), RIGHT_PX)


def _mean_row(arm: ArmSummary) -> dict[str, Any]:
    estimate = arm.headline
    low, high = (estimate.mean if end is None else end for end in (estimate.low, estimate.high))
    figure = number(estimate.mean)
    if estimate.low is not None:
        figure += f"  ({number(max(0.0, low))} to {number(high)})"
    return {
        "row": arm.index, "arm": str(arm.index), "label": arm.label, "mean": estimate.mean, "low": max(0.0, low),
        "high": high, "figure": figure, "what": f"{arm.label}: mean {figure} {arm.metric.short}, {estimate.n} replicates",
    }  # fmt: skip


def _point_row(arm: ArmSummary, place: int) -> dict[str, Any]:
    replicate = arm.replicates[place]
    rate = replicate.headline
    block = replicate.figures.record.block
    state = "" if replicate.valid else ", invalid"
    return {
        "row": arm.index, "arm": str(arm.index), "value": rate, "valid": replicate.valid,
        "offset": 0.8 if place % 2 else 0.55, "what": f"{arm.label}, replicate {block}: {number(rate, 4)} {arm.metric.short}{state}",
    }  # fmt: skip


def _shape() -> Any:
    """A circle for a valid replicate, a cross for an invalid one."""
    import altair as alt

    return alt.Shape("valid:N", legend=None, scale=alt.Scale(domain=[True, False], range=["circle", "cross"]))


UNASSIGNED = "unassigned"
UNASSIGNED_MIN = 0.002
"""Less than this is rounding."""
ROLES = (
    ("server", "PostgreSQL"),
    ("driver", "driver"),
    ("relay", "relay"),
    ("daemon", "volume daemon"),
    ("probe", "probe"),
    ("other", "other"),
    ("host_steal", "steal"),
    ("host_idle", "idle"),
    (UNASSIGNED, "not assigned"),
)
"""Roles of the CPU in the order of their bars, and their names; ``roleN`` of the theme is the colour of the Nth. Together they are the whole machine."""


def roles(arms: Sequence[ArmSummary]) -> list[tuple[int, str]]:
    """(place, name) of the roles that a key of the bars has: the relay only where there was one."""
    absent = {role for role in ("relay", UNASSIGNED) if not any(_cpu_share(arm, role) for arm in arms)}
    return [(place, name) for place, (role, name) in enumerate(ROLES) if role not in absent]


def _cpu_share(arm: ArmSummary, role: str) -> float:
    """The share of the machine's time. What no process was seen to use is unassigned: interrupts, processes that ended between two looks."""
    if role != UNASSIGNED:
        return arm.cpu_share.get(role, 0.0)
    rest = 1.0 - sum(arm.cpu_share.get(known, 0.0) for known, _ in ROLES)
    return rest if arm.cpu_share and rest >= UNASSIGNED_MIN else 0.0


def cpu(arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """The machine's CPU time by role."""
    import altair as alt

    parts = {arm.index: {name: _cpu_share(arm, role) for role, name in ROLES} for arm in arms}
    axis = alt.Axis(format="%", title="share of the machine's CPU time", tickCount=5, labelFlush=True)
    x = alt.X("value:Q", stack="zero", scale=alt.Scale(domain=[0, 1], clamp=True), axis=axis)
    return _bars(Sheet(arms, theme), parts, "role", x, lambda value: f"{percent(value)} of the machine", width_px)


def waits(arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """Mean number of sessions by type of wait."""
    import altair as alt

    parts = {arm.index: dict(zip(TYPES, waits_by_type(arm).values(), strict=True)) for arm in arms if arm.waits}
    x = alt.X("value:Q", stack="zero", axis=alt.Axis(title="sessions, mean", tickCount=5, labelFlush=True))
    return _bars(Sheet(arms, theme), parts, "wait", x, lambda value: f"{number(value)} sessions", width_px)


def _bars(
    sheet: Sheet,
    parts: Mapping[int, Mapping[str, float]],
    colours: str,
    x: Any,
    words: Callable[[float], str],
    width_px: int,
) -> dict[str, Any]:
    """Bars of ``parts`` (arm -> name of a part -> its value), in the theme's ``colours``."""
    import altair as alt

    theme, plot_px = sheet.theme, width_px - 2 * RIGHT_PX
    arms = [arm for arm in sheet.arms if arm.index in parts]
    rows = [
        {"row": arm.index, "label": arm.label, "place": place, "part": name, "value": value,
         "what": f"{arm.label}: {name} {words(value)}"}
        for arm in arms
        for place, (name, value) in enumerate(parts[arm.index].items())
    ]  # fmt: skip
    names = list(next(iter(parts.values())))
    scale = alt.Scale(domain=names, range=[theme[f"{colours}{place}"] for place in range(len(names))])
    y = alt.Y("row:O", axis=None, sort=None)
    bars = (
        sheet.chart([row for row in rows if row["value"]])
        .mark_bar(size=11 if sheet.many else 18, yOffset=7 if sheet.many else 8, stroke=theme["panel"], strokeWidth=1)
        .encode(
            x=x,
            y=y,
            color=alt.Color("part:N", scale=scale, legend=None),
            order=alt.Order("place:O"),
            description=alt.Description("what:N"),
        )
    )
    labels = (
        sheet.chart([row for row in rows if row["place"] == 0])
        .mark_text(align="left", dy=-8 if sheet.many else -14, fontWeight="bold", limit=plot_px)
        .encode(x=alt.value(0), y=y, text=alt.Text("label:N"))
    )
    height = (36 if sheet.many else 56) * len(arms)
    return sheet.finish(alt.layer(bars, labels).properties(width=plot_px, height=height), RIGHT_PX)


BAR_PX = 9
"""Height of a bar."""
GAP_PX = 8
"""Between two queries."""


def query_seconds(arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """A row for each query, in it a bar for each arm with its interval, from zero."""
    import altair as alt

    sheet = Sheet(arms, theme)
    rows = [row for arm in arms for row in _query_rows(arm)]
    numbers = sorted({row["query"] for row in rows})
    plot_px = width_px - 2 * RIGHT_PX
    y = alt.Y("name:O", sort=[f"Q{number}" for number in numbers], axis=alt.Axis(title=None))
    place = alt.YOffset("arm:N", sort=[str(arm.index) for arm in arms])
    base = sheet.chart(rows).encode(y=y, yOffset=place)
    axis = alt.Axis(title="seconds", tickCount=max(3, width_px // 120), labelFlush=True)
    bars = base.mark_bar(height={"band": 0.85}).encode(
        x=alt.X("mean:Q", axis=axis, scale=alt.Scale(zero=True, nice=False)),
        color=sheet.colour(),
        description=alt.Description("what:N"),
    )
    intervals = base.mark_rule(strokeWidth=1.2, aria=False).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    height_px = len(numbers) * (len(arms) * BAR_PX + GAP_PX)
    return sheet.finish(alt.layer(bars, intervals).properties(width=plot_px, height=height_px), RIGHT_PX)


def _query_rows(arm: ArmSummary) -> list[dict[str, Any]]:
    queries = queries_of(arm)
    if queries is None:
        return []
    return [
        {
            "query": query,
            "name": f"Q{query}",
            "arm": str(arm.index),
            "mean": estimate.mean,
            "low": max(0.0, estimate.mean if estimate.low is None else estimate.low),
            "high": estimate.mean if estimate.high is None else estimate.high,
            "what": f"Q{query}, {arm.label}: {number(estimate.mean)} s",
        }
        for query, estimate in queries.query_s.items()
    ]
