"""How likely a loss within a year is: published figures, arrays, copies, several volumes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.analysis.durability import (
    Loss,
    ends_with_its_instance,
    loss_of_stripes,
    loss_of_volume,
    loss_of_volumes,
)

GP3 = {"annual_failure_rate_percent": [0.1, 0.2]}
IO2 = {"annual_failure_rate_percent": [0.001, 0.001]}


def array(member: dict[str, Any], columns: int, copies: int = 1, multi_az_ms: float | None = None) -> dict[str, Any]:
    """A resolved array: what is published of one volume is its member's alone."""
    layout = {"columns": columns, "copies": copies, "multi_az_ms": multi_az_ms, "member": member}
    return {"annual_failure_rate_percent": None, "array": layout}


def test_eight_gp3_in_a_raid_0_lose_1_6_percent_a_year() -> None:
    loss = loss_of_volume(array(GP3, 8))
    assert loss is not None
    assert loss.high == pytest.approx(0.0159, abs=5e-5)
    assert loss.low == pytest.approx(1 - 0.999**8)


def test_two_io2_in_a_raid_0_lose_twice_what_one_does() -> None:
    loss, two = loss_of_volume(IO2), loss_of_volume(array(IO2, 2))
    assert loss == Loss(pytest.approx(1e-5), pytest.approx(1e-5))
    assert two is not None
    assert two.high == pytest.approx(2e-5, rel=1e-4)


def test_copies_are_lost_together() -> None:
    raid10 = loss_of_volume(array(GP3, 4, copies=2))
    assert raid10 is not None
    assert raid10.high == pytest.approx(4 * 0.002**2, rel=1e-4)
    assert loss_of_volume(array(GP3, 1, multi_az_ms=1.0)) == Loss(pytest.approx(1e-6), pytest.approx(4e-6))


def test_what_nobody_publishes_is_not_known() -> None:
    assert loss_of_volume({}) is None
    assert loss_of_volume(array({}, 4)) is None
    assert loss_of_volumes({}) is None
    assert loss_of_volumes({"data": GP3, "wal": {}}) is None


def test_a_database_needs_its_data_wal_and_tablespaces_and_can_do_without_the_rest() -> None:
    every = {"data": GP3, "wal": IO2, "tablespace.history": GP3, "temp": GP3, "backup": {}}
    loss = loss_of_volumes(every)
    assert loss is not None
    assert loss.high == pytest.approx(1 - 0.998**2 * 0.99999)


def test_a_volatile_volume_counts_where_it_is_needed() -> None:
    assert ends_with_its_instance({"data": GP3, "wal": {"volatile": True}})
    assert not ends_with_its_instance({"data": GP3, "temp": {"volatile": True}})


@given(rate=st.floats(1e-7, 0.05), columns=st.integers(1, 128))
def test_more_stripes_lose_more_but_never_more_than_their_sum(rate: float, columns: int) -> None:
    loss = loss_of_stripes(rate, columns)
    assert rate * (1 - 1e-9) <= loss <= rate * columns * (1 + 1e-9)
    assert loss < loss_of_stripes(rate, columns + 1)
    assert loss_of_stripes(rate, columns, copies=2) < loss
