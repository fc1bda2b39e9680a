"""Two heat maps: throughput over two factors, and response times over the time of a run.

A cell's shade is the opacity of one colour, so that the same drawing serves light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.events import Event
from pgdyno.analysis.latency_map import MapCell
from pgdyno.analysis.sweep import Sweep, SweepGroup
from pgdyno.report.figures.parts import (
    LABELS_PX,
    MS_LABELS,
    RIGHT_PX,
    Sheet,
    evenly,
    event_marks,
    event_rows,
    log_scale,
    variant_colour,
)
from pgdyno.report.theme import Theme

from ...base.text import number

SHADES = (0.08, 0.72)
"""Opacity of the least and of the most: text on it can be read in either scheme."""
_FIGURE_PX = 30
"""A cell narrower than this has no figure in it."""
_TEXT_PX = 34
"""Room that a label of the axis needs."""


def throughput_heat(sweep: Sweep, arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """The headline over both axes, a panel for each variant, with shades of its own: a slower variant has a shape too."""
    import altair as alt

    sheet = Sheet(arms, theme)
    panels = [_throughput_panel(sheet, sweep, variant, width_px, theme) for variant in sweep.variants]
    return sheet.finish(alt.vconcat(*panels, spacing=16))


def _throughput_panel(sheet: Sheet, sweep: Sweep, variant: SweepGroup, width_px: int, theme: Theme) -> Any:
    import altair as alt

    assert sweep.along is not None
    plot_px = width_px - LABELS_PX - RIGHT_PX
    every = [arm.headline.mean for arm in variant.arms.values()]
    low, extent = min(every), max(1e-9, max(every) - min(every))
    rows = [
        {
            "x": sweep.along.texts[second],
            "y": sweep.x.texts[x],
            "figure": number(arm.headline.mean),
            "shade": round(SHADES[0] + (SHADES[1] - SHADES[0]) * (arm.headline.mean - low) / extent, 3),
            "what": f"{arm.label}: {number(arm.headline.mean)} {arm.metric.short}",
        }
        for (x, second), arm in sorted(variant.arms.items())
    ]
    columns = len(sweep.along.texts)
    shown = evenly(list(sweep.along.texts), max(2, plot_px // _TEXT_PX))
    base = sheet.chart(rows).encode(
        x=alt.X("x:O", sort=list(sweep.along.texts), axis=alt.Axis(
            title=sweep.along.title, orient="top", labelAngle=0, values=shown, titlePadding=4)),
        y=alt.Y("y:O", sort=list(sweep.x.texts), axis=alt.Axis(
            title=None, minExtent=LABELS_PX, maxExtent=LABELS_PX)),
    )  # fmt: skip
    layers = [
        base.mark_rect(stroke=theme["ground"], strokeWidth=1).encode(
            fill=alt.value(variant_colour(variant.index, theme)),
            fillOpacity=alt.FillOpacity("shade:Q", scale=None),
            description=alt.Description("what:N"),
        )
    ]
    if plot_px / columns >= _FIGURE_PX:
        layers.append(
            base.mark_text(fontSize=10 if plot_px / columns < 44 else 11, aria=False).encode(text=alt.Text("figure:N"))
        )
    height = min(24, max(8, 480 // len(sweep.x.texts))) * len(sweep.x.texts)
    return alt.layer(*layers).properties(width=plot_px, height=height, title=variant.label)


def latency_heat(
    maps: Sequence[tuple[str, int, Sequence[MapCell], Sequence[Event]]],
    arms: Sequence[ArmSummary],
    width_px: int,
    theme: Theme,
) -> dict[str, Any]:
    """Response times over time: a title, a colour's number, the cells and the events of each panel; all on the same axes."""
    import altair as alt

    sheet = Sheet(arms, theme)
    columns = 2 if width_px > 500 and len(maps) > 1 else 1
    plot_px = (width_px - columns * LABELS_PX - RIGHT_PX - 16 * (columns - 1)) // columns
    every = [cell for _, _, cells, _ in maps for cell in cells]
    seconds = max(cell.end_s for cell in every)
    scale, ticks = log_scale([ms for cell in every for ms in (cell.low_ms, cell.high_ms)], 130)
    panels = []
    for title, colour, cells, events in maps:
        most = max(cell.share for cell in cells)
        rows = [
            {"t": cell.begin_s, "end": cell.end_s, "low": float(f"{cell.low_ms:.4g}"), "high": float(f"{cell.high_ms:.4g}"),
             "shade": round(SHADES[0] + (1 - SHADES[0]) * (cell.share / most) ** 0.5, 2)}
            for cell in cells
        ]  # fmt: skip
        x = alt.X("t:Q", scale=alt.Scale(domain=[0, seconds], nice=False),
                  axis=alt.Axis(title="seconds since measuring began", tickCount=4, labelFlush=True))  # fmt: skip
        cells_drawn = (
            sheet.chart(rows)
            .mark_rect(aria=False)
            .encode(
                x=x,
                x2=alt.X2("end:Q"),
                y=alt.Y("low:Q", scale=scale, axis=alt.Axis(
                    title=None, values=ticks, minExtent=LABELS_PX, maxExtent=LABELS_PX, labelExpr=MS_LABELS)),
                y2=alt.Y2("high:Q"),
                fill=alt.value(variant_colour(colour, theme)),
                fillOpacity=alt.FillOpacity("shade:Q", scale=None),
            )
        )  # fmt: skip
        marks = event_marks(sheet, event_rows(events, seconds), alt.X("t_s:Q"))
        panels.append(
            alt.layer(cells_drawn, *marks).properties(
                width=plot_px, height=130, title={"text": title, "limit": plot_px}
            )
        )
    lines = [alt.hconcat(*panels[at : at + columns], spacing=16) for at in range(0, len(panels), columns)]
    return sheet.finish(alt.vconcat(*lines, spacing=14))
