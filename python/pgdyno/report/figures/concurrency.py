"""Throughput by concurrency: bars in groups, and a small panel for each number of clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.sweep import Sweep, SweepGroup
from pgdyno.report.figures.parts import LABELS_PX, RIGHT_PX, Sheet, evenly, variant_colour
from pgdyno.report.theme import Theme

from ...base.text import number

PANELS_MAX = 24
"""Small panels at most; of more levels as many are chosen evenly."""
_LABEL_PX = 34
"""Room that a label of a group needs."""


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
