"""Numbers in words."""

from __future__ import annotations

import pytest

from pgdyno.analysis.verdict import dollars, figures, times


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.104, "3.10"),
        (31.04, "31.0"),
        (310.4, "310"),
        (3104.0, "3,104"),
        (0.0412, "0.0412"),
        (0.0, "0"),
        (9.999, "10.0"),
    ],
)
def test_three_digits(value: float, text: str) -> None:
    assert figures(value) == text


@pytest.mark.parametrize(("amount", "text"), [(8.0, "$8"), (8.5, "$8.50"), (1052.5, "$1,052"), (0.0, "$0")])
def test_dollars(amount: float, text: str) -> None:
    assert dollars(amount) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.9976, "0.998"), (1.0031, "1.003"), (1.2212, "1.22"), (0.8956, "0.896"), (12.04, "12.0")]
)
def test_ratios_around_one_have_a_digit_more(ratio: float, text: str) -> None:
    assert times(ratio) == text
