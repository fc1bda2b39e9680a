"""Each claim on types, arrays, instances and dilation is broken by what it is about, and by nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fidelity import synthetic
from tools.fidelity import kinds
from tools.fidelity.claims import judge_part
from tools.fidelity.claims_of_kinds import CLAIMS

if TYPE_CHECKING:
    from tools.fidelity.cell import Cell
    from tools.fidelity.point import Point

RATE, SINGLE, *_ = kinds.defaults()
ONE, FOUR = kinds.array()
DILATED_SINGLE, DILATED_MANY, *_ = kinds.dilated()


def broken(changes: dict[Cell, dict[str, object]]) -> list[str]:
    """Names of the claims that do not hold on a record with points that have these fields."""
    points = [point.model_copy(update=changes.get(point.cell, {})) for point in synthetic.record()]
    judged = judge_part(kinds.PART, [point for point in points if point.cell.part == kinds.PART])
    return [name for name, claim in zip(CLAIMS, judged, strict=True) if not claim.holds]


def faster(cell: Cell, factor: float) -> dict[Cell, dict[str, object]]:
    point = found(cell)
    return {cell: {"measured": point.measured.model_copy(update={"iops": point.measured.iops * factor})}}


def found(cell: Cell) -> Point:
    return next(point for point in synthetic.record() if point.cell == cell)


def test_a_part_is_judged_by_itself_and_holds_as_the_model_says() -> None:
    assert broken({}) == []
    assert judge_part("pairs", synthetic.record()) == []


@pytest.mark.parametrize("factor", [0.985, 1.015])
def test_the_rate_of_one_type(factor: float) -> None:
    assert broken(faster(RATE, factor)) == ["rate_of_types"]
    assert broken(faster(RATE, 0.995)) == []


def test_a_model_that_lets_more_through_than_the_limit_is_no_excuse() -> None:
    twice = faster(RATE, 2.0)
    twice[RATE]["modelled"] = twice[RATE]["measured"]
    assert broken(twice) == ["rate_of_types"]


def test_the_median_of_one_type() -> None:
    assert broken({SINGLE: {"asked_iops": 1e6, "paired": synthetic.paired(median_error=0.03)}}) == ["single_of_types"]
    assert broken({SINGLE: {"asked_iops": 1e6, "paired": synthetic.paired(median_error=-0.015)}}) == []


def test_single_requests_that_a_limit_paces_are_held_together() -> None:
    assert broken({SINGLE: {"paired": synthetic.paired(median_error=0.2)}}) == []
    side = found(SINGLE).measured
    slower = side.model_copy(update={"latency_ns": [(value * 107 // 100, count) for value, count in side.latency_ns]})
    assert broken({SINGLE: {"measured": slower}}) == ["single_of_types"]


def test_an_array_that_has_less_than_its_volumes() -> None:
    assert "array_of_four" in broken(faster(FOUR, 0.98))
    assert broken(faster(FOUR, 0.995)) == []


def test_an_instance_that_gives_half_a_per_cent_more() -> None:
    assert broken(faster(kinds.shared(), 1.005)) == ["shared_instance"]
    assert broken(faster(kinds.shared(), 0.998)) == []


def test_two_per_cent_of_dilated_requests_that_are_not_close() -> None:
    assert broken({DILATED_SINGLE: {"paired": synthetic.paired(close=980)}}) == ["close_when_dilated"]
    assert broken({DILATED_MANY: {"daemon": synthetic.daemon(late=20)}}) == ["close_when_dilated"]
    assert broken({DILATED_SINGLE: {"paired": synthetic.paired(close=991)}}) == []
