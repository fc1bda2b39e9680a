"""Numbers of dots: none covers another, or a dot, as long as there is room."""

from __future__ import annotations

import itertools
import random

from pgdyno.reproduce.labels import DOT_PX, Box, placed

WIDTH_PX, HEIGHT_PX = 412.0, 420.0


def _covered(dots: list[tuple[float, float, str]]) -> int:
    boxes = placed(dots, WIDTH_PX, HEIGHT_PX)
    marks = [Box(x, y, 2 * DOT_PX, 2 * DOT_PX) for x, y, _ in dots]
    assert all(box.inside(WIDTH_PX, HEIGHT_PX) for box in boxes)
    return sum(a.overlaps(b) for a, b in itertools.combinations(boxes, 2)) + sum(
        box.overlaps(mark) for box in boxes for mark in marks
    )


def test_twenty_five_dots_around_a_ratio_of_one_have_numbers_apart() -> None:
    draw = random.Random(1)
    dots = [(draw.gauss(200, 25), draw.gauss(210, 25), str(place)) for place in range(1, 26)]
    assert _covered(dots) == 0


def test_dots_at_one_place_have_a_number_each() -> None:
    assert _covered([(100, 100, str(place)) for place in range(1, 6)]) == 0


def test_a_dot_in_a_corner_has_its_number_inside() -> None:
    assert _covered([(0, 0, "1"), (WIDTH_PX, HEIGHT_PX, "22"), (0, HEIGHT_PX, "3"), (WIDTH_PX, 0, "44")]) == 0


def test_a_dot_alone_has_its_number_to_the_upper_right() -> None:
    [box] = placed([(100, 100, "7")], WIDTH_PX, HEIGHT_PX)
    assert 100 < box.x_px < 120
    assert 80 < box.y_px < 100
