"""How numbers are written."""

from __future__ import annotations

import pytest

from pgdyno.base.text import address, duration, interval, money, number, percent, ratio_interval, times


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
    assert number(value) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (8.0, "$8"),
        (8.5, "$8.50"),
        (1052.5, "$1,052.50"),
        (0.2, "$0.20"),
        (0.00322, "$0.00322"),
        (0.0004, "< $0.001"),
        (0.0, "$0"),
    ],
)
def test_dollars(amount: float, text: str) -> None:
    assert money(amount) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.9976, "0.998"), (1.0031, "1.003"), (1.2212, "1.22"), (0.8956, "0.896"), (12.04, "12.0")]
)
def test_ratios_around_one_have_a_digit_more(ratio: float, text: str) -> None:
    assert times(ratio) == text


def test_the_ends_of_an_interval_that_tells_nothing_are_not_given() -> None:
    assert ratio_interval(4.69e-6, 1_489_146.0) == "too few runs"
    assert ratio_interval(0.2, float("inf")) == "too few runs"
    assert interval(-9216.0, 10_221.0) == "too few runs"
    assert interval(970.0, 985.0) == "970 to 985"
    assert ratio_interval(0.919, 2.07) == "0.919 to 2.07"
    assert ratio_interval(50.0, 50_000.0) == "50.0 to 50,000", "it excludes 1, which is something"


@pytest.mark.parametrize(
    ("share", "said"),
    [(None, "–"), (0.0, "0 %"), (0.0001, "< 0.1 %"), (0.0524, "5.2 %"), (0.36, "36 %"), (0.0996, "10 %"), (12.0, "1,200 %")],
)  # fmt: skip
def test_a_share_is_written_one_way(share: float | None, said: str) -> None:
    assert percent(share) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(90.0, "90 s"), (119.0, "119 s"), (1980.0, "33 min"), (14_400.0, "4 h"), (259_200.0, "3 days")],
)
def test_a_length_of_time_has_the_unit_that_suits_it(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("db.example.org", 5432, "db.example.org:5432"),
        ("db.example.org", None, "db.example.org"),
        ("/run/postgresql", 5433, "/run/postgresql (port 5433)"),
        ("@abstract", 5432, "@abstract (port 5432)"),
        ("::1", 5432, "[::1]:5432"),
        (None, 5432, "this host:5432"),
        (None, None, "–"),
    ],
)
def test_an_address_can_be_read_as_one(host: str | None, port: int | None, said: str) -> None:
    assert address(host, port) == said
