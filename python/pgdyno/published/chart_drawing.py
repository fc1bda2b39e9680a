"""Drawings of published comparisons: published ratios against measured ones, and charts of a document beside runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from pgdyno.report.figures.parts import LABELS_PX, RIGHT_PX, TICK_PX, Sheet
from pgdyno.report.theme import Theme

from ..analysis.statistics import Estimate
from ..analysis.sweep import Scaling
from . import words
from .judge import ChartResult, ComparisonResult, LineResult, PointResult, Verdict
from .words import figure

DOT_PX = 6.0
"""Half the width of a dot, and some."""
DIGIT_PX, LABEL_HEIGHT_PX = 7.0, 13.0
"""Room of a digit of 11 to 12 px."""
BAR_PX = 2
"""Width of an interval's line."""
NEAR_PX = 15.0
"""A number this near to its dot needs no line to it."""
_RINGS_PX = (14.0, 19.0, 26.0, 36.0, 48.0, 62.0, 78.0, 96.0)
_DIRECTIONS = 16


@dataclass(frozen=True)
class LabelBox:
    """A rectangle by its centre, in pixels from the plot's upper left corner."""

    x_px: float
    y_px: float
    width_px: float
    height_px: float

    def overlaps(self, other: LabelBox) -> bool:
        """True if the two overlap."""
        across = abs(self.x_px - other.x_px) * 2 < self.width_px + other.width_px
        return across and abs(self.y_px - other.y_px) * 2 < self.height_px + other.height_px

    def inside(self, width_px: float, height_px: float) -> bool:
        """True if it lies in the plot as a whole."""
        wide, high = self.width_px / 2, self.height_px / 2
        return wide <= self.x_px <= width_px - wide and high <= self.y_px <= height_px - high


def interval_box(x_px: float, top_px: float, bottom_px: float) -> LabelBox:
    """An interval as it is drawn."""
    return LabelBox(x_px, (top_px + bottom_px) / 2, BAR_PX, bottom_px - top_px)


def place_labels(
    dots: Sequence[tuple[float, float, str]], width_px: float, height_px: float, bars: Sequence[LabelBox] = ()
) -> list[LabelBox]:
    """The box of each dot's text: as near to it as there is room. Dots are (x, y, text) in pixels.

    ``bars`` are the intervals that are drawn. Where there is no room beside them a text covers a bar, and where there is
    none at all it stands beside its dot, over whatever is there.
    """
    taken = [LabelBox(x, y, 2 * DOT_PX, 2 * DOT_PX) for x, y, _ in dots]
    boxes: list[LabelBox] = []
    for x, y, text in dots:
        tried = list(_boxes_around(x, y, DIGIT_PX * len(text)))
        free = [box for box in tried if box.inside(width_px, height_px) and not any(map(box.overlaps, taken))]
        clear = (box for box in free if not any(map(box.overlaps, bars)))
        box = next(clear, next(iter(free), tried[0]))
        taken.append(box)
        boxes.append(box)
    return boxes


def _boxes_around(x_px: float, y_px: float, width_px: float) -> Iterator[LabelBox]:
    """Boxes around a dot, the nearest first; to the upper right before others."""
    for ring in _RINGS_PX:
        for step in range(_DIRECTIONS):
            angle = math.pi * (0.25 + 2 * step / _DIRECTIONS)
            across = (ring + width_px / 2 - DIGIT_PX / 2) * math.cos(angle)
            yield LabelBox(x_px + across, y_px - ring * math.sin(angle), width_px, LABEL_HEIGHT_PX)


VERDICT_COLOURS = {
    Verdict.AGREES: "good",
    Verdict.WITHIN: "warn",
    Verdict.DIFFERS: "bad",
    Verdict.NOT_ANSWERED: "quiet",
}
"""Colours of the theme, by verdict."""
HEIGHT_PX = 420
TICKS = (0.1, 0.2, 0.5, 0.8, 1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)
TICK_WIDTH_PX = 34
"""Room that a label of the horizontal axis needs."""


def ratio_chart(numbered: Sequence[tuple[int, ComparisonResult]], width_px: int, theme: Theme) -> dict[str, Any]:
    """A dot for each comparison that has a ratio here, with its number in the tables."""
    import altair as alt

    sheet = Sheet((), theme)
    plot_px = width_px - LABELS_PX - RIGHT_PX
    domain = domain_of([result for _, result in numbered])
    rows = [_row(place, result, theme) for place, result in numbered]
    _label(rows, domain, plot_px)
    scale = alt.Scale(type="log", domain=list(domain), nice=False)
    x = alt.X("there:Q", scale=scale, axis=_axis("ratio in the document", ratio_ticks(domain, plot_px / TICK_WIDTH_PX)))
    y_axis = _axis("ratio here", ratio_ticks(domain, HEIGHT_PX / TICK_PX), minExtent=LABELS_PX, maxExtent=LABELS_PX)
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
        "colour": theme[VERDICT_COLOURS[result.judgement.verdict]],
        "what": f"{place}, {result.name}: there {words.there(result)}, here {words.here(result)}, {result.judgement.verdict}",
    }


def _label(rows: list[dict[str, Any]], domain: tuple[float, float], plot_px: float) -> None:
    """Add where the number of each dot stands, and whether a line must lead there."""
    spots = [
        (share_of(row["there"], domain) * plot_px, (1 - share_of(row["here"], domain)) * HEIGHT_PX, row["place"])
        for row in rows
    ]
    bars = [
        interval_box(x_px, *((1 - share_of(row[end], domain)) * HEIGHT_PX for end in ("high", "low")))
        for row, (x_px, _, _) in zip(rows, spots, strict=True)
    ]
    wide = domain[1] / domain[0]
    for row, (x_px, y_px, _), box in zip(rows, spots, place_labels(spots, plot_px, HEIGHT_PX, bars), strict=True):
        row["label_x"] = domain[0] * wide ** (box.x_px / plot_px)
        row["label_y"] = domain[0] * wide ** (1 - box.y_px / HEIGHT_PX)
        row["far"] = math.dist((x_px, y_px), (box.x_px, box.y_px)) > NEAR_PX + box.width_px / 2


def _axis(title: str, ticks: list[float], **more: Any) -> Any:
    import altair as alt

    return alt.Axis(title=title, values=ticks, format="~g", labelFlush=True, **more)


def ratio_ticks(domain: tuple[float, float], most: float) -> list[float]:
    """1 and the round ratios around it that have room."""
    gap = math.log(domain[1] / domain[0]) / most
    kept = [1.0]
    for tick in sorted((t for t in TICKS if domain[0] <= t <= domain[1]), key=lambda t: abs(math.log(t))):
        if all(abs(math.log(tick / other)) >= gap for other in kept):
            kept.append(tick)
    return sorted(kept)


CHART_WIDTH_PX, CHART_LEFT_PX, CHART_RIGHT_PX, CHART_TOP_PX, CHART_PLOT_PX = 420, 58, 16, 14, 300
"""Narrow, so that it can be read on a telephone."""
KEY_PX, AXIS_PX = 20, 50
"""Height of a line of the key, and of what stands below the plot before it."""
ARM_COLOURS = 6
"""The arms' colours of a theme."""
LOOKS = ("hollow and dashed: in the document", "filled: here, with 95 % intervals")
CURVE_STEPS = 40
ROOM = 1.25
"""How far the axes reach beyond the outermost points, as a factor."""
REACH = 10.0
"""An interval is cut where it ends this many times off its mean."""


def chart_svg(chart: ChartResult, inside: str = "") -> str:
    """The chart. ``inside`` stands first in it, behind what is drawn."""
    height_px = CHART_TOP_PX + CHART_PLOT_PX + AXIS_PX + KEY_PX * (len(chart.lines) + len(LOOKS)) + 8
    parts = "\n".join(_ChartPlot(chart).parts())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {CHART_WIDTH_PX} {height_px}" width="{CHART_WIDTH_PX}" height="{height_px}"'
        f' style="max-width:100%;height:auto" role="img" aria-label="{escape(chart_title(chart))}">{inside}\n'
        f'<g font-size="13" fill="var(--quiet)">\n{parts}\n</g>\n</svg>\n'
    )


def chart_title(chart: ChartResult) -> str:
    """The title for screen readers."""
    return f"{chart.chart.name}: {'; '.join(line.name for line in chart.lines)}"


class _ChartPlot:
    """Both axes, curves, points and key."""

    def __init__(self, chart: ChartResult) -> None:
        self.chart = chart
        points = [point for line in chart.lines for point in line.points]
        self.xs = sorted({point.x for point in points})
        self.width_px = CHART_WIDTH_PX - CHART_LEFT_PX - CHART_RIGHT_PX
        self.x_domain = (self.xs[0] / ROOM, self.xs[-1] * ROOM)
        values = [point.there for point in points] + [end for point in points for end in _ends(point)]
        self.y_domain = (min(values) / ROOM, max(values) * ROOM)

    def parts(self) -> Iterator[str]:
        yield from self.axes()
        for place, line in enumerate(self.chart.lines):
            yield from self.line(line, f"var(--arm{place % ARM_COLOURS})")
        yield from self.key()

    def axes(self) -> Iterator[str]:
        bottom_px, right_px = CHART_TOP_PX + CHART_PLOT_PX, CHART_WIDTH_PX - CHART_RIGHT_PX
        for x in self.xs:
            yield f'<text text-anchor="middle" x="{self.across(x)}" y="{bottom_px + 18}">{x:g}</text>'
        for tick in decade_ticks(self.y_domain):
            y = self.down(tick)
            yield f'<path d="M{CHART_LEFT_PX} {y}H{right_px}" stroke="var(--line)"/>'
            yield f'<text text-anchor="end" x="{CHART_LEFT_PX - 7}" y="{y + 4:g}">{tick:,g}</text>'
        middle_px = CHART_TOP_PX + CHART_PLOT_PX / 2
        yield f'<text text-anchor="middle" x="{CHART_LEFT_PX + self.width_px / 2:g}" y="{bottom_px + 38}">{escape(self.chart.chart.x_title)}</text>'
        yield f'<text text-anchor="middle" transform="rotate(-90 12 {middle_px:g})" x="12" y="{middle_px:g}">{escape(self.chart.unit)}</text>'

    def line(self, line: LineResult, colour: str) -> Iterator[str]:
        there = [(point.x, point.there) for point in line.points]
        yield self.curve(there, line.law_there, colour, ' stroke-dasharray="5 4"')
        here = [(point.x, point.here.mean) for point in line.points if point.here is not None]
        if len(here) > 1:
            yield self.curve(here, line.law_here, colour, "")
        for point in line.points:
            text = f"{line.name}, {point.x:g} {self.chart.chart.x_title}"
            x = self.across(point.x)
            yield (
                f'<circle cx="{x}" cy="{self.down(point.there)}" r="4.5" fill="var(--panel)" stroke="{colour}" stroke-width="1.5">'
                f"<title>{escape(text)}: {figure(point.there)} {escape(self.chart.unit)} there</title></circle>"
            )
            if point.here is not None:
                low, high = (self.down(end) for end in _ends(point))
                yield f'<path d="M{x} {low}V{high}" stroke="{colour}" stroke-width="2"/>'
                yield (
                    f'<circle cx="{x}" cy="{self.down(point.here.mean)}" r="4.5" fill="{colour}">'
                    f"<title>{escape(text)}: {figure(point.here.mean)} {escape(self.chart.unit)} here</title></circle>"
                )

    def curve(self, points: Sequence[tuple[float, float]], law: Scaling | None, colour: str, look: str) -> str:
        """The law where the points follow one, else from point to point."""
        if law is not None and law.follows:
            low, high = law.clients
            xs = [low * (high / low) ** (step / CURVE_STEPS) for step in range(CURVE_STEPS + 1)]
            points = [(x, law.tps(x)) for x in xs]
        path = "L".join(f"{self.across(x)} {self.down(y)}" for x, y in points)
        return f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.5"{look}/>'

    def key(self) -> Iterator[str]:
        y_px = CHART_TOP_PX + CHART_PLOT_PX + AXIS_PX + KEY_PX
        for place, line in enumerate(self.chart.lines):
            yield f'<circle cx="{CHART_LEFT_PX + 5}" cy="{y_px - 4}" r="4.5" fill="var(--arm{place % ARM_COLOURS})"/>'
            yield f'<text x="{CHART_LEFT_PX + 17}" y="{y_px}">{escape(line.name)}</text>'
            y_px += KEY_PX
        for place, look in enumerate(LOOKS):
            yield f'<text x="{CHART_LEFT_PX}" y="{y_px + KEY_PX * place}">{look}</text>'

    def across(self, x: float) -> float:
        """Where a number lies on the horizontal axis."""
        return round(CHART_LEFT_PX + self.width_px * share_of(x, self.x_domain), 1)

    def down(self, y: float) -> float:
        """Where a figure lies on the vertical one."""
        return round(CHART_TOP_PX + CHART_PLOT_PX * (1 - share_of(y, self.y_domain)), 1)


def decade_ticks(domain: tuple[float, float]) -> list[float]:
    """1, 2 and 5 of each decade of an axis."""
    decades = range(math.floor(math.log10(domain[0])), math.ceil(math.log10(domain[1])) + 1)
    every = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    return [tick for tick in every if domain[0] <= tick <= domain[1]]


def _ends(point: PointResult) -> tuple[float, ...]:
    """The ends of the interval here; the mean where there is none, nothing where there is no figure."""
    if point.here is None:
        return ()
    return cut(point.here, REACH)[1:]
