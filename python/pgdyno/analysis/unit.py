"""What a run counts while it lasts: transactions, the rows of a load, queries, or the statements of a replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..results.record import RunRecord


@dataclass(frozen=True)
class Unit:
    """The words for it."""

    one: str
    many: str

    @property
    def per_second(self) -> str:
        """``transactions per second``."""
        return f"{self.many} per second"


TRANSACTIONS: Final = Unit("transaction", "transactions")
ROWS: Final = Unit("row", "rows")
QUERIES: Final = Unit("query", "queries")
STATEMENTS: Final = Unit("statement", "statements")


def unit_of(record: RunRecord) -> Unit:
    """What the account of a run counts."""
    if record.streams is not None:
        return QUERIES
    if record.replay is not None:
        return STATEMENTS
    return TRANSACTIONS if record.bulk_load is None else ROWS
