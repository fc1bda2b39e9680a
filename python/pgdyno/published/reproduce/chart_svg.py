"""A chart as SVG: the document's points hollow with a dashed curve, those of runs filled, with their intervals. Both axes are logarithmic.

Colours are custom properties, which a page declares, or a file of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from ...analysis.sweep import Scaling
from .chart import ChartResult, LineResult, PointResult
from .figure import cut, share_of
from .words import figure

WIDTH_PX, LEFT_PX, RIGHT_PX, TOP_PX, PLOT_PX = 420, 58, 16, 14, 300
"""Narrow, so that it can be read on a telephone."""
KEY_PX, AXIS_PX = 20, 50
"""Height of a line of the key, and of what stands below the plot before it."""
COLOURS = 6
"""The arms' colours of a theme."""
LOOKS = ("hollow and dashed: in the document", "filled: here, with 95 % intervals")
CURVE_STEPS = 40
ROOM = 1.25
"""How far the axes reach beyond the outermost points, as a factor."""
REACH = 10.0
"""An interval is cut where it ends this many times off its mean."""


def svg(chart: ChartResult, inside: str = "") -> str:
    """The chart. ``inside`` stands first in it, behind what is drawn."""
    height_px = TOP_PX + PLOT_PX + AXIS_PX + KEY_PX * (len(chart.lines) + len(LOOKS)) + 8
    parts = "\n".join(_Plot(chart).parts())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {height_px}" width="{WIDTH_PX}" height="{height_px}"'
        f' style="max-width:100%;height:auto" role="img" aria-label="{escape(title(chart))}">{inside}\n'
        f'<g font-size="13" fill="var(--quiet)">\n{parts}\n</g>\n</svg>\n'
    )


def title(chart: ChartResult) -> str:
    """What a screen reader says."""
    return f"{chart.chart.name}: {'; '.join(line.name for line in chart.lines)}"


class _Plot:
    """Both axes, curves, points and key."""

    def __init__(self, chart: ChartResult) -> None:
        self.chart = chart
        points = [point for line in chart.lines for point in line.points]
        self.xs = sorted({point.x for point in points})
        self.width_px = WIDTH_PX - LEFT_PX - RIGHT_PX
        self.x_domain = (self.xs[0] / ROOM, self.xs[-1] * ROOM)
        values = [point.there for point in points] + [end for point in points for end in _ends(point)]
        self.y_domain = (min(values) / ROOM, max(values) * ROOM)

    def parts(self) -> Iterator[str]:
        yield from self.axes()
        for place, line in enumerate(self.chart.lines):
            yield from self.line(line, f"var(--arm{place % COLOURS})")
        yield from self.key()

    def axes(self) -> Iterator[str]:
        bottom_px, right_px = TOP_PX + PLOT_PX, WIDTH_PX - RIGHT_PX
        for x in self.xs:
            yield f'<text text-anchor="middle" x="{self.across(x)}" y="{bottom_px + 18}">{x:g}</text>'
        for tick in ticks(self.y_domain):
            y = self.down(tick)
            yield f'<path d="M{LEFT_PX} {y}H{right_px}" stroke="var(--line)"/>'
            yield f'<text text-anchor="end" x="{LEFT_PX - 7}" y="{y + 4:g}">{tick:,g}</text>'
        middle_px = TOP_PX + PLOT_PX / 2
        yield f'<text text-anchor="middle" x="{LEFT_PX + self.width_px / 2:g}" y="{bottom_px + 38}">{escape(self.chart.chart.x_title)}</text>'
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
        y_px = TOP_PX + PLOT_PX + AXIS_PX + KEY_PX
        for place, line in enumerate(self.chart.lines):
            yield f'<circle cx="{LEFT_PX + 5}" cy="{y_px - 4}" r="4.5" fill="var(--arm{place % COLOURS})"/>'
            yield f'<text x="{LEFT_PX + 17}" y="{y_px}">{escape(line.name)}</text>'
            y_px += KEY_PX
        for place, look in enumerate(LOOKS):
            yield f'<text x="{LEFT_PX}" y="{y_px + KEY_PX * place}">{look}</text>'

    def across(self, x: float) -> float:
        """Where a number lies on the horizontal axis."""
        return round(LEFT_PX + self.width_px * share_of(x, self.x_domain), 1)

    def down(self, y: float) -> float:
        """Where a figure lies on the vertical one."""
        return round(TOP_PX + PLOT_PX * (1 - share_of(y, self.y_domain)), 1)


def ticks(domain: tuple[float, float]) -> list[float]:
    """1, 2 and 5 of each decade of an axis."""
    decades = range(math.floor(math.log10(domain[0])), math.ceil(math.log10(domain[1])) + 1)
    every = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    return [tick for tick in every if domain[0] <= tick <= domain[1]]


def _ends(point: PointResult) -> tuple[float, ...]:
    """The ends of the interval here; the mean where there is none, nothing where there is no figure."""
    if point.here is None:
        return ()
    return cut(point.here, REACH)[1:]
