"""Kind `idle`: transactions without a statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pgdyno.workload.tables import PgbenchTables

from ..workload.kind import Refusal
from .driven import DrivenKind


class Idle(DrivenKind):
    """`idle`: transactions without a statement, which measure the driver."""

    without: ClassVar[str] = "idle clients have no tables"
    asks_server: ClassVar[bool] = False

    kind: Literal["idle"] = "idle"
    """Transactions without a statement, which measure the driver."""

    @property
    def writes(self) -> bool:
        """Nothing."""
        return False

    def data_set(self) -> PgbenchTables:
        """A server is started all the same; these are not read."""
        return PgbenchTables(scale=1)

    def _of_kind(self) -> Iterator[Refusal]:
        if self.rate_per_s is None and self.think_ms is None:
            why = "idle clients in a closed loop would never pause: set rate_per_s or think_ms"
            yield Refusal("rate_per_s", why)
