"""What a run's figure counts: transactions, or the rows of a load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Unit:
    """The words for it."""

    one: str
    many: str
    short: str
    """So many in a second, for the head of a column."""

    @property
    def per_second(self) -> str:
        """``transactions per second``."""
        return f"{self.many} per second"


TRANSACTIONS: Final = Unit("transaction", "transactions", "TPS")
ROWS: Final = Unit("row", "rows", "rows/s")


def unit_of(workload: Mapping[str, Any]) -> Unit:
    """Of a run with that workload, as its record has it."""
    return ROWS if workload.get("kind") == "load" else TRANSACTIONS
