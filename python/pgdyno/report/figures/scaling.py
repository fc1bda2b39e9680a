"""How throughput grows with clients: runs, and the universal scalability law through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.scaling import Scaling
from pgdyno.analysis.sweep import Sweep
from pgdyno.report.figures.parts import LABELS_PX, RIGHT_PX, Sheet, variant_colour
from pgdyno.report.theme import Theme

from ...base.text import number

CURVE_POINTS = 60
"""Points of a curve: more make no visible difference."""


def scaling_curve(
    sweep: Sweep, laws: Sequence[Scaling | None], arms: Sequence[ArmSummary], width_px: int, theme: Theme
) -> dict[str, Any]:
    """TPS by clients: a dot for each arm, and of each variant its law, where there is one."""
    import altair as alt

    sheet = Sheet(arms, theme)
    plot_px = width_px - LABELS_PX - RIGHT_PX
    dots: list[dict[str, Any]] = [
        {
            "clients": sweep.x.values[x],
            "value": float(f"{arm.headline.mean:.4g}"),
            "colour": variant_colour(variant.index, theme),
            "what": f"{arm.label}: {number(arm.headline.mean)} {arm.metric.short}",
        }
        for variant in sweep.variants
        for (x, _), arm in sorted(variant.arms.items())
    ]
    end = sweep.x.values[-1]
    curves = [
        {
            "variant": variant.index,
            "clients": end * step / CURVE_POINTS,
            "value": float(f"{law.tps(end * step / CURVE_POINTS):.4g}"),
            "colour": variant_colour(variant.index, theme),
        }
        for variant, law in zip(sweep.variants, laws, strict=True)
        if law is not None
        for step in range(1, CURVE_POINTS + 1)
        if end * step / CURVE_POINTS >= 1
    ]
    most = max([1e-3, *(dot["value"] for dot in dots)])
    axis = alt.Axis(title=sweep.x.title, tickCount=max(4, width_px // 100), labelFlush=True)
    x = alt.X("clients:Q", scale=alt.Scale(domain=[0, end], nice=False), axis=axis)
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(domain=[0, most * 1.05], nice=False),
        axis=alt.Axis(title=None, tickCount=5, minExtent=LABELS_PX, maxExtent=LABELS_PX,
                      labelExpr="format(datum.value, datum.value >= 1e5 ? '~s' : ',')"),
    )  # fmt: skip
    colour = alt.Color("colour:N", scale=None)
    layers = [
        sheet.chart(curves).mark_line(strokeWidth=2, clip=True, aria=False).encode(x=x, y=y, color=colour, detail=alt.Detail("variant:O")),
        sheet.chart(dots)
        .mark_point(size=30, strokeWidth=1.4, filled=False, aria=len(dots) <= 200)
        .encode(x=x, y=y, color=colour, description=alt.Description("what:N")),
    ]  # fmt: skip
    return sheet.finish(alt.layer(*layers).properties(width=plot_px, height=240 if width_px > 500 else 210))
