"""``docs/picture/published.svg``: ratios in the published documents against those here. One file serves light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from pgdyno.published import words
from pgdyno.published.chart_drawing import (
    BAR_PX,
    NEAR_PX,
    VERDICT_COLOURS,
    domain_of,
    ends_of,
    interval_box,
    place_labels,
    ratio_ticks,
    share_of,
)
from pgdyno.published.judge import ComparisonResult, DocumentResult, Verdict
from tools.reference.colours import schemes
from tools.reference.published_summary import judge_documents, numbered

FILE = "published.svg"
WIDTH_PX, LEFT_PX, TOP_PX, PLOT_PX = 480, 52, 14, 412
"""Narrow, so that it can be read on a telephone."""
KEY_ROW_PX, KEY_COLUMN_PX = 20, 240
"""Two columns of two entries; "agrees within what is unstated" is 180 px wide, in a wide font 220."""
HEIGHT_PX = TOP_PX + PLOT_PX + 78 + KEY_ROW_PX
TICKS_MOST = 11
NAMES = ("panel", "ink", "quiet", "line", "good", "warn", "bad")
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--quiet); }
.place { font-size: 11px; text-anchor: middle; fill: var(--ink); }
.x { text-anchor: middle; }
.y { text-anchor: end; }
"""


def picture() -> str:
    """The picture as SVG."""
    return drawn(judge_documents())


def drawn(documents: Sequence[DocumentResult]) -> str:
    """The comparisons that were run, as SVG."""
    shown = [
        (place, result) for place, _, result in numbered(documents) if result.ratio is not None and result.experiment
    ]
    title = f"The ratios of {len(shown)} comparisons in their documents, against the same ratios here"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {HEIGHT_PX}" width="{WIDTH_PX}" height="{HEIGHT_PX}"'
        f' role="img" aria-label="{escape(title)}">\n<style>\n{schemes(NAMES)}{STYLE}</style>\n'
        f'<rect x="0.5" y="0.5" width="{WIDTH_PX - 1}" height="{HEIGHT_PX - 1}" rx="8" fill="var(--panel)" stroke="var(--line)"/>\n'
        + "\n".join([*_Plot(shown).parts(), *_key({item.judgement.verdict for _, item in shown})])
        + "\n</svg>\n"
    )


class _Plot:
    """The square with both axes, the same for both."""

    def __init__(self, shown: Sequence[tuple[int, ComparisonResult]]) -> None:
        self.shown = shown
        self.domain = domain_of([result for _, result in shown]) if shown else (0.5, 2.0)

    def parts(self) -> Iterator[str]:
        bottom_px, right_px = TOP_PX + PLOT_PX, LEFT_PX + PLOT_PX
        yield f'<rect x="{LEFT_PX}" y="{TOP_PX}" width="{PLOT_PX}" height="{PLOT_PX}" fill="none" stroke="var(--line)"/>'
        for tick in ratio_ticks(self.domain, TICKS_MOST):
            x, y = self.across(tick), self.down(tick)
            yield f'<text class="x" x="{x}" y="{bottom_px + 18}">{tick:g}</text><text class="y" x="{LEFT_PX - 7}" y="{y + 4}">{tick:g}</text>'
        x, y = self.across(1), self.down(1)
        yield f'<path d="M{x} {TOP_PX}V{bottom_px}M{LEFT_PX} {y}H{right_px}" stroke="var(--quiet)" stroke-dasharray="2 4"/>'
        yield f'<path d="M{LEFT_PX} {bottom_px}L{right_px} {TOP_PX}" stroke="var(--quiet)" stroke-width="1.5"/>'
        yield f'<text class="x" x="{LEFT_PX + PLOT_PX / 2:g}" y="{bottom_px + 38}">ratio in the document</text>'
        middle_px = TOP_PX + PLOT_PX / 2
        yield f'<text class="x" transform="rotate(-90 15 {middle_px:g})" x="15" y="{middle_px:g}">ratio here</text>'
        yield from self.dots()

    def dots(self) -> Iterator[str]:
        spots = [(self.across(result.there.ratio), self.down(ends_of(result)[0])) for _, result in self.shown]
        inside = [(x - LEFT_PX, y - TOP_PX, str(place)) for (x, y), (place, _) in zip(spots, self.shown, strict=True)]
        bars = [
            interval_box(x - LEFT_PX, *(self.down(end) - TOP_PX for end in reversed(ends_of(item)[1:])))
            for (x, _), (_, item) in zip(spots, self.shown, strict=True)
        ]
        for (x, y), (place, item), box in zip(
            spots, self.shown, place_labels(inside, PLOT_PX, PLOT_PX, bars), strict=True
        ):
            colour = f"var(--{VERDICT_COLOURS[item.judgement.verdict]})"
            _, low, high = ends_of(item)
            text = f"{place}, {item.name}: there {words.there_ratio(item)}, here {words.here_ratio(item)}, {item.judgement.verdict}"
            to_x, to_y = round(box.x_px + LEFT_PX, 1), round(box.y_px + TOP_PX, 1)
            if math.dist((x, y), (to_x, to_y)) > NEAR_PX + box.width_px / 2:
                yield f'<path d="M{x} {y}L{to_x} {to_y}" stroke="var(--line)"/>'
            yield f'<path d="M{x} {self.down(low)}V{self.down(high)}" stroke="{colour}" stroke-width="{BAR_PX}"/>'
            yield f'<circle cx="{x}" cy="{y}" r="4.5" fill="{colour}"><title>{escape(text)}</title></circle>'
            yield f'<text class="place" x="{to_x}" y="{to_y + 4:g}">{place}</text>'

    def across(self, ratio: float) -> float:
        """Where a ratio lies on the horizontal axis."""
        return round(LEFT_PX + PLOT_PX * share_of(ratio, self.domain), 1)

    def down(self, ratio: float) -> float:
        """Where it lies on the vertical one."""
        return round(TOP_PX + PLOT_PX * (1 - share_of(ratio, self.domain)), 1)


def _key(words_shown: set[Verdict]) -> Iterator[str]:
    """What the colours of the dots are."""
    entries = [(word, colour) for word, colour in VERDICT_COLOURS.items() if word in words_shown]
    for place, (word, colour) in enumerate(entries):
        column, row = divmod(place, 2)
        x, y = LEFT_PX + column * KEY_COLUMN_PX, HEIGHT_PX - 18 - (1 - row) * KEY_ROW_PX
        yield f'<circle cx="{x + 5}" cy="{y - 4}" r="4.5" fill="var(--{colour})"/><text class="key" x="{x + 15}" y="{y}">{word}</text>'
