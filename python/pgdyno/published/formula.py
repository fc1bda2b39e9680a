"""Formulas over published figures: ``tpm_io2bx / tpm_gp3``, ``min(one_tps)``, ``one_tps[16, 100]``.

A name is a figure, or a column of a table; a column is computed row by row. Nothing else of Python is understood.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, DecimalException

Value = Decimal | list[Decimal]
_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class FormulaError(Exception):
    """A formula that means nothing here; the text is a clause."""


@dataclass(frozen=True)
class Scope:
    """Meanings of a formula's names."""

    figures: Mapping[str, Decimal]
    columns: Mapping[str, Mapping[tuple[Decimal | str, ...], Decimal]]
    """The figures of each column by their axes."""


def evaluate(formula: str, scope: Scope) -> Decimal:
    """The number that the formula comes to. :class:`FormulaError` says what is wrong in it."""
    try:
        value = _value(ast.parse(formula, mode="eval").body, scope)
    except SyntaxError:
        raise FormulaError(f"`{formula}` is not a formula") from None
    except DecimalException:
        raise FormulaError(f"`{formula}` cannot be computed: a division by zero or the like") from None
    if isinstance(value, list):
        raise FormulaError(f"`{formula}` is a column: take its min, max, mean, sum or count")
    return value


def names_in(formula: str) -> set[str]:
    """Figures and columns that a formula names."""
    return {node.id for node in ast.walk(ast.parse(formula, mode="eval")) if isinstance(node, ast.Name)} - {*_FUNCTIONS}


def _value(node: ast.expr, scope: Scope) -> Value:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return Decimal(number)
        case ast.Name(id=name):
            return _named(name, scope)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _row_by_row(_OPERATORS[type(op)], _value(left, scope), _value(right, scope))
        case ast.Subscript(value=ast.Name(id=name), slice=place):
            return _cell(name, place, scope)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS and arguments:
            return _FUNCTIONS[name](_flat([_value(argument, scope) for argument in arguments]))
    raise FormulaError(f"`{ast.unparse(node)}` is not understood; there are + - * /, {', '.join(_FUNCTIONS)}")


def _named(name: str, scope: Scope) -> Value:
    if name in scope.figures:
        return scope.figures[name]
    if name in scope.columns:
        return list(scope.columns[name].values())
    raise FormulaError(f"`{name}` is neither a figure nor a column (TABLE_COLUMN) of this document")


def _cell(name: str, place: ast.expr, scope: Scope) -> Decimal:
    nodes = place.elts if isinstance(place, ast.Tuple) else [place]
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    axes = tuple(value if isinstance(value, str) else Decimal(str(value)) for value in values)
    column = scope.columns.get(name)
    if column is None or axes not in column:
        raise FormulaError(f"`{name}[{ast.unparse(place)}]` is not a cell of this document")
    return column[axes]


def _row_by_row(apply: Callable[[Decimal, Decimal], Decimal], left: Value, right: Value) -> Value:
    if not isinstance(left, list) and not isinstance(right, list):
        return apply(left, right)
    rows = len(left) if isinstance(left, list) else len(right) if isinstance(right, list) else 0
    lefts = left if isinstance(left, list) else [left] * rows
    rights = right if isinstance(right, list) else [right] * rows
    if len(lefts) != len(rights):
        raise FormulaError(f"columns of {len(lefts)} and {len(rights)} rows cannot be computed row by row")
    return [apply(item, other) for item, other in zip(lefts, rights, strict=True)]


def _flat(values: list[Value]) -> list[Decimal]:
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def _mean(values: list[Decimal]) -> Decimal:
    return sum(values, Decimal(0)) / len(values)


def _geometric_mean(values: list[Decimal]) -> Decimal:
    return (sum((value.ln() for value in values), Decimal(0)) / len(values)).exp()


_FUNCTIONS: dict[str, Callable[[list[Decimal]], Decimal]] = {
    "min": min,
    "max": max,
    "mean": _mean,
    "geometric_mean": _geometric_mean,
    "sum": lambda values: sum(values, Decimal(0)),
    "count": lambda values: Decimal(len(values)),
}
