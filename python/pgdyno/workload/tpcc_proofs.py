"""What proves a run of transactions derived from TPC-C: growth of the tables, consistency conditions, mix and inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pgdyno.workload.counting import counting
from pgdyno.workload.outcome import Outcome
from pgdyno.workload.server import Server
from pgdyno.workload.tables import TpccTables
from pgdyno.workload.tpcc_audit import InputCounts, OrderCounts, mix, tpm_per_nopm
from pgdyno.workload.tpcc_conditions import TPCC_SCHEMA, conditions_of, drawn_warehouses, violated

from ..results.record import Check

DISTRICTS = 10
MISSING = "missing"
"""The figure of a check that counts transactions without their row."""
_GROWTH = """
SELECT (SELECT array_agg(d_next_o_id ORDER BY d_w_id, d_id) FROM {S}.district),
       (SELECT count(*) FROM {S}.history), (SELECT count(*) FROM {S}.new_order)
"""

_FIRST_ORDER = 3_001
"""The number of the first order of a run in each district."""
_ADDED = "SELECT sum(d_next_o_id - %s) FROM {S}.district"


@dataclass(frozen=True)
class TableGrowth:
    """What of the tables grows or shrinks in a run."""

    next_orders: tuple[int, ...]
    """The number of the next order of each district, by warehouse and district."""
    history: int
    open_orders: int

    @classmethod
    def loaded(cls, warehouses: int) -> Self:
        """Of tables just loaded."""
        return cls((_FIRST_ORDER,) * (DISTRICTS * warehouses), 30_000 * warehouses, 9_000 * warehouses)

    @classmethod
    def of(cls, server: Server, schema: str = TPCC_SCHEMA) -> Self:
        """Of tables as they are."""
        with counting(server) as connection:
            row = connection.execute(_GROWTH.replace("{S}", schema).encode()).fetchone()
        assert row is not None
        return cls(tuple(map(int, row[0] or ())), int(row[1]), int(row[2]))


def orders_of_runs(server: Server, schema: str = TPCC_SCHEMA) -> int:
    """Orders that runs have added to those of the load."""
    with counting(server) as connection:
        row = connection.execute(_ADDED.replace("{S}", schema).encode(), [_FIRST_ORDER]).fetchone()
    return 0 if row is None or row[0] is None else int(row[0])


def proofs(
    tables: TpccTables, seed: int, server: Server, outcome: Outcome, before: TableGrowth, *, full: bool
) -> tuple[Check, ...]:
    """All of them. Conditions about lines of orders are asked of two warehouses that the seed draws, with ``full`` of all."""
    after = TableGrowth.of(server, tables.schema)
    return (
        _new_orders(before, after, outcome),
        _history(before, after, outcome),
        _deliveries(tables, before, after, outcome),
        _conditions(tables, server, None if full else drawn_warehouses(tables.warehouses, seed)),
        _mix(tables, outcome),
        _inputs(tables, server, before, outcome),
    )


def _new_orders(before: TableGrowth, after: TableGrowth, outcome: Outcome) -> Check:
    each = [now - then for now, then in zip(after.next_orders, before.next_orders, strict=True)]
    grown, counted = sum(each), outcome.succeeded_by_type_total.get("new_order", 0)
    used = len({place // DISTRICTS for place, number in enumerate(each) if number})
    return Check(
        name="tpcc_new_orders",
        ok=counted <= grown <= counted + outcome.uncounted_max,
        detail=f"the districts' next orders grew by {grown:,}, {counted:,} New-Orders succeeded",
        figures={"warehouses_used": used, MISSING: max(0, counted - grown)},
    )


def _history(before: TableGrowth, after: TableGrowth, outcome: Outcome) -> Check:
    grown = after.history - before.history
    return Check(
        name="tpcc_history",
        ok=outcome.writes_total <= grown <= outcome.writes_total + outcome.uncounted_max,
        detail=f"history grew by {grown:,} rows, {outcome.writes_total:,} payments succeeded",
        figures={MISSING: max(0, outcome.writes_total - grown)},
    )


def _deliveries(tables: TpccTables, before: TableGrowth, after: TableGrowth, outcome: Outcome) -> Check:
    """A delivery takes an open order of each district, none where a district has none, or where another delivery took it.

    HammerDB's own routine does not tell how many it took.
    """
    ordered = sum(after.next_orders) - sum(before.next_orders)
    delivered = before.open_orders + ordered - after.open_orders
    if tables.built:
        deliveries = outcome.succeeded_by_type_total.get("delivery", 0)
        return Check(
            name="tpcc_deliveries",
            ok=0 <= delivered <= DISTRICTS * (deliveries + outcome.uncounted_max),
            detail=f"{delivered:,} orders were delivered by {deliveries:,} deliveries, of which each takes {DISTRICTS} at most",
        )
    orders_delivered, skipped = outcome.inputs["orders_delivered"], outcome.inputs["districts_skipped"]
    deliveries = outcome.succeeded_by_type_total.get("delivery", 0)
    return Check(
        name="tpcc_deliveries",
        ok=orders_delivered <= delivered <= orders_delivered + DISTRICTS * outcome.uncounted_max
        and orders_delivered + skipped == DISTRICTS * deliveries,
        detail=f"{delivered:,} orders were delivered; {deliveries:,} deliveries took {orders_delivered:,} and found none in"
        f" {skipped:,} districts",
    )


def _conditions(tables: TpccTables, server: Server, drawn: Sequence[int] | None) -> Check:
    conditions = conditions_of(tables.profile)
    with counting(server) as connection:
        wrong = list(violated(connection, conditions, drawn, tables.schema))
    numbers = ", ".join(str(condition.number) for condition in conditions)
    of = "" if drawn is None else f", those of lines in warehouses {drawn[0]} and {drawn[1]}"
    detail = "; ".join(wrong) if wrong else f"conditions {numbers} of TPC-C hold{of}"
    return Check(name="tpcc_conditions", ok=not wrong, detail=detail)


def _mix(tables: TpccTables, outcome: Outcome) -> Check:
    """The mix of all transactions that ended well; New-Orders that were rolled back on purpose are among them."""
    by_type = dict(outcome.succeeded_by_type_total)
    by_type["new_order"] = by_type.get("new_order", 0) + outcome.account_total.rolled_back
    off = [share.wrong for share in mix(by_type) if not share.passes]
    mixed = f"the five types of {sum(by_type.values()):,} transactions are mixed 10 : 10 : 1 : 1 : 1"
    figures = {"tpm_per_nopm_by_mix": tpm_per_nopm(tables.profile)}
    return Check(name="tpcc_mix", ok=not off, detail="; ".join(off) or mixed, figures=figures)


def _inputs(tables: TpccTables, server: Server, before: TableGrowth, outcome: Outcome) -> Check:
    """The input audit."""
    with counting(server) as connection:
        ordered = OrderCounts.since(connection, before.next_orders, tables.schema)
    unseen = outcome.driver.engine == "hammerdb"
    drawn = InputCounts(
        profile=tables.profile,
        warehouses=tables.warehouses,
        inputs=None if unseen else outcome.inputs,
        new_orders=outcome.succeeded_by_type_total.get("new_order", 0),
        rolled_back=outcome.account_total.rolled_back,
        ordered=ordered,
    )
    shares, wrong = drawn.audit()
    detail = "; ".join(wrong or [*shares, *(["what HammerDB's users asked for is not told"] if unseen else [])])
    return Check(name="tpcc_inputs", ok=not wrong, detail=detail)
