"""The cost front: what each variant costs a month and what it does, at one load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.report.figures.parts import LABELS_PX, RIGHT_PX, Sheet, variant_colour
from pgdyno.report.theme import Theme

from ...base.text import money, number


@dataclass(frozen=True)
class FrontPoint:
    """A variant as a buyer sees it."""

    label: str
    colour: int
    usd_per_month: float
    value: float
    low: float
    high: float
    on_front: bool


def cost_front(offers: Sequence[FrontPoint], arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """The headline with its interval by price: filled on the front, open where another one costs less and is not slower."""
    import altair as alt

    sheet = Sheet(arms, theme)
    plot_px = width_px - LABELS_PX - RIGHT_PX
    rows: list[dict[str, Any]] = [
        {
            "usd": offer.usd_per_month, "value": offer.value, "low": offer.low, "high": offer.high, "front": offer.on_front,
            "colour": variant_colour(offer.colour, theme), "label": offer.label,
            "what": f"{offer.label}: {number(offer.value)} {arms[0].metric.short} for {money(offer.usd_per_month)} a month,"
            f" {'on' if offer.on_front else 'not on'} the cost front",
        }
        for offer in offers
    ]  # fmt: skip
    most, dearest = max(row["high"] for row in rows), max(row["usd"] for row in rows)
    x_axis = alt.Axis(title="US$ a month", tickCount=max(3, width_px // 140), format=",", labelFlush=True)
    x = alt.X("usd:Q", scale=alt.Scale(domain=[0, dearest * 1.25], nice=False), axis=x_axis)
    y_scale = alt.Scale(domain=[0, most * 1.15], nice=False)
    y_axis = alt.Axis(
        title=None, tickCount=5, minExtent=LABELS_PX, maxExtent=LABELS_PX, format="~s" if most >= 1e5 else ","
    )
    colour = alt.Color("colour:N", scale=None)
    steps = sorted((row for row in rows if row["front"]), key=lambda row: row["usd"])
    base = sheet.chart(rows).encode(x=x)
    shape = alt.Shape("front:N", legend=None, scale=alt.Scale(domain=[True, False], range=["circle", "cross"]))
    layers = [
        sheet.chart(steps)
        .mark_line(interpolate="step-after", strokeWidth=1.2, strokeDash=[4, 3], aria=False, color=theme["quiet"])
        .encode(x=x, y=alt.Y("value:Q", scale=y_scale, axis=y_axis)),
        base.mark_rule(strokeWidth=2, aria=False).encode(
            y=alt.Y("low:Q", scale=y_scale), y2=alt.Y2("high:Q"), color=colour
        ),
        base.mark_point(size=90, filled=True, opacity=1).encode(
            y=alt.Y("value:Q", scale=y_scale), color=colour, shape=shape, description=alt.Description("what:N")
        ),
        base.mark_text(align="left", dx=8, dy=-8, limit=plot_px // 2).encode(
            y=alt.Y("value:Q", scale=y_scale), text=alt.Text("label:N")
        ),
    ]
    return sheet.finish(alt.layer(*layers).properties(width=plot_px, height=220))
