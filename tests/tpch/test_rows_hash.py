"""One number for the rows of a query: it changes with any value, and not with their order."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest

from pgdyno.kinds.tpch.process import rows_hash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg.pq.abc import PGresult

    Row = tuple[bytes | None, ...]


@dataclass(frozen=True)
class Result:
    """What libpq keeps of an answer."""

    rows: Sequence[Row]

    @property
    def ntuples(self) -> int:
        return len(self.rows)

    @property
    def nfields(self) -> int:
        return len(self.rows[0]) if self.rows else 0

    def get_value(self, row: int, column: int) -> bytes | None:
        return self.rows[row][column]


def hashed(*rows: Row) -> int:
    return rows_hash(cast("PGresult", Result(rows)))


def test_the_order_of_rows_is_none_of_it() -> None:
    rows: list[Row] = [(b"%d" % item, None if item % 3 else b"", b"name") for item in range(50)]
    other = random.Random(1).sample(rows, len(rows))
    assert rows != other
    assert hashed(*rows) == hashed(*other)
    assert -(2**63) <= hashed(*rows) < 2**63


def test_no_rows_are_zero_and_a_row_that_is_there_twice_counts_twice() -> None:
    assert hashed() == 0
    assert hashed((b"1",)) != hashed((b"1",), (b"1",)) != hashed((b"1",), (b"1",), (b"1",))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((b"1.00", b"2"), (b"1.01", b"2")),
        ((b"ab", b"c"), (b"a", b"bc")),
        ((None, b""), (b"", None)),
        ((None, b"a"), (b"", b"a")),
        ((None, b"-"), (b"-", None)),
        ((b"", None, b"1:a"), (b"", b"1:a", None)),
    ],
)
def test_another_value_is_another_number(one: Row, other: Row) -> None:
    assert hashed(one) != hashed(other)
