"""The ratio there against the ratio here, with intervals and the diagonal on which both are the same."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pgdyno.report.figures.parts import LABELS_PX, RIGHT_PX, TICK_PX, Sheet
from pgdyno.reproduce import words
from pgdyno.reproduce.verdict import Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.report.theme import Theme
    from pgdyno.reproduce.told import Told

COLOURS = {Word.AGREES: "good", Word.WITHIN: "warn", Word.DIFFERS: "bad", Word.UNTOLD: "quiet"}
"""Colours of the theme, by verdict."""
HEIGHT_PX = 420
TICKS = (0.1, 0.2, 0.5, 0.8, 1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)
TICK_WIDTH_PX = 34
"""Room that a label of the horizontal axis needs."""


def there_and_here(numbered: Sequence[tuple[int, Told]], width_px: int, theme: Theme) -> dict[str, Any]:
    """A dot for each comparison that has a ratio here, with its number in the tables."""
    import altair as alt

    sheet = Sheet((), theme)
    plot_px = width_px - LABELS_PX - RIGHT_PX
    rows = [_row(place, told, theme) for place, told in numbered]
    ends = [row[name] for row in rows for name in ("there", "low", "high")]
    domain = [min(*ends, 1.0) / 1.15, max(*ends, 1.0) * 1.15]
    scale = alt.Scale(type="log", domain=domain, nice=False)
    x = alt.X("there:Q", scale=scale, axis=_axis("ratio in the document", _ticks(domain, plot_px / TICK_WIDTH_PX)))
    y_axis = _axis("ratio here", _ticks(domain, HEIGHT_PX / TICK_PX), minExtent=LABELS_PX, maxExtent=LABELS_PX)
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
        base.mark_rule(strokeWidth=2, aria=False).encode(
            x=x, y=alt.Y("low:Q", scale=scale), y2=alt.Y2("high:Q"), color=colour
        ),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            x=x, y=y, color=colour, description=alt.Description("what:N")
        ),
        base.mark_text(align="left", dx=7, dy=-6, fontSize=11, aria=False).encode(x=x, y=y, text="place:N"),
    ]
    chart = alt.layer(*layers).properties(width=plot_px, height=HEIGHT_PX)
    return sheet.finish(chart)


def _row(place: int, told: Told, theme: Theme) -> dict[str, Any]:
    assert told.ratio is not None
    mean = told.ratio.mean
    low, high = (mean if end is None else end for end in (told.ratio.low, told.ratio.high))
    return {
        "place": str(place),
        "there": told.there.ratio,
        "here": mean,
        "low": max(low, mean / 100),
        "high": min(high, mean * 100),
        "colour": theme[COLOURS[told.judged.word]],
        "what": f"{place}, {told.name}: there {words.there(told)}, here {words.here(told)}, {told.judged.word}",
    }


def _axis(title: str, ticks: list[float], **more: Any) -> Any:
    import altair as alt

    return alt.Axis(title=title, values=ticks, format="~g", labelFlush=True, **more)


def _ticks(domain: Sequence[float], most: float) -> list[float]:
    """1 and the round ratios around it that have room."""
    gap = math.log(domain[1] / domain[0]) / most
    kept = [1.0]
    for tick in sorted((t for t in TICKS if domain[0] <= t <= domain[1]), key=lambda t: abs(math.log(t))):
        if all(abs(math.log(tick / other)) >= gap for other in kept):
            kept.append(tick)
    return sorted(kept)
