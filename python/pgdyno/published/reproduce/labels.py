"""Where the numbers of dots stand, so that none covers another, a dot, or an interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

DOT_PX = 6.0
"""Half the width of a dot, and some."""
DIGIT_PX, HEIGHT_PX = 7.0, 13.0
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
        """Whether the two share room."""
        across = abs(self.x_px - other.x_px) * 2 < self.width_px + other.width_px
        return across and abs(self.y_px - other.y_px) * 2 < self.height_px + other.height_px

    def inside(self, width_px: float, height_px: float) -> bool:
        """Whether it is in the plot as a whole."""
        wide, high = self.width_px / 2, self.height_px / 2
        return wide <= self.x_px <= width_px - wide and high <= self.y_px <= height_px - high


def interval(x_px: float, top_px: float, bottom_px: float) -> LabelBox:
    """An interval as it is drawn."""
    return LabelBox(x_px, (top_px + bottom_px) / 2, BAR_PX, bottom_px - top_px)


def placed(
    dots: Sequence[tuple[float, float, str]], width_px: float, height_px: float, bars: Sequence[LabelBox] = ()
) -> list[LabelBox]:
    """The box of each dot's text: as near to it as there is room. Dots are (x, y, text) in pixels.

    ``bars`` are the intervals that are drawn. Where there is no room beside them a text covers a bar, and where there is
    none at all it stands beside its dot, over whatever is there.
    """
    taken = [LabelBox(x, y, 2 * DOT_PX, 2 * DOT_PX) for x, y, _ in dots]
    boxes: list[LabelBox] = []
    for x, y, text in dots:
        tried = list(_around(x, y, DIGIT_PX * len(text)))
        free = [box for box in tried if box.inside(width_px, height_px) and not any(map(box.overlaps, taken))]
        clear = (box for box in free if not any(map(box.overlaps, bars)))
        box = next(clear, next(iter(free), tried[0]))
        taken.append(box)
        boxes.append(box)
    return boxes


def _around(x_px: float, y_px: float, width_px: float) -> Iterator[LabelBox]:
    """Boxes around a dot, the nearest first; to the upper right before others."""
    for ring in _RINGS_PX:
        for step in range(_DIRECTIONS):
            angle = math.pi * (0.25 + 2 * step / _DIRECTIONS)
            across = (ring + width_px / 2 - DIGIT_PX / 2) * math.cos(angle)
            yield LabelBox(x_px + across, y_px - ring * math.sin(angle), width_px, HEIGHT_PX)
