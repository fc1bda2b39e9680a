"""The ratio there against the ratio here, with intervals and the diagonal on which both are the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pgdyno.report.figures.parts import LABELS_PX, RIGHT_PX, TICK_PX, Sheet
from pgdyno.report.theme import Theme

from ...analysis.statistics import Estimate
from . import words
from .labels import BAR_PX, NEAR_PX, interval, placed
from .told import ComparisonResult
from .verdict import Word

COLOURS = {Word.AGREES: "good", Word.WITHIN: "warn", Word.DIFFERS: "bad", Word.UNTOLD: "quiet"}
"""Colours of the theme, by verdict."""
HEIGHT_PX = 420
TICKS = (0.1, 0.2, 0.5, 0.8, 1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)
TICK_WIDTH_PX = 34
"""Room that a label of the horizontal axis needs."""


def there_and_here(numbered: Sequence[tuple[int, ComparisonResult]], width_px: int, theme: Theme) -> dict[str, Any]:
    """A dot for each comparison that has a ratio here, with its number in the tables."""
    import altair as alt

    sheet = Sheet((), theme)
    plot_px = width_px - LABELS_PX - RIGHT_PX
    domain = domain_of([result for _, result in numbered])
    rows = [_row(place, result, theme) for place, result in numbered]
    _label(rows, domain, plot_px)
    scale = alt.Scale(type="log", domain=list(domain), nice=False)
    x = alt.X("there:Q", scale=scale, axis=_axis("ratio in the document", ticks_in(domain, plot_px / TICK_WIDTH_PX)))
    y_axis = _axis("ratio here", ticks_in(domain, HEIGHT_PX / TICK_PX), minExtent=LABELS_PX, maxExtent=LABELS_PX)
    y = alt.Y("here:Q", scale=scale, axis=y_axis)
    base = sheet.chart(rows)
    colour = alt.Color("colour:N", scale=None)
    diagonal = sheet.chart([{"there": end, "here": end} for end in domain])
    none = sheet.chart([{"one": 1.0}])
    quiet = alt.value(theme["quiet"])
    layers = [
        none.mark_rule(strokeDash=[2, 4], aria=False).encode(x=alt.X("one:Q", scale=scale), color=quiet),
        none.mark_rule(strokeDash=[2, 4], aria=False).encode(y=alt.Y("one:Q", scale=scale), color=quiet),
        diagonal.mark_line(strokeWidth=1.5, aria=False).encode(x=x, y=y, color=quiet),
        base.mark_rule(strokeWidth=BAR_PX, aria=False).encode(
            x=x, y=alt.Y("low:Q", scale=scale), y2=alt.Y2("high:Q"), color=colour
        ),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            x=x, y=y, color=colour, description=alt.Description("what:N")
        ),
        sheet.chart([row for row in rows if row["far"]])
        .mark_rule(strokeWidth=1, aria=False)
        .encode(x=x, y=y, x2="label_x:Q", y2="label_y:Q", color=quiet),
        base.mark_text(fontSize=11, aria=False).encode(
            x=alt.X("label_x:Q", scale=scale), y=alt.Y("label_y:Q", scale=scale), text="place:N"
        ),
    ]
    chart = alt.layer(*layers).properties(width=plot_px, height=HEIGHT_PX)
    return sheet.finish(chart)


def ends_of(result: ComparisonResult) -> tuple[float, float, float]:
    """The ratio here and the ends of its interval; one that is very wide is cut."""
    assert result.ratio is not None
    return cut(result.ratio, 100.0)


def cut(estimate: Estimate, reach: float) -> tuple[float, float, float]:
    """A mean and the ends of its interval, each at most ``reach`` times off: it may reach below zero, where a logarithmic axis has no place."""
    low, high = (estimate.mean if end is None else end for end in (estimate.low, estimate.high))
    return estimate.mean, max(low, estimate.mean / reach), min(high, estimate.mean * reach)


def domain_of(shown: Sequence[ComparisonResult]) -> tuple[float, float]:
    """The ends of both axes."""
    ends = [end for result in shown for end in (result.there.ratio, *ends_of(result))]
    return min(*ends, 1.0) / 1.15, max(*ends, 1.0) * 1.15


def share_of(value: float, domain: tuple[float, float]) -> float:
    """Where a figure lies on a logarithmic axis, from 0 to 1."""
    return math.log(value / domain[0]) / math.log(domain[1] / domain[0])


def _row(place: int, result: ComparisonResult, theme: Theme) -> dict[str, Any]:
    mean, low, high = ends_of(result)
    return {
        "place": str(place),
        "there": result.there.ratio,
        "here": mean,
        "low": low,
        "high": high,
        "colour": theme[COLOURS[result.judged.word]],
        "what": f"{place}, {result.name}: there {words.there(result)}, here {words.here(result)}, {result.judged.word}",
    }


def _label(rows: list[dict[str, Any]], domain: tuple[float, float], plot_px: float) -> None:
    """Add where the number of each dot stands, and whether a line must lead there."""
    spots = [
        (share_of(row["there"], domain) * plot_px, (1 - share_of(row["here"], domain)) * HEIGHT_PX, row["place"])
        for row in rows
    ]
    bars = [
        interval(x_px, *((1 - share_of(row[end], domain)) * HEIGHT_PX for end in ("high", "low")))
        for row, (x_px, _, _) in zip(rows, spots, strict=True)
    ]
    wide = domain[1] / domain[0]
    for row, (x_px, y_px, _), box in zip(rows, spots, placed(spots, plot_px, HEIGHT_PX, bars), strict=True):
        row["label_x"] = domain[0] * wide ** (box.x_px / plot_px)
        row["label_y"] = domain[0] * wide ** (1 - box.y_px / HEIGHT_PX)
        row["far"] = math.dist((x_px, y_px), (box.x_px, box.y_px)) > NEAR_PX + box.width_px / 2


def _axis(title: str, ticks: list[float], **more: Any) -> Any:
    import altair as alt

    return alt.Axis(title=title, values=ticks, format="~g", labelFlush=True, **more)


def ticks_in(domain: tuple[float, float], most: float) -> list[float]:
    """1 and the round ratios around it that have room."""
    gap = math.log(domain[1] / domain[0]) / most
    kept = [1.0]
    for tick in sorted((t for t in TICKS if domain[0] <= t <= domain[1]), key=lambda t: abs(math.log(t))):
        if all(abs(math.log(tick / other)) >= gap for other in kept):
            kept.append(tick)
    return sorted(kept)
