"""The spread of throughput over all runs of a variant, whatever they were asked: a box each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.boxes import box_of
from pgdyno.analysis.sweep import Sweep
from pgdyno.report.figures.parts import NARROW_PX, RIGHT_PX, Sheet, variant_colour
from pgdyno.report.theme import Theme

from ...base.text import number

ROW_PX = 58


def throughput_boxes(sweep: Sweep, arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """The headline of every run as a box for each variant: quartiles and median, whiskers, and the runs outside of them."""
    import altair as alt

    sheet = Sheet(arms, theme)
    plot_px = width_px - 2 * RIGHT_PX
    rows, points = _rows(sweep, theme)
    most = max([1e-3, *(row["high"] for row in rows), *(point["value"] for point in points)])
    axis = alt.Axis(title=f"{arms[0].metric.title} of a run", tickCount=max(3, width_px // 120), labelFlush=True)
    scale = alt.Scale(domain=[0, most * 1.03], nice=False)
    y = alt.Y("row:O", axis=None, sort=None)
    colour = alt.Color("colour:N", scale=None)
    base = sheet.chart(rows).encode(y=y)
    layers = [
        base.mark_rule(strokeWidth=1.5, yOffset=8, aria=False).encode(
            x=alt.X("low:Q", scale=scale, axis=axis), x2=alt.X2("high:Q"), color=colour
        ),
        base.mark_bar(size=20, yOffset=8, fillOpacity=0.35, strokeWidth=1.5).encode(
            x=alt.X("first:Q"),
            x2=alt.X2("third:Q"),
            color=colour,
            stroke=alt.Stroke("colour:N", scale=None),
            description=alt.Description("what:N"),
        ),
        base.mark_tick(size=20, thickness=3, yOffset=8, aria=False).encode(x=alt.X("median:Q"), color=colour),
        sheet.chart(points)
        .mark_point(size=26, yOffset=8, strokeWidth=1.2, filled=False)
        .encode(x=alt.X("value:Q"), y=y, color=colour, description=alt.Description("what:N")),
        sheet.text(base, "label", 0, align="left", dy=-16, fontWeight="bold", limit=plot_px * 0.6),
        *([] if width_px < NARROW_PX else [sheet.text(base, "figure", plot_px, align="right", dy=-16)]),
    ]
    return sheet.finish(alt.layer(*layers).properties(width=plot_px, height=ROW_PX * len(rows) + 8), RIGHT_PX)


def _rows(sweep: Sweep, theme: Theme) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    points: list[dict[str, Any]] = []
    for variant in sweep.variants:
        box, short = box_of(variant.of_runs), variant.metric.short
        label, colour = variant.label or "all arms", variant_colour(variant.index, theme)
        figure = f"{number(box.first_quartile)} / {number(box.median)} / {number(box.third_quartile)}"
        what = f"{label}: median {number(box.median)} {short}, half of {box.n} runs within"
        rows.append(
            {"row": variant.index, "label": label, "low": box.low, "first": box.first_quartile, "median": box.median,
             "third": box.third_quartile, "high": box.high, "colour": colour, "figure": figure,
             "what": f"{what} {number(box.first_quartile)} to {number(box.third_quartile)}"}
        )  # fmt: skip
        points += [
            {"row": variant.index, "value": tps, "colour": colour, "what": f"{label}: {number(tps)} {short}"}
            for tps in box.outside
        ]
    return rows, points
