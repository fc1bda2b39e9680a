"""The queries: their answers are those that DuckDB computes from the same rows, their parameters and orders the specification's."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
import pytest

from pgdyno.kinds.tpch import queries
from pgdyno.kinds.tpch.queries import LIMITS, ORDERS, QUERIES, VIEW_QUERY, order_of, step, view_name
from pgdyno.workload.tables import TPCH_SCHEMA

from .conftest import SCALE_FACTOR
from .test_tables import SPEC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.kinds.tpch.queries import Parameters

    from ..fill.filled import Database

DUCKDB_TYPES = {"i": "bigint", "d": "decimal(15, 2)", "date": "date"}
DRAWN = 3
"""Sets of parameters beside those of the validation."""
CENT = Decimal("0.01")


@pytest.fixture(scope="module")
def calculator(spec: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with the server's rows."""
    folder: Path = tmp_path_factory.mktemp("rows")
    with duckdb.connect() as result, psycopg.connect(spec.dsn) as connection:
        for table, columns in SPEC.items():
            typed = (column.rstrip("!").split() for column in columns.split(", "))
            made = ", ".join(f"{name} {DUCKDB_TYPES.get(kind, 'varchar')}" for name, kind in typed)
            result.execute(f"CREATE TABLE {table} ({made})")
            path = folder / f"{table}.csv"
            # As text, which has no padding.
            names = ", ".join(f"{column.split()[0]}::text" for column in columns.split(", "))
            rows = f"COPY (SELECT {names} FROM {TPCH_SCHEMA}.{table}) TO STDOUT (FORMAT csv)".encode()
            with path.open("wb") as file, connection.cursor() as cursor, cursor.copy(rows) as copy:
                file.writelines(copy)
            result.execute(f"COPY {table} FROM '{path}' (FORMAT csv, HEADER false)")
        yield result


def cells(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row as both sides can be compared: texts without padding, numbers to the cent, dates without an hour."""
    return tuple(_cell(value) for value in row)


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return value.rstrip()
    if isinstance(value, (int, float, Decimal)):
        return Decimal(value).quantize(CENT)
    return value.date() if isinstance(value, datetime.datetime) else value


def asked(query: int, parameters: Parameters, database: Database, *, limited: bool) -> list[tuple[Any, ...]]:
    """What a server brings."""
    statements = step(query, parameters, 7, limited=limited)
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute(f"SET search_path = {TPCH_SCHEMA}".encode())
        for statement in statements["before"]:
            connection.execute(statement.encode())
        rows = connection.execute(statements["text"].encode()).fetchall()
        if query == VIEW_QUERY:
            connection.execute(f"DROP VIEW {view_name(7)}".encode())
    return [cells(row) for row in rows]


def calculated(
    calculator: duckdb.DuckDBPyConnection, query: int, parameters: Parameters, *, limited: bool
) -> list[Any]:
    """What DuckDB computes."""
    statements = step(query, parameters, 7, limited=limited)
    for statement in statements["before"]:
        calculator.execute(statement)
    rows = [cells(row) for row in calculator.execute(statements["text"]).fetchall()]
    if query == VIEW_QUERY:
        calculator.execute(f"DROP VIEW {view_name(7)}")
    return rows


def same(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]], *, cut: bool) -> bool:
    """Whether rows are the same: in any order where they tie, and at a cut but for those that tie with the last."""
    if len(one) != len(other):
        return False
    different = len(set(one) ^ set(other))
    # Half a cent may be rounded either way by a calculator with binary fractions.
    return (
        different == 0
        or all(_close(mine, theirs) for mine, theirs in zip(one, other, strict=True))
        or (cut and different <= 2)
    )


def _close(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(
        abs(mine - theirs) <= CENT if isinstance(mine, Decimal) and isinstance(theirs, Decimal) else mine == theirs
        for mine, theirs in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("profile", ["hammerdb", "spec"])
def test_answers_are_those_that_duckdb_computes_from_the_same_rows(
    request: pytest.FixtureRequest, calculator: duckdb.DuckDBPyConnection, profile: Any, query: int
) -> None:
    database: Database = request.getfixturevalue(profile)
    limited = profile == "spec"
    every = [queries.validation(query, SCALE_FACTOR)] + [
        queries.drawn(query, number, 1, seed=5, profile=profile, scale_factor=SCALE_FACTOR)
        for number in range(1, 1 + DRAWN)
    ]
    for other in every:
        right = calculated(calculator, query, other, limited=limited)
        assert same(asked(query, other, database, limited=limited), right, cut=limited and query in LIMITS), other


def test_one_wrong_row_is_noticed(spec: Database, calculator: duckdb.DuckDBPyConnection) -> None:
    validation = queries.validation(1)
    right = calculated(calculator, 1, validation, limited=True)
    with psycopg.connect(spec.dsn) as connection:
        connection.execute(f"SET search_path = {TPCH_SCHEMA}".encode())
        connection.execute(b"UPDATE lineitem SET l_quantity = l_quantity + 1 WHERE l_orderkey = 7 AND l_linenumber = 1")
        text = step(1, validation, 7, limited=True)["text"]
        assert not same([cells(row) for row in connection.execute(text.encode()).fetchall()], right, cut=False)
        connection.rollback()


def test_parameters_depend_on_seed_stream_and_set_and_cover_their_ranges() -> None:
    def of(query: int, **more: Any) -> Parameters:
        key: dict[str, Any] = {"stream": 1, "query_set": 1, "seed": 1, "profile": "spec", "scale_factor": 1.0} | more
        return queries.drawn(query, **key)

    for query in QUERIES:
        assert of(query) == of(query)
        assert of(query).keys() == queries.validation(query).keys()
        many = [of(query, stream=stream) for stream in range(200)]
        assert len({str(item) for item in many}) > 3
        assert of(query) in many
        assert any(of(query, seed=seed) != of(query) for seed in range(2, 9))
        assert any(of(query, query_set=number) != of(query) for number in range(2, 9))
    months = [{of(query, stream=item, profile=profile)["date"] for item in range(3000)} for query in (4, 14, 15)
              for profile in ("spec", "hammerdb")]  # fmt: skip
    assert [(min(month), max(month), len(month)) for month in months] == [
        ("1993-01-01", "1997-10-01", 58), ("1993-02-01", "1997-11-01", 58),
        ("1993-01-01", "1997-12-01", 60), ("1993-02-01", "1998-01-01", 60),
        ("1993-01-01", "1997-10-01", 58), ("1993-02-01", "1997-11-01", 58),
    ]  # fmt: skip
    tenth = {of(10, stream=item)["date"] for item in range(1000)}
    assert (min(tenth), max(tenth), len(tenth)) == ("1993-02-01", "1995-01-01", 24)
    egypt = {
        profile: {
            result["region"]
            for stream in range(400)
            if (result := of(8, stream=stream, profile=profile))["nation"] == "EGYPT"
        }
        for profile in ("spec", "hammerdb")
    }
    assert egypt == {"spec": {"MIDDLE EAST"}, "hammerdb": {"AFRICA"}}
    assert of(11, scale_factor=100.0)["fraction"] == "0.0000010000"
    assert all(len(set(of(16, stream=item)["sizes"].split(", "))) == 8 for item in range(50))
    quantities = [{int(of(19, stream=item)[f"quantity{number}"]) for item in range(500)} for number in (1, 2, 3)]
    assert quantities == [set(range(1, 11)), set(range(10, 21)), set(range(20, 31))]


def test_each_order_asks_every_query_once() -> None:
    assert len(ORDERS) == 41
    assert all(sorted(order) == list(QUERIES) for order in ORDERS)
    assert len(set(ORDERS)) == 41
    # Appendix A: the power run's begins with 14, the first stream's with 21, the last one's ends with 19.
    assert (order_of(0)[0], order_of(1)[0], order_of(40)[-1]) == (14, 21, 19)
    assert order_of(41) == order_of(0)
