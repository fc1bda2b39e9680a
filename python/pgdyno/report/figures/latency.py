"""Figures of latency: by percentile on two logarithmic axes, and cumulative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.distribution import PERCENTILES, ValueCounts
from pgdyno.report.figures.parts import LABELS_PX, MS_LABELS, NARROW_PX, RIGHT_PX, Sheet, log_scale, variant_colour
from pgdyno.report.theme import Theme

from ...base.text import number

TAIL_COUNT_MIN = 10
"""A percentile is drawn while this number of transactions were slower: beyond that it is the luck of a few."""


_PERCENTILES = (
    (10 / 9, "p10"), (2.0, "p50"), (10.0, "p90"), (100.0, "p99"), (1e3, "p99.9"), (1e4, "p99.99"), (1e5, "p99.999"),
)  # fmt: skip
"""Where the axis of percentiles is labelled: one request in this number is slower. It begins at the first."""
_STYLES: dict[str, dict[str, Any]] = {
    "thin": {"strokeWidth": 1, "opacity": 0.35},
    "dashed": {"strokeWidth": 2, "strokeDash": [5, 4]},
    "main": {"strokeWidth": 2},
}


def percentiles(
    curves: Sequence[tuple[int, ValueCounts, str]], arms: Sequence[ArmSummary], width_px: int, theme: Theme
) -> dict[str, Any]:
    """Latency (log) by percentile (log of the share above it). A curve: arm, distribution, ``main``, ``thin``, ``dashed``."""
    import altair as alt

    sheet = Sheet(arms, theme)
    rows: list[dict[str, Any]] = [
        {"curve": f"{number}", "arm": str(arm), "style": style, "above": above, "ms": ms}
        for number, (arm, distribution, style) in enumerate(curves)
        for above, ms in percentile_points(distribution)
    ]
    most = max([row["above"] for row in rows], default=100.0)
    marks = [(above, label) for above, label in _PERCENTILES if above <= max(100.0, most) * 1.001]
    labels = "{" + ",".join(f"'{round(above)}':'{label}'" for above, label in marks) + "}[round(datum.value)]"
    height = 260 if width_px > 500 else 230
    x = alt.X(
        "above:Q",
        scale=alt.Scale(type="log", domain=[_PERCENTILES[0][0], max(100.0, most)], nice=False),
        axis=alt.Axis(values=[above for above, _ in marks], labelExpr=labels, labelFlush=True, title=None),
    )
    scale, ticks = log_scale([row["ms"] for row in rows], height)
    y = alt.Y(
        "ms:Q",
        scale=scale,
        axis=alt.Axis(title=None, values=ticks, minExtent=LABELS_PX, maxExtent=LABELS_PX, labelExpr=MS_LABELS),
    )
    layers = [
        sheet.chart([row for row in rows if row["style"] == style])
        .mark_line(aria=False, clip=True, **look)
        .encode(x=x, y=y, detail=alt.Detail("curve:N"), color=sheet.colour())
        for style, look in _STYLES.items()
    ]
    chart = alt.layer(*layers).properties(width=width_px - LABELS_PX - RIGHT_PX, height=height)
    return sheet.finish(chart)


def percentile_dots(
    rows: Sequence[tuple[int, str, ValueCounts]], arms: Sequence[ArmSummary], width_px: int, theme: Theme
) -> dict[str, Any]:
    """p50, p95 and p99 of each row (an arm's index, its text, a distribution) on a line: for more arms than curves can be."""
    import altair as alt

    sheet = Sheet(arms, theme)
    plot_px = width_px - 2 * RIGHT_PX
    points: list[dict[str, Any]] = []
    spans: list[dict[str, Any]] = []
    for place, (arm, text, distribution) in enumerate(rows):
        values = {percent: distribution.percentile(percent) for percent in PERCENTILES}
        known = {percent: value for percent, value in values.items() if value is not None and value > 0}
        if not known:
            continue
        figure = " / ".join(number(value) for value in known.values())
        spans.append({"row": place, "arm": str(arm), "label": text, "low": min(known.values()),
                      "high": max(known.values()), "figure": figure})  # fmt: skip
        points += [
            {
                "row": place,
                "arm": str(arm),
                "ms": value,
                "percent": percent,
                "what": f"{text}: p{percent} {number(value)} ms",
            }
            for percent, value in known.items()
        ]
    scale, ticks = log_scale([point["ms"] for point in points], plot_px // 3)
    x = alt.X("ms:Q", scale=scale, axis=alt.Axis(title="ms", values=ticks, labelExpr=MS_LABELS, labelFlush=True))
    y = alt.Y("row:O", axis=None, sort=None)
    size = alt.Size("percent:O", legend=None, scale=alt.Scale(domain=[50, 95, 99], range=[70, 40, 20]))
    base = sheet.chart(spans).encode(y=y)
    layers = [
        base.mark_rule(strokeWidth=2, opacity=0.55, aria=False).encode(
            x=alt.X("low:Q", scale=scale), x2=alt.X2("high:Q"), color=sheet.colour()
        ),
        sheet.chart(points)
        .mark_point(filled=True, opacity=1)
        .encode(x=x, y=y, size=size, color=sheet.colour(), description=alt.Description("what:N")),
        sheet.text(base, "label", 0, align="left", dy=-13, limit=plot_px * (1 if width_px < NARROW_PX else 0.66)),
        *([] if width_px < NARROW_PX else [sheet.text(base, "figure", plot_px, align="right", dy=-13)]),
    ]
    return sheet.finish(alt.layer(*layers).properties(width=plot_px, height=36 * max(1, len(spans)) + 10), RIGHT_PX)


def percentile_points(distribution: ValueCounts, points: int = 160) -> list[tuple[float, float]]:
    """(1 / share above, ms) evenly spaced on the log axis, as far as :data:`TAIL_COUNT_MIN` values are above."""
    import numpy as np

    if distribution.total < TAIL_COUNT_MIN * 2:
        return []
    above = np.geomspace(_PERCENTILES[0][0], distribution.total / TAIL_COUNT_MIN, points)
    values = distribution.percentiles((100 * (1 - 1 / above)).tolist())
    return [(place, value) for place, value in zip(above.tolist(), values, strict=True) if value > 0]


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
    for place, (name, distribution) in enumerate(curves):
        opacity = round(0.3 + 0.7 * (place + 1) / len(curves), 3)
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
