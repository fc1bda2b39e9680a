"""Figures of factors and sweeps: throughput by concurrency, effects, scaling, cost front, spread, heat maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.sweep import Sweep, SweepGroup
from pgdyno.report.figures.parts import (
    LABELS_PX,
    MS_LABELS,
    NARROW_PX,
    RIGHT_PX,
    Sheet,
    evenly,
    event_marks,
    event_rows,
    log_scale,
    variant_colour,
)
from pgdyno.report.theme import Theme

from ...analysis.distribution import MapCell
from ...analysis.run import Headline
from ...analysis.series import Event
from ...analysis.statistics import Estimate, box_of
from ...analysis.sweep import Scaling
from ...base.text import UNKNOWN, money, number, ratio_interval, times

PANELS_MAX = 24
"""Small panels at most; of more levels as many are chosen evenly."""
_LABEL_PX = 34
"""Room that a label of a group needs."""


@dataclass(frozen=True)
class EffectRow:
    """One level against the first of its factor."""

    factor: str
    over: str
    under: str
    estimate: Estimate | None
    metric: Headline
    distinguishable: bool
    depends: bool
    """Whether it was seen to depend on another factor."""
    at: str = ""
    """For a row below another: the level of the other factor that it holds at."""

    @property
    def ratio(self) -> str:
        """The ratio alone."""
        return UNKNOWN if self.estimate is None else times(self.estimate.mean)

    @property
    def extent(self) -> str:
        """Its interval."""
        return UNKNOWN if self.estimate is None else ratio_interval(self.estimate.low, self.estimate.high)

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if self.estimate is None:
            return "no pair of runs"
        if self.estimate.low is None:
            return "a single run has no interval"
        return self.metric.apart(self.estimate.mean) if self.distinguishable else "not distinguishable"


def bars(sweep: Sweep, arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """The headline as bars in groups of the first axis: in a group a bar for each level of the second, palest first.

    Without a second axis a bar for each variant.
    """
    import altair as alt

    sheet = Sheet(arms, theme)
    if sweep.along is None:
        rows = [row for variant in sweep.variants for row in _bar_rows(sweep, variant, variant.index, theme)]
        return sheet.finish(_bar_panel(sheet, sweep, rows, "", width_px))
    panels = [
        _bar_panel(sheet, sweep, _bar_rows(sweep, variant, None, theme), variant.label, width_px)
        for variant in sweep.variants
    ]
    return sheet.finish(alt.vconcat(*panels, spacing=16))


def _bar_rows(sweep: Sweep, variant: SweepGroup, member: int | None, theme: Theme) -> list[dict[str, Any]]:
    """A row for each arm; ``member`` is its place in a group, or the place on the second axis."""
    count = len(sweep.second)
    return [
        {
            "x": sweep.x.texts[x],
            "member": second if member is None else member,
            "value": float(f"{arm.headline.mean:.4g}"),
            "colour": variant_colour(variant.index, theme),
            "opacity": round(0.35 + 0.65 * (second + 1) / count, 3) if count > 1 else 0.85,
            "what": f"{arm.label}: {number(arm.headline.mean)} {arm.metric.short}",
        }
        for (x, second), arm in sorted(variant.arms.items())
    ]


def _bar_panel(sheet: Sheet, sweep: Sweep, rows: list[dict[str, Any]], title: str, width_px: int) -> Any:
    import altair as alt

    plot_px = width_px - LABELS_PX - RIGHT_PX
    texts = list(sweep.x.texts)
    shown = evenly(texts, max(2, plot_px // _LABEL_PX))
    most = max([1e-3, *(arm.headline.mean for variant in sweep.variants for arm in variant.arms.values())])
    x_axis = alt.Axis(title=sweep.x.title, labelAngle=0, values=shown, titlePadding=4)
    return (
        sheet.chart(rows)
        .mark_bar(aria=len(rows) <= 200)
        .encode(
            x=alt.X("x:O", sort=texts, axis=x_axis, scale=alt.Scale(paddingInner=0.25, paddingOuter=0.1)),
            xOffset=alt.XOffset("member:O", scale=alt.Scale(paddingInner=0.08)),
            y=alt.Y("value:Q", scale=alt.Scale(domain=[0, most * 1.03], nice=False), axis=_value_axis()),
            color=alt.Color("colour:N", scale=None),
            opacity=alt.Opacity("opacity:Q", scale=None),
            description=alt.Description("what:N"),
        )
        .properties(width=plot_px, height=150, title=title)
    )


def concurrency_multiples(sweep: Sweep, arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """A panel for each level of the first axis: the headline along the second, a line for each variant, all on common scales."""
    import altair as alt

    assert sweep.along is not None
    sheet = Sheet(arms, theme)
    columns = 4 if width_px > 800 else 3 if width_px > 500 else 2
    plot_px = (width_px - LABELS_PX - RIGHT_PX - 16 * (columns - 1)) // columns
    most = max([1e-3, *(arm.headline.mean for variant in sweep.variants for arm in variant.arms.values())])
    places = evenly(range(len(sweep.x.values)), PANELS_MAX)
    lines = []
    for start in range(0, len(places), columns):
        panels = []
        for place in places[start : start + columns]:
            first, last = place == places[start], start + columns >= len(places)
            rows = _line_rows(sweep, place, theme)
            ends = [sweep.along.values[0], sweep.along.values[-1]]
            x = alt.X("along:Q", scale=alt.Scale(domain=ends, nice=False), axis=alt.Axis(
                title=None, labels=last, values=ends, labelFlush=True, labelExpr=_end_labels(sweep)))  # fmt: skip
            y = alt.Y("value:Q", scale=alt.Scale(domain=[0, most * 1.05], nice=False), axis=_value_axis(labels=first))
            base = sheet.chart(rows).encode(x=x, y=y, color=alt.Color("colour:N", scale=None))
            title = {"text": f"{sweep.x.texts[place]} {sweep.x.title}", "fontSize": 11, "offset": 5}
            panels.append(
                alt.layer(
                    base.mark_line(strokeWidth=1.6, aria=False).encode(detail=alt.Detail("variant:O")),
                    base.mark_point(size=14, filled=True, opacity=1).encode(description=alt.Description("what:N")),
                ).properties(width=plot_px, height=90, title=title)
            )
        lines.append(alt.hconcat(*panels, spacing=16))
    return sheet.finish(alt.vconcat(*lines, spacing=10))


def _end_labels(sweep: Sweep) -> str:
    """The first and the last level of the second axis as they were written."""
    assert sweep.along is not None
    first, last = (_quoted(sweep.along.texts[place]) for place in (0, -1))
    return f"datum.value == {sweep.along.values[0]!r} ? {first} : {last}"


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)


def _line_rows(sweep: Sweep, place: int, theme: Theme) -> list[dict[str, Any]]:
    assert sweep.along is not None
    return [
        {
            "variant": variant.index,
            "along": sweep.along.values[second],
            "value": float(f"{arm.headline.mean:.4g}"),
            "colour": variant_colour(variant.index, theme),
            "what": f"{arm.label}: {number(arm.headline.mean)} {arm.metric.short}",
        }
        for variant in sweep.variants
        for second in sweep.second
        if (arm := variant.arms.get((place, second))) is not None
    ]


def _value_axis(labels: bool = True) -> Any:
    import altair as alt

    room = LABELS_PX if labels else 0
    return alt.Axis(
        title=None, labels=labels, tickCount=4, minExtent=room, maxExtent=room,
        labelExpr="format(datum.value, datum.value >= 1e5 ? '~s' : ',')",
    )  # fmt: skip


EFFECT_ROW_PX = 46
"""Height of a row: what is compared and its ratio, the interval."""
EFFECT_ROW_NARROW_PX = 60
"""The same on a phone, where the ratio has a line of its own."""
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)
_TICK_PX = 42
"""Room that a label of the axis needs."""


def effects(rows: Sequence[EffectRow], arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """A row for each effect; below one that depends on another factor, the effect at that factor's levels, smaller."""
    import altair as alt

    sheet = Sheet(arms, theme)
    plot_px = width_px - 2 * RIGHT_PX
    data = [_effect_row(place, row, theme) for place, row in enumerate(rows) if row.estimate is not None]
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
    row_px = EFFECT_ROW_NARROW_PX if width_px < NARROW_PX else EFFECT_ROW_PX
    return sheet.finish(alt.layer(*layers).properties(width=plot_px, height=row_px * len(rows)), RIGHT_PX)


def _texts(sheet: Sheet, data: list[dict[str, Any]], y: Any, plot_px: int, narrow: bool) -> list[Any]:
    """The comparison and its figure: at the end of the line, or below where there is no room."""
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


def _effect_row(place: int, row: EffectRow, theme: Theme) -> dict[str, Any]:
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


BOX_ROW_PX = 58


def throughput_boxes(sweep: Sweep, arms: Sequence[ArmSummary], width_px: int, theme: Theme) -> dict[str, Any]:
    """The headline of every run as a box for each variant: quartiles and median, whiskers, and the runs outside of them."""
    import altair as alt

    sheet = Sheet(arms, theme)
    plot_px = width_px - 2 * RIGHT_PX
    rows, points = _box_rows(sweep, theme)
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
    return sheet.finish(alt.layer(*layers).properties(width=plot_px, height=BOX_ROW_PX * len(rows) + 8), RIGHT_PX)


def _box_rows(sweep: Sweep, theme: Theme) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
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
