"""Kind `tpcc`: transactions derived from TPC-C, as HammerDB's TPROC-C runs them or as the specification says.

After a run the tables must hold the specification's conditions that hold for the profile, and must have grown by what the
driver counted. No figure of it is a result of TPC-C, and none has the name of one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from pgdyno.store.record import Check
from pgdyno.workload.counting import counting
from pgdyno.workload.kind.base import Refusal
from pgdyno.workload.kind.driven import Filled
from pgdyno.workload.tables import (
    TpccRoutines,
    TpccTables,
    size_for_memory,
    warehouses_for,
)
from pgdyno.workload.tpcc_conditions import TPCC_SCHEMA, TpccProfile, conditions_of, drawn_warehouses, violated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.workload.outcome import Outcome
    from pgdyno.workload.server import Server

WAREHOUSES_MAX = 100_000
DISTRICTS = 10
MIX = (("new_order", 10), ("payment", 10), ("delivery", 1), ("stock_level", 1), ("order_status", 1))
"""The types of transaction with their weights in a deck of 23."""
MIX_ERRORS = 4.0
"""Standard errors by which the mix may be off: an honest run fails once in 16,000."""
_DECK = sum(weight for _, weight in MIX)
_GROWTH = f"""
SELECT (SELECT sum(d_next_o_id) FROM {TPCC_SCHEMA}.district), (SELECT count(*) FROM {TPCC_SCHEMA}.history),
       (SELECT count(*) FROM {TPCC_SCHEMA}.new_order)
"""


@dataclass(frozen=True)
class Grown:
    """What of the tables grows or shrinks in a run."""

    next_orders: int
    """Numbers of the next orders of all districts, added up."""
    history: int
    open_orders: int

    @classmethod
    def loaded(cls, warehouses: int) -> Self:
        """Of tables just loaded."""
        return cls(3_001 * DISTRICTS * warehouses, 30_000 * warehouses, 9_000 * warehouses)


class Tpcc(Filled):
    """`tpcc`: derived from TPC-C."""

    headline: ClassVar[str] = "nopm"
    blamed: ClassVar[str] = "profile"
    counts_types: ClassVar[bool] = True

    kind: Literal["tpcc"] = "tpcc"
    """Transactions derived from TPC-C: New-Orders, payments and three others."""
    profile: TpccProfile = "hammerdb"
    """`hammerdb`: as HammerDB's TPROC-C, with its deviations from TPC-C; `spec`: as TPC-C 5.11."""
    warehouses: Annotated[int, Field(ge=1, le=WAREHOUSES_MAX)] = 10
    """Number of warehouses, about 100 MB each."""
    routines: TpccRoutines = "functions"
    """How a transaction is called in the server: `functions`, or `procedures` of the profile `hammerdb`. Either is one statement."""
    all_warehouses: bool = False
    """Each client draws one of its share of the warehouses for every transaction, so that all are in use. Default: a client has one."""
    keying: bool = False
    """Clients take the keying and think times of the specification before and after a transaction."""
    names_match: bool = False
    """For profile `hammerdb` with `functions`: pass the last names that were drawn. HammerDB's functions never find a customer by name."""
    tries_max: Annotated[int, Field(ge=0)] = 10
    """Attempts per transaction after a serialization failure or a deadlock; 0: until it succeeds."""

    @model_validator(mode="before")
    @classmethod
    def _as_the_original(cls, values: Any) -> Any:
        """Calls of procedures are sent as text, unless something else is said."""
        if isinstance(values, dict) and values.get("routines") == "procedures":
            return {"protocol": "simple", **values}
        return values

    @property
    def mix(self) -> tuple[tuple[str, int], ...]:
        """The five types."""
        return MIX

    @property
    def history_writers(self) -> frozenset[str]:
        """Payments."""
        return frozenset({"payment"})

    @property
    def writes(self) -> bool:
        """Always."""
        return True

    def native(self) -> dict[str, Any]:
        """See :meth:`Clients.native`."""
        keys = ("profile", "warehouses", "routines", "all_warehouses", "keying", "names_match")
        return {"tpcc": {key: getattr(self, key) for key in keys}}

    def data_set(self) -> TpccTables:
        """With their routines."""
        return TpccTables(self.warehouses, self.profile, self.routines)

    def needed_tables(self) -> TpccTables:
        """See :meth:`Workload.needed_tables`."""
        return self.data_set()

    @property
    def size_key(self) -> str:
        """See :meth:`Workload.size_key`."""
        return "warehouses" if self.data_to_memory is None else "data_to_memory"

    def sized(self, memory_bytes: int) -> Self:
        """See :meth:`Workload.sized`."""
        if self.data_to_memory is None:
            return self
        found = warehouses_for(size_for_memory(memory_bytes, self.data_to_memory))
        return self.model_copy(update={"warehouses": min(found, WAREHOUSES_MAX)})

    def baseline(self, server: Server, *, full: bool = False) -> Grown:
        """See :meth:`Workload.baseline`."""
        del full
        return _grown(server)

    def proofs(
        self, server: Server, outcome: Outcome, baseline: Any = None, *, full: bool = False
    ) -> tuple[Check, ...]:
        """What the tables grew by, the conditions, and the mix.

        Conditions about lines of orders are asked of two warehouses that the seed draws, with ``full`` of all.
        """
        before: Grown = baseline or Grown.loaded(self.warehouses)
        after = _grown(server)
        return (
            _new_orders(before, after, outcome),
            _history(before, after, outcome),
            self._deliveries(before, after, outcome),
            self._conditions(server, full=full),
            *_mix(outcome),
        )

    def _deliveries(self, before: Grown, after: Grown, outcome: Outcome) -> Check:
        """A delivery takes ten open orders, fewer where a district has none, or, of HammerDB's, where another took them."""
        deliveries = outcome.succeeded_by_type_total.get("delivery", 0)
        delivered = before.open_orders + after.next_orders - before.next_orders - after.open_orders
        most = DISTRICTS * (deliveries + outcome.uncounted_max)
        return Check(
            name="tpcc_deliveries",
            ok=min(1, deliveries) <= delivered <= most,
            detail=f"{delivered:,} orders were delivered, {deliveries:,} deliveries succeeded and take up to ten each",
        )

    def _conditions(self, server: Server, *, full: bool) -> Check:
        asked = conditions_of(self.profile)
        drawn = None if full else drawn_warehouses(self.warehouses, self.seed)
        with counting(server) as connection:
            wrong = list(violated(connection, asked, drawn))
        numbers = ", ".join(str(one.number) for one in asked)
        of = "" if drawn is None else f", those of lines in warehouses {drawn[0]} and {drawn[1]}"
        detail = "; ".join(wrong) if wrong else f"conditions {numbers} of TPC-C hold{of}"
        return Check(name="tpcc_conditions", ok=not wrong, detail=detail)

    def _of_kind(self) -> Iterator[Refusal]:
        if self.profile == "spec" and self.routines == "procedures":
            yield Refusal(
                "routines", "the profile spec has functions alone", 'omit the key, or use profile = "hammerdb"'
            )
        if self.names_match and (self.profile == "spec" or self.routines == "procedures"):
            yield Refusal("names_match", "names match there anyway; it is for the functions of the profile hammerdb")
        if self.keying and self.rate_per_s is not None:
            yield Refusal("keying", "clients of an open loop (rate_per_s) do not think; omit one of them")
        if self.keying and self.think_ms is not None:
            yield Refusal("keying", "it has a think time for each type; omit think_ms")
        yield from self._of_size("warehouses")
        if self.load.foreign_keys:
            yield Refusal("load", "foreign_keys are for pgbench's tables; profile spec always has its own")


def _grown(server: Server) -> Grown:
    with counting(server) as connection:
        row = connection.execute(_GROWTH.encode()).fetchone()
    assert row is not None
    return Grown(*map(int, row))


def _new_orders(before: Grown, after: Grown, outcome: Outcome) -> Check:
    grown, counted = after.next_orders - before.next_orders, outcome.succeeded_by_type_total.get("new_order", 0)
    return Check(
        name="tpcc_new_orders",
        ok=counted <= grown <= counted + outcome.uncounted_max,
        detail=f"the districts' next orders grew by {grown:,}, {counted:,} New-Orders succeeded",
    )


def _history(before: Grown, after: Grown, outcome: Outcome) -> Check:
    grown = after.history - before.history
    return Check(
        name="tpcc_history",
        ok=outcome.writes_total <= grown <= outcome.writes_total + outcome.uncounted_max,
        detail=f"history grew by {grown:,} rows, {outcome.writes_total:,} payments succeeded",
    )


def _mix(outcome: Outcome) -> Iterator[Check]:
    """Each type's share of all transactions that ended well."""
    total = outcome.account_total.succeeded + outcome.account_total.rolled_back
    if not total:
        return
    off = []
    for name, weight in MIX:
        share = weight / _DECK
        found = outcome.succeeded_by_type_total.get(name, 0)
        if name == "new_order":
            found += outcome.account_total.rolled_back
        error = math.sqrt(share * (1 - share) / total)
        if abs(found / total - share) > MIX_ERRORS * error:
            off.append(f"{name} is {found / total:.2%} of {total:,} transactions, and should be {share:.2%}")
    detail = "; ".join(off) or f"the five types of {total:,} transactions are mixed 10 : 10 : 1 : 1 : 1"
    yield Check(name="tpcc_mix", ok=not off, detail=detail)
