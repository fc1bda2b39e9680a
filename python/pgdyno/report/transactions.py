"""Scripts and statements of the workload in tables: what of a response time is waiting, and for which statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.distribution import PERCENTILES, ScriptStatement, ValueCounts
from pgdyno.report.section import Heading, Matrix, Note, Part, Section, many
from pgdyno.report.words import FigureRow

from ..base.text import UNKNOWN, number

_Name = TypeVar("_Name")

STATEMENT_WIDTH_MAX = 88
"""A longer statement is cut in a table; the run's own table has all of it."""
STATEMENTS_MAX = 40
"""Statements in the table, those of the most time; sysbench has some for each of its tables."""


def transactions_section(comparison: Comparison) -> Section:
    """Scripts, then statements; what the driver did not tell is omitted."""
    by_script, by_statement = tuple(script_rows(comparison)), tuple(statement_rows(comparison))
    both, parts = bool(by_script and by_statement), list[Part]()
    if by_script:
        parts += [Heading("By script")] if both else []
        parts += [Matrix(by_script), Note("Response time, p50 / p95 / p99, milliseconds.")]
    if by_statement:
        parts += [Heading("By statement")] if both else []
        parts.append(Matrix(by_statement, "Statements of each arm" if many(comparison) else ""))
        parts.append(Note("From sending a statement to its answer, p50 / p95 / p99, milliseconds."))
    return Section("statements", "Statements" if by_statement else "Scripts", tuple(parts))


def script_rows(comparison: Comparison) -> list[FigureRow]:
    """Response time of each script, where there are several: p50 / p95 / p99, ms."""
    return _rows(comparison, lambda arm: arm.scripts_ms, lambda name: name)


def statement_rows(comparison: Comparison) -> list[FigureRow]:
    """Time of each statement, where the driver told it: p50 / p95 / p99, ms; those that took most in all, in their order."""
    spent: dict[ScriptStatement, float] = {}
    for arm in comparison.arms:
        for statement, distribution in arm.statements_ms.items():
            spent[statement] = spent.get(statement, 0.0) + distribution.sum
    kept = set(sorted(spent, key=lambda statement: -spent[statement])[:STATEMENTS_MAX])
    chosen = {
        arm.index: {
            statement: distribution for statement, distribution in arm.statements_ms.items() if statement in kept
        }
        for arm in comparison.arms
    }
    return _rows(comparison, lambda arm: chosen[arm.index], lambda statement: one_line(statement.text))


def one_line(text: str, width: int = STATEMENT_WIDTH_MAX) -> str:
    """A statement on one line, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def percentiles(distribution: ValueCounts | None) -> str:
    """``0.41 / 1.2 / 3.05``: p50, p95 and p99; a dash where there is nothing."""
    if distribution is None or distribution.total == 0:
        return UNKNOWN
    return " / ".join(number(distribution.percentile(percent)) for percent in PERCENTILES)


def _rows(
    comparison: Comparison,
    output: Callable[[ArmSummary], Mapping[_Name, ValueCounts]],
    title: Callable[[_Name], str],
) -> list[FigureRow]:
    results = [output(arm) for arm in comparison.arms]
    names = dict.fromkeys(name for result in results for name in result)
    return [FigureRow(title(name), tuple(percentiles(result.get(name)) for result in results)) for name in names]
