"""The effect of each factor: a ratio with its interval on a logarithmic axis, and a line where nothing changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.report.figures.parts import NARROW_PX, RIGHT_PX, Sheet
from pgdyno.report.theme import Theme

if TYPE_CHECKING:
    from pgdyno.report.effects import EffectRow

ROW_PX = 46
"""Height of a row: what is compared and its ratio, the interval."""
ROW_NARROW_PX = 60
"""The same on a phone, where the ratio has a line of its own."""
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)
_TICK_PX = 42
"""Room that a label of the axis needs."""


def effects(rows: Sequence[EffectRow], arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """A row for each effect; below one that depends on another factor, the effect at that factor's levels, smaller."""
    import altair as alt

    sheet = Sheet(arms, theme)
    plot_px = width_px - 2 * RIGHT_PX
    data = [_row(place, row, theme) for place, row in enumerate(rows) if row.estimate is not None]
    low, high = min(row["low"] for row in data), max(row["high"] for row in data)
    domain = [min(low, 0.9) / 1.03, max(high, 1.1) * 1.03]
    scale = alt.Scale(type="log", domain=domain, nice=False)
    axis = alt.Axis(
        title=f"times the {arms[0].metric.counts}",
        values=_ticks(domain, plot_px),
        labelFlush=True,
        format="~g",
        titlePadding=8,
    )
    y = alt.Y("row:O", axis=None, sort=None, scale=alt.Scale(domain=list(range(len(rows)))))
    base = sheet.chart(data).encode(y=y)
    colour = alt.Color("colour:N", scale=None)
    result = (
        sheet.chart([{"x": 1}])
        .mark_rule(strokeWidth=1.5, aria=False)
        .encode(x=alt.X("x:Q", scale=scale), color=alt.value(theme["quiet"]))
    )
    layers = [
        result,
        base.mark_rule(strokeCap="round", aria=False).encode(
            x=alt.X("low:Q", scale=scale), x2=alt.X2("high:Q"), color=colour,
            strokeWidth=alt.StrokeWidth("weight:Q", scale=None),
        ),
        base.mark_point(filled=True, opacity=1).encode(
            x=alt.X("mean:Q", scale=scale, axis=axis), color=colour, description=alt.Description("what:N"), size=alt.Size("size:Q", scale=None)
        ),
        *_texts(sheet, data, y, plot_px, width_px < NARROW_PX),
    ]  # fmt: skip
    row_px = ROW_NARROW_PX if width_px < NARROW_PX else ROW_PX
    return sheet.finish(alt.layer(*layers).properties(width=plot_px, height=row_px * len(rows)), RIGHT_PX)


def _texts(sheet: Sheet, data: list[dict[str, Any]], y: Any, plot_px: int, narrow: bool) -> list[Any]:
    """What is compared, and its figure: at the end of the line, or below where there is no room."""
    texts = []
    for indent, x_px, weight in ((False, 0, "bold"), (True, 14, "normal")):
        base = sheet.chart([row for row in data if row["indent"] is indent]).encode(y=y)
        if narrow:
            texts.append(sheet.text(base, "label", x_px, align="left", dy=-30, fontWeight=weight, limit=plot_px - x_px))
            texts.append(sheet.text(base, "figure", x_px, align="left", dy=-15))
        else:
            texts.append(sheet.text(base, "label", x_px, align="left", dy=-15, fontWeight=weight, limit=plot_px * 0.7))
            texts.append(sheet.text(base, "figure", plot_px, align="right", dy=-15))
    return texts


def _row(place: int, row: EffectRow, theme: Theme) -> dict[str, Any]:
    assert row.estimate is not None
    mean = row.estimate.mean
    low, high = (mean if end is None else end for end in (row.estimate.low, row.estimate.high))
    figure = row.ratio + (f"  ({row.extent})" if row.estimate.low is not None else "")
    pair = f"{row.over} against {row.under}"
    return {
        "row": place, "label": f"with {row.at}" if row.at else pair, "indent": bool(row.at), "mean": mean, "low": low,
        "high": high, "figure": figure, "what": f"{pair}{f' with {row.at}' if row.at else ''}: {figure}, {row.verdict}",
        "colour": theme["quiet"] if not row.distinguishable else theme["arm1"] if mean > 1 else theme["arm0"],
        "weight": 1.5 if row.at else 3, "size": 50 if row.at else 110,
    }  # fmt: skip


def _ticks(domain: Sequence[float], plot_px: int) -> list[float]:
    """1 and the round ratios around it that have room on the axis."""
    per_px = math.log(domain[1] / domain[0]) / plot_px
    kept: list[float] = [1.0]
    for tick in sorted((t for t in _TICKS if domain[0] <= t <= domain[1]), key=lambda t: abs(math.log(t))):
        if all(abs(math.log(tick / other)) >= _TICK_PX * per_px for other in kept):
            kept.append(tick)
    return sorted(kept)
