"""What arms cost: the figures that were published, the same capacity, the front."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.cost import SECONDS_PER_MONTH, _cost
from pgdyno.results.record import PriceRecord

from .synthetic import GP3, IO2BX, REAL, Arm, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.compare import Comparison

EIGHT_GP3 = replace(
    GP3, spec="8xgp3:size=1274GiB,iops=10000,throughput=1000", size_gib=8 * 1274, usd_per_month=1375.36,
    price=PriceRecord(usd_per_gib_month=0.08, limits_follow_size=False),
)  # fmt: skip
TWO_IO2 = replace(
    IO2BX, spec="2xio2bx:size=2TiB,iops=40000", size_gib=2 * 2048, usd_per_month=5408.00,
    price=PriceRecord(usd_per_gib_month=0.125, limits_follow_size=False),
)  # fmt: skip
"""The storage of a published comparison of gp3 with io2 Block Express, with the monthly prices that it names."""


def compared(root: Path, *arms: Arm, **changes: Any) -> Comparison:
    """Twenty seconds of these arms."""
    return summarise(make_experiment(root, replace(Plan(measure_s=20).with_arms(*arms), **changes)))


def test_the_published_prices_are_of_unequal_capacities(tmp_path: Path) -> None:
    gp3, io2 = compared(tmp_path, EIGHT_GP3, TWO_IO2).costs.values()
    assert (gp3.usd_per_month, io2.usd_per_month) == (1375.36, 5408.00)
    assert gp3.equal_size_bytes == io2.equal_size_bytes == 8 * 1274 << 30
    assert gp3.usd_per_month_at_equal_size == 1375.36
    # 2 x 5,096 GiB at 0.125, and the same IOPS: 5,408 + 6,096 GiB x 0.125.
    assert io2.usd_per_month_at_equal_size == 6170.00
    assert gp3.loss_per_year is not None
    assert io2.loss_per_year is not None
    assert gp3.loss_per_year.high == pytest.approx(0.0159, abs=5e-5)
    assert io2.loss_per_year.high == pytest.approx(2e-5, rel=1e-3)


def test_a_million_transactions_cost_what_a_month_does_over_what_is_done_in_it(tmp_path: Path) -> None:
    comparison = compared(tmp_path, EIGHT_GP3, TWO_IO2)
    for arm in comparison.arms:
        cost = comparison.costs[arm.index]
        millions = arm.headline.mean * SECONDS_PER_MONTH / 1e6
        assert cost.usd_per_million_transactions == pytest.approx((cost.usd_per_month or 0) / millions)
        equal = cost.usd_per_million_transactions_at_equal_size
        assert equal == pytest.approx((cost.usd_per_month_at_equal_size or 0) / millions)


def test_both_are_on_the_front_when_the_dearer_one_is_faster(tmp_path: Path) -> None:
    costs = compared(tmp_path, EIGHT_GP3, TWO_IO2).costs
    assert [dict(cost.front) for cost in costs.values()] == [{"tps": True, "latency_ms_p99": True}] * 2


def test_paying_more_for_the_same_is_off_the_front(tmp_path: Path) -> None:
    dearer = replace(GP3, spec="gp3:iops=3001", usd_per_month=9.0)
    costs = compared(tmp_path, replace(GP3, spread=0.03), replace(dearer, spread=0.03)).costs
    assert dict(costs[0].front) == {"tps": True, "latency_ms_p99": True}
    assert not costs[1].front["tps"]


def test_arms_with_another_load_are_no_alternatives(tmp_path: Path) -> None:
    factors = (("world.volume", ("gp3",)), ("workload.clients", ("1", "32")))
    few = replace(GP3, tps=100, name="gp3 · 1", factors=(("world.volume", "gp3"), ("workload.clients", "1")))
    many = replace(
        GP3, name="gp3 · 32", usd_per_month=7.0, factors=(("world.volume", "gp3"), ("workload.clients", "32"))
    )
    costs = compared(tmp_path, few, many, factors=factors).costs
    assert all(cost.front["tps"] for cost in costs.values())


def test_what_is_not_known_is_none(tmp_path: Path) -> None:
    older = replace(TWO_IO2, price=None)
    costs = compared(tmp_path, EIGHT_GP3, older).costs
    assert costs[1].usd_per_month_at_equal_size is None
    assert costs[0].usd_per_month_at_equal_size == 1375.36
    nothing = compared(tmp_path / "real", REAL).costs[0]
    assert (nothing.usd_per_month, nothing.size_bytes, nothing.loss_per_year, dict(nothing.front)) == (
        None,
        None,
        None,
        {},
    )


def test_limits_that_follow_the_size_are_said(tmp_path: Path) -> None:
    follows = PriceRecord(usd_per_gib_month=0.1, limits_follow_size=True)
    gp2 = replace(GP3, spec="gp2", kind="gp2", price=follows)
    costs = compared(tmp_path, gp2, replace(GP3, size_gib=200, usd_per_month=16.0)).costs
    assert costs[0].limits_follow_size
    assert costs[0].usd_per_month_at_equal_size == 18.0
    assert costs[0].loss_per_year is None
    same_size = compared(tmp_path / "same", gp2, GP3).costs
    assert not same_size[0].limits_follow_size
    beside_unknown = _cost(compared(tmp_path / "again", gp2, GP3).arms[0], 100 << 30, None, {})
    assert not beside_unknown.limits_follow_size, "there is no size to say it of"


def test_every_volume_of_an_arm_is_paid_and_can_be_lost(tmp_path: Path) -> None:
    log = replace(IO2BX, spec="io2bx:size=10GiB", usd_per_month=50.0, size_gib=10)
    cost = compared(tmp_path, replace(GP3, others=(("wal", log),))).costs[0]
    assert cost.usd_per_month == 58.0
    assert cost.size_bytes == 110 << 30
    assert cost.loss_per_year is not None
    assert cost.loss_per_year.high == pytest.approx(1 - 0.998 * 0.99999)
