"""The headline of each arm: the main figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.report.figures.parts import NARROW_PX, RIGHT_PX, Sheet
from pgdyno.report.theme import Theme

from ...base.text import number

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
