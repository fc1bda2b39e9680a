"""Formulas over published figures."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pgdyno.published.formula import FormulaError, Scope, evaluate

SCOPE = Scope(
    {"a": Decimal("1.67"), "zero": Decimal(0)},
    {
        "t_x": {(Decimal(1),): Decimal(2), (Decimal(2),): Decimal(8)},
        "t_y": {("one",): Decimal(4), ("two",): Decimal(2)},
        "short_x": {(Decimal(1),): Decimal(1)},
    },
)


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("a * 2 - 1", "2.34"),
        ("t_x[2] / t_y['one']", "2"),
        ("mean(t_x)", "5"),
        ("sum(t_x, a)", "11.67"),
        ("count(t_x)", "2"),
        ("min(t_x / t_y)", "0.5"),
        ("max(10 - t_x)", "8"),
        ("min(geometric_mean(t_x), 100)", "4"),
    ],
)
def test_a_formula_has_a_value(formula: str, value: str) -> None:
    assert evaluate(formula, SCOPE) == pytest.approx(Decimal(value), abs=Decimal("1e-20"))


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("b", "`b` is neither a figure nor a column"),
        ("t_x", "is a column: take its min"),
        ("t_x[3]", r"`t_x\[3\]` is not a cell"),
        ("t_x / short_x", "columns of 2 and 1 rows"),
        ("a / zero", "cannot be computed"),
        ("a +", "is not a formula"),
        ("a ** 2", "is not understood"),
        ("open('x')", "is not understood"),
        ("a.real", "is not understood"),
        ("True", "is not understood"),
    ],
)
def test_a_formula_without_meaning_is_refused_with_the_reason(formula: str, why: str) -> None:
    with pytest.raises(FormulaError, match=why):
        evaluate(formula, SCOPE)
