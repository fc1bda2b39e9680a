"""The queries of the validation bring dbgen's own answers at scale factor 1."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.cli.main import run as pgdyno
from pgdyno.workload.fill import fill
from pgdyno.workload.tables import TPCH_SCHEMA, TpchTables
from pgdyno.workload.tpch import parameters
from pgdyno.workload.tpch.streams import step
from pgdyno.workload.tpch.texts import QUERIES

from ..fill.filled import Database
from ..support.servers import cluster
from ..tpch.test_queries import CENT, cells

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.postgres.cluster import Cluster

__all__ = ["cluster"]

AVERAGE_OFF = Decimal("0.03")
"""The answer of question 17 in the crate is 348406.02. The sum that it is a seventh of, 2438842.38, gives 348406.05."""


def _value(text: str) -> Any:
    """A cell of an answer: a number to the cent, or a text without padding."""
    try:
        return Decimal(text.strip()).quantize(CENT)
    except InvalidOperation:
        return text.strip()


def _same(query: int, found: tuple[Any, ...], known: tuple[Any, ...]) -> bool:
    """dbgen's amounts are exact to the cent, its averages and shares rounded to it, perhaps from binary fractions."""
    if len(found) != len(known):
        return False
    off = AVERAGE_OFF if query == 17 else CENT
    pairs = list(zip(found, known, strict=True))
    if query == 11:
        # The crate has the first digits of the part's key alone: its column is cut.
        key, digits = pairs.pop(0)
        if not str(key).startswith(str(digits.to_integral())):
            return False
    return all(
        abs(one - other) <= off if isinstance(one, Decimal) and isinstance(other, Decimal) else str(one) == str(other)
        for one, other in pairs
    )


def _cell(value: Any) -> Any:
    """What the server brought, as an answer has it."""
    return _value(value) if isinstance(value, str) else value


@pytest.mark.bench
@pytest.mark.parametrize("profile", ["spec", "hammerdb"])
def test_all_answers_are_dbgens_at_scale_factor_1(cluster: Cluster, tmp_path: Path, profile: Any) -> None:
    assert pgdyno(["generate", "tpch", "--scale=1", "--answers", f"--out={tmp_path}"]) == 0
    with cluster.connect() as connection:
        connection.execute(f"CREATE DATABASE answers_{profile}")
    database = Database(cluster, f"answers_{profile}")
    fill(database, TpchTables(1.0, profile))
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute(f"SET search_path = {TPCH_SCHEMA}".encode())
        wrong = [query for query in QUERIES if not _right(connection, query, tmp_path)]
        # A single row that is not dbgen's is noticed: one of 6,001,215.
        connection.execute(b"UPDATE lineitem SET l_quantity = l_quantity + 1 WHERE (l_orderkey, l_linenumber) = (7, 1)")
        changed = _right(connection, 1, tmp_path)
    with cluster.connect() as connection:
        connection.execute(f"DROP DATABASE answers_{profile} WITH (FORCE)")
    assert wrong == []
    assert not changed


def _right(connection: psycopg.Connection[Any], query: int, folder: Path) -> bool:
    """Whether a query brings the known answer."""
    lines = (folder / f"q{query}.out").read_text().splitlines()[1:]
    known = [tuple(map(_value, line.split("|"))) for line in lines]
    statements = step(query, parameters.validation(query), 0, limited=True)
    for statement in statements["before"]:
        connection.execute(statement.encode())
    rows = connection.execute(statements["text"].encode()).fetchall()
    found = [tuple(map(_cell, cells(row))) for row in rows]
    # Rows that tie in ORDER BY may come in any order.
    ordered = [sorted(each, key=lambda row: str(row[1:] + row[:1])) for each in (found, known)]
    return len(found) == len(known) and all(_same(query, *pair) for pair in zip(*ordered, strict=True))
