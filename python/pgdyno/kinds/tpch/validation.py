"""Validation of tables of scale factor 1: the 22 queries must return dbgen's own answers.

The answers are those of the crate that makes the rows; there are none of other scales. Amounts are exact to the cent.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pgdyno.workload.server import Server
from pgdyno.workload.tables import TpchTables

from ...base import engine
from ...results.record import Check
from ...workload.generated import TPCH
from ...workload.server import counting
from . import queries
from .queries import QUERIES, VIEW_QUERY, step, view_name

if TYPE_CHECKING:
    import psycopg


SCALE_FACTOR: Final = 1.0
CENT: Final = Decimal("0.01")
_AVERAGE_OFF = Decimal("0.03")
"""The answer of question 17 in the crate is 348406.02. The sum that it is a seventh of, 2438842.38, gives 348406.05."""
_STREAM = 0
Row = tuple[Any, ...]


def has_answers(tables: object) -> bool:
    """True if dbgen's answers to queries on these tables are known: HammerDB's builds have other rows."""
    return isinstance(tables, TpchTables) and tables.scale_factor == SCALE_FACTOR and not tables.built


def known() -> dict[int, list[Row]]:
    """Query -> the rows of dbgen's answer."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-answers-") as name:
        folder = Path(name)
        texts = ["generate", TPCH.name, *TPCH.arguments(SCALE_FACTOR, folder), "--answers"]
        with contextlib.closing(engine.lines(texts, {})) as lines:
            for _ in lines:
                pass
        return {query: read(folder / f"q{query}.out") for query in QUERIES}


def read(path: Path) -> list[Row]:
    """The rows of one answer, below the line of its columns' names."""
    return [tuple(map(_value, line.split("|"))) for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def check(server: Server, tables: TpchTables, progress: Callable[[str], None] = lambda _: None) -> Check:
    """Ask all 22."""
    expected, wrong = known(), []
    with counting(server) as connection:
        connection.execute(f"SET LOCAL search_path = {tables.schema}".encode())
        for query in QUERIES:
            progress(f"compare the answer of Q{query} with dbgen's")
            if fault := difference(query, rows_of(connection, query), expected[query]):
                wrong.append(fault)
    detail = "; ".join(wrong) or f"the {len(QUERIES)} queries of the validation bring dbgen's answers"
    return Check(name="tpch_answers", ok=not wrong, detail=detail)


def rows_of(connection: psycopg.Connection[Any], query: int) -> list[Row]:
    """Rows of a query with the parameters of its validation, written as in the answers."""
    statements = step(query, queries.validation(query), _STREAM, limited=True)
    for statement in statements["before"]:
        connection.execute(statement.encode())
    rows = connection.execute(statements["text"].encode()).fetchall()
    if query == VIEW_QUERY:
        connection.execute(f"DROP VIEW {view_name(_STREAM)}".encode())
    return [tuple(map(_cell, row)) for row in rows]


def difference(query: int, rows: Sequence[Row], answer: Sequence[Row]) -> str:
    """The first row that is not the answer's, in words; empty if all are. Rows that tie in ORDER BY may come in any order."""
    if len(rows) != len(answer):
        return f"Q{query} brings {len(rows):,} rows, and dbgen's answer has {len(answer):,}"
    for mine, theirs in zip(_ordered(rows), _ordered(answer), strict=True):
        if not _same(query, mine, theirs):
            return f"Q{query} brings {_words(mine)}, and dbgen's answer has {_words(theirs)}"
    return ""


def _ordered(rows: Sequence[Row]) -> list[Row]:
    """The first column last: of question 11 it is cut in the answer."""
    return sorted(rows, key=lambda row: str(row[1:] + row[:1]))


def _same(query: int, row: Row, answer: Row) -> bool:
    """Amounts are exact to the cent, averages and shares rounded to it by dbgen, perhaps from binary fractions."""
    if len(row) != len(answer):
        return False
    off = _AVERAGE_OFF if query == 17 else CENT
    pairs = list(zip(row, answer, strict=True))
    if query == 11:
        # The crate has the first digits of the part's key alone: its column is cut.
        key, digits = pairs.pop(0)
        if not str(key).startswith(str(digits.to_integral())):
            return False
    return all(
        abs(item - other) <= off
        if isinstance(item, Decimal) and isinstance(other, Decimal)
        else str(item) == str(other)
        for item, other in pairs
    )


def _value(text: str) -> Any:
    """A cell of an answer: a number to the cent, or a text without padding."""
    try:
        return Decimal(text.strip()).quantize(CENT)
    except InvalidOperation:
        return text.strip()


def _cell(value: Any) -> Any:
    """Value of a server, written in the same way."""
    if isinstance(value, str):
        return _value(value)
    if isinstance(value, (int, float, Decimal)):
        return Decimal(value).quantize(CENT)
    return value.date() if isinstance(value, datetime) else value


def _words(row: Row) -> str:
    return " | ".join(map(str, row))
