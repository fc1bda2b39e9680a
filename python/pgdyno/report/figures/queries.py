"""The seconds of each query: bars side by side, one for each arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.queries import queries_of
from pgdyno.report.figures.parts import RIGHT_PX, Sheet
from pgdyno.report.theme import Theme

from ...base.text import number

BAR_PX = 9
"""Height of a bar."""
GAP_PX = 8
"""Between two queries."""


def query_seconds(arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """A row for each query, in it a bar for each arm with its interval, from zero."""
    import altair as alt

    sheet = Sheet(arms, theme)
    rows = [row for arm in arms for row in _rows(arm)]
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


def _rows(arm: ArmSummary) -> list[dict[str, Any]]:
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
