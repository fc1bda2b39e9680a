"""The input audit: an honest run passes each of its lines, and each line catches what is not as it should be, and says so."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from pgdyno.kinds.tpcc.audit import MIX, AuditShare, InputCounts, OrderCounts, mix, tpm_per_nopm

ORDERS = 5_500
SIZES = dict.fromkeys(range(5, 16), ORDERS // 11)
LINES = 10 * ORDERS
INPUTS = {
    "payments": 5_000,
    "payments_remote": 750,
    "payments_by_name": 3_000,
    "order_statuses": 500,
    "order_statuses_by_name": 300,
    "names_odd": 2_475,
    "customers": 5_500,
    "customers_odd": 4_125,
    "items": 55_000,
    "items_odd": 41_250,
}
SPEC = InputCounts("spec", 8, INPUTS, 5_445, 55, OrderCounts(SIZES, LINES, LINES // 100, 0))
HAMMERDB = replace(
    SPEC,
    profile="hammerdb",
    inputs=INPUTS | {"customers_odd": 2_750, "items": 0, "items_odd": 0},
    new_orders=5_500,
    rolled_back=0,
    ordered=OrderCounts(SIZES, LINES, round(LINES * 0.01 * 7 / 8), 55),
)


@pytest.mark.parametrize("drawn", [SPEC, HAMMERDB], ids=["spec", "hammerdb"])
def test_a_run_that_draws_as_it_should_passes(drawn: InputCounts) -> None:
    shares, wrong = drawn.audit()
    assert wrong == []
    assert len(shares) == {"spec": 8, "hammerdb": 7}[drawn.profile]
    assert "by name in Payment 60.00 % of 5,000" in shares


@pytest.mark.parametrize(
    ("drawn", "mutant", "said"),
    [
        (SPEC, {"rolled_back": 0}, "rolled back of New-Orders 0.00 %"),
        (SPEC, {"rolled_back": 110}, "rolled back of New-Orders 1.98 %"),
        (HAMMERDB, {"unused": 0}, "orders of an unused item 0.00 %"),
        (SPEC, {"lines_remote": 0}, "remote lines 0.00 %"),
        (HAMMERDB, {"lines_remote": 2 * LINES // 100}, "remote lines 2.00 %"),
        (SPEC, {"payments_remote": 1_000}, "remote payments 20.00 %"),
        (HAMMERDB, {"payments_remote": 0}, "remote payments 0.00 %"),
        (SPEC, {"payments_by_name": 2_500}, "by name in Payment 50.00 %"),
        (HAMMERDB, {"order_statuses_by_name": 200}, "by name in Order-Status 40.00 %"),
        # Drawn uniformly: as many are odd as even.
        (SPEC, {"names_odd": 1_650}, "odd names by NURand 50.00 %"),
        (SPEC, {"customers_odd": 2_750}, "odd customers by NURand 50.00 %"),
        (HAMMERDB, {"customers_odd": 4_125}, "odd customers, drawn uniformly, 75.00 %"),
        (SPEC, {"items_odd": 27_500}, "odd items by NURand 50.00 %"),
        (SPEC, {"sizes": {size: many * (2 if size > 10 else 0) for size, many in SIZES.items()}}, "lines per order"),
        (SPEC, {"sizes": {10: ORDERS}}, "lines per order are not uniform over 5 to 15"),
        (SPEC, {"sizes": SIZES | {16: 1}}, "1 outside"),
    ],
)
def test_a_mutant_of_each_line_is_caught_and_named(drawn: InputCounts, mutant: dict[str, Any], said: str) -> None:
    assert drawn.inputs is not None
    of_tables = {key: value for key, value in mutant.items() if key in OrderCounts.__dataclass_fields__}
    of_inputs = {key: value for key, value in mutant.items() if key in drawn.inputs}
    of_run = {key: value for key, value in mutant.items() if key == "rolled_back"}
    assert of_tables | of_inputs | of_run == mutant
    ordered = replace(drawn.ordered, **of_tables)
    changed = replace(drawn, inputs=drawn.inputs | of_inputs, ordered=ordered, **of_run)
    _, wrong = changed.audit()
    assert any(said in text for text in wrong), wrong


def test_one_warehouse_has_nothing_remote() -> None:
    alone = replace(
        SPEC, warehouses=1, inputs=INPUTS | {"payments_remote": 0}, ordered=replace(SPEC.ordered, lines_remote=0)
    )
    assert alone.audit()[1] == []
    remote = replace(alone, inputs=INPUTS | {"payments_remote": 1})
    assert [text.partition(" 0.02")[0] for text in remote.audit()[1]] == ["remote payments"]


def test_few_draws_have_a_wide_window_and_none_are_no_error() -> None:
    assert AuditShare("rolled back", 0, 0, 0.01, 0.001).passes
    assert not AuditShare("rolled back", 1, 0, 0.01).passes
    # Four standard errors of 5,000 draws of 1 % are 0.56 points; the specification's window is 0.1.
    assert AuditShare("rolled back", 77, 5_000, 0.01, 0.001).passes
    assert not AuditShare("rolled back", 79, 5_000, 0.01, 0.001).passes
    assert AuditShare("rolled back", 1_090_000, 10**8, 0.01, 0.001).passes


def test_the_mix_is_judged_by_each_type() -> None:
    honest = {name: weight * 1_000 for name, weight in MIX}
    assert all(share.passes for share in mix(honest))
    assert "stock_level" in [share.what for share in mix(honest | {"stock_level": 0}) if not share.passes]
    assert tpm_per_nopm("hammerdb") == pytest.approx(2.3)
    assert tpm_per_nopm("spec") == pytest.approx(22.9 / 9.9)
    assert math.isclose(sum(share.expected for share in mix(honest)), 1)


def test_a_driver_that_does_not_tell_what_was_asked_for_is_judged_by_the_tables() -> None:
    unseen = replace(HAMMERDB, inputs=None)
    shares, wrong = unseen.audit()
    assert wrong == [] and not any("Payment" in text for text in shares)
    assert replace(unseen, ordered=replace(HAMMERDB.ordered, sizes={10: ORDERS})).audit()[1]
