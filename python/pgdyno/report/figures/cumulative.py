"""Which share of the transactions took no longer than a number of milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.distribution import ValueCounts
from pgdyno.report.figures.parts import LABELS_PX, MS_LABELS, RIGHT_PX, Sheet, log_scale, variant_colour
from pgdyno.report.theme import Theme

_PERCENTS = (0.1, 0.5, *range(1, 100), 99.5, 99.9)
"""Where a curve has its points."""


def cumulative_latency(
    panels: Sequence[tuple[str, int, Sequence[tuple[str, ValueCounts]]]],
    arms: Sequence[ArmSummary],
    width_px: int,
    theme: Theme,
) -> dict[str, Any]:
    """Cumulative shares: a title, a colour's number and the curves of each panel, the palest first; all on one axis."""
    import altair as alt

    sheet = Sheet(arms, theme)
    plot_px = width_px - LABELS_PX - RIGHT_PX
    drawn = [(title, _rows(curves, variant_colour(colour, theme))) for title, colour, curves in panels]
    every = [row["ms"] for _, rows in drawn for row in rows]
    scale, ticks = log_scale(every, plot_px // 3)
    charts = []
    for place, (title, rows) in enumerate(drawn):
        last = place == len(drawn) - 1
        x_axis = alt.Axis(title="ms" if last else None, values=ticks, labelExpr=MS_LABELS, labels=last, labelFlush=True)
        charts.append(
            sheet.chart(rows)
            .mark_line(strokeWidth=1.6, clip=True, aria=False)
            .encode(
                x=alt.X("ms:Q", scale=scale, axis=x_axis),
                y=alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(
                    title=None, format="%", tickCount=5, minExtent=LABELS_PX, maxExtent=LABELS_PX)),
                detail=alt.Detail("curve:N"),
                opacity=alt.Opacity("opacity:Q", scale=None),
                color=alt.Color("colour:N", scale=None),
            )
            .properties(width=plot_px, height=170 if len(drawn) < 3 else 120, title=title)
        )  # fmt: skip
    return sheet.finish(alt.vconcat(*charts, spacing=14))


def _rows(curves: Sequence[tuple[str, ValueCounts]], colour: str) -> list[dict[str, Any]]:
    rows = []
    for number, (name, distribution) in enumerate(curves):
        opacity = round(0.3 + 0.7 * (number + 1) / len(curves), 3)
        for percent, ms in zip(_PERCENTS, distribution.percentiles(_PERCENTS), strict=True):
            if ms > 0:
                rows.append(
                    {
                        "curve": name,
                        "ms": float(f"{ms:.4g}"),
                        "share": percent / 100,
                        "opacity": opacity,
                        "colour": colour,
                    }
                )
    return rows
