"""Numbers of dots: none covers another, or a dot, as long as there is room."""

from __future__ import annotations

import itertools
import random

from pgdyno.published.chart_drawing import DOT_PX, LabelBox, interval_box, place_labels

WIDTH_PX, HEIGHT_PX = 412.0, 420.0


def _covered(dots: list[tuple[float, float, str]]) -> int:
    boxes = place_labels(dots, WIDTH_PX, HEIGHT_PX)
    marks = [LabelBox(x, y, 2 * DOT_PX, 2 * DOT_PX) for x, y, _ in dots]
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
    [box] = place_labels([(100, 100, "7")], WIDTH_PX, HEIGHT_PX)
    assert 100 < box.x_px < 120
    assert 80 < box.y_px < 100


def test_a_number_stands_beside_an_interval() -> None:
    """Two dots whose intervals cross the place to the upper right of a third."""
    dots = [(100.0, 200.0, "26"), (114.0, 200.0, "27"), (121.0, 200.0, "28")]
    bars = [interval_box(x, y - 60, y + 60) for x, y, _ in dots]
    covered = [sum(box.overlaps(bar) for bar in bars) for box in place_labels(dots, WIDTH_PX, HEIGHT_PX)]
    assert sum(covered) > 0, "without the bars a number stands on one"
    assert not any(box.overlaps(bar) for box in place_labels(dots, WIDTH_PX, HEIGHT_PX, bars) for bar in bars)


def test_where_bars_leave_no_room_a_number_covers_one_and_no_dot() -> None:
    bars = [interval_box(x, 0, HEIGHT_PX) for x in range(0, int(WIDTH_PX), 4)]
    [box] = place_labels([(100, 100, "7")], WIDTH_PX, HEIGHT_PX, bars)
    assert not box.overlaps(LabelBox(100, 100, 2 * DOT_PX, 2 * DOT_PX))
