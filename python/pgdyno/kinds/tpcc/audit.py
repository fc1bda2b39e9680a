"""Audit of a TPC-C run: shares of its inputs (5.11, 9.2.2.5), growth of the tables, consistency conditions and mix.

The specification's windows are for runs of two hours. A share of n draws passes within its window, or within four standard errors
of what is expected, whichever is wider: an honest run fails one line of the audit in 16,000.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from pgdyno.workload.outcome import Outcome
from pgdyno.workload.server import Server
from pgdyno.workload.tables import TpccTables
from pgdyno.workload.tpcc_conditions import TPCC_SCHEMA, TpccProfile, conditions_of, drawn_warehouses, violated

from ...results.record import Check
from ...workload.server import counting

if TYPE_CHECKING:
    import psycopg


STANDARD_ERRORS = 4.0
"""Standard errors by which a share may be off."""
MIX: Final = (("new_order", 10), ("payment", 10), ("delivery", 1), ("stock_level", 1), ("order_status", 1))
"""The types of transaction with their weights in a deck of 23."""
_DECK = sum(weight for _, weight in MIX)
_ROLLED_BACK = 0.01
"""Of New-Orders of the profile `spec`, on purpose."""
_LINES = range(5, 16)
"""Lines of an order."""
_LINES_MEAN = 10.0
_LINES_VARIANCE = (len(_LINES) ** 2 - 1) / 12
_UNIFORM_CHI2_MAX = 36.7
"""Of χ² with the ten degrees of freedom of eleven counts, exceeded as seldom as four standard errors are (6.3e-5)."""
_NURAND_ODD = 0.75
"""A value of NURand without its constant is `U | V` of two uniform draws: odd unless both are even."""
_UNIFORM_ODD = 0.5
_UNUSED_ITEM = 100_001


@dataclass(frozen=True)
class AuditShare:
    """One line of the audit: how many of how many, and how many it should be."""

    what: str
    count: int
    of: int
    expected: float
    window: float = 0.0
    """The specification's, to each side."""

    @property
    def passes(self) -> bool:
        """True if it is within the window, or within four standard errors. Nothing drawn, nothing wrong."""
        if self.of == 0:
            return self.count == 0
        error = math.sqrt(self.expected * (1 - self.expected) / self.of)
        return abs(self.count / self.of - self.expected) <= max(self.window, STANDARD_ERRORS * error)

    def __str__(self) -> str:
        """``by name in Payment 60.1 % of 5,000``."""
        share = f"{self.count / self.of:.2%}".replace("%", " %") if self.of else "none"
        return f"{self.what} {share} of {self.of:,}"

    @property
    def wrong(self) -> str:
        """The same with what it should be."""
        return f"{self}, and should be {100 * self.expected:.4g} %"


@dataclass(frozen=True)
class OrderCounts:
    """Counts of a run's orders, from the tables."""

    sizes: Mapping[int, int]
    """Lines of an order -> how many orders have that many."""
    lines: int
    lines_remote: int
    """Of another warehouse than the order's."""
    unused: int
    """Lines of the item that does not exist."""

    @classmethod
    def since(
        cls, connection: psycopg.Connection[tuple[Any, ...]], first_orders: Sequence[int], schema: str = TPCC_SCHEMA
    ) -> Self:
        """Orders from those numbers on, a number for each district by warehouse and district. They are found by their keys."""
        new = f"""
            (SELECT d_w_id AS w, d_id AS d, row_number() OVER (ORDER BY d_w_id, d_id) AS place FROM {schema}.district) AS d
            JOIN unnest(%s::integer[]) WITH ORDINALITY AS f (first, place) USING (place)"""
        sizes = f"""
            SELECT o_ol_cnt, count(*) FROM {new} CROSS JOIN LATERAL (
                SELECT o_ol_cnt FROM {schema}.orders WHERE o_w_id = w AND o_d_id = d AND o_id >= first OFFSET 0) AS o
            GROUP BY 1"""
        lines = f"""
            SELECT coalesce(sum(n), 0), coalesce(sum(remote), 0), coalesce(sum(unused), 0) FROM {new} CROSS JOIN LATERAL (
                SELECT count(*) AS n, count(*) FILTER (WHERE ol_supply_w_id <> ol_w_id) AS remote,
                    count(*) FILTER (WHERE ol_i_id = {_UNUSED_ITEM}) AS unused
                FROM {schema}.order_line WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id >= first) AS l"""
        firsts = [list(first_orders)]
        counted = {int(size): int(many) for size, many in connection.execute(sizes.encode(), firsts).fetchall()}
        row = connection.execute(lines.encode(), firsts).fetchone()
        assert row is not None
        return cls(counted, *map(int, row))

    @property
    def orders(self) -> int:
        """All of them."""
        return sum(self.sizes.values())

    def of_sizes(self) -> Iterator[tuple[str, bool]]:
        """The lines of an order, in the mean and in their distribution: in words, and whether they are as they should be."""
        if not self.orders:
            return
        mean = sum(size * many for size, many in self.sizes.items()) / self.orders
        window = max(0.5, STANDARD_ERRORS * math.sqrt(_LINES_VARIANCE / self.orders))
        yield f"{mean:.2f} lines per order, expected 10", abs(mean - _LINES_MEAN) <= window
        each = self.orders / len(_LINES)
        chi2 = sum((self.sizes.get(size, 0) - each) ** 2 / each for size in _LINES)
        outside = sum(many for size, many in self.sizes.items() if size not in _LINES)
        yield (
            f"lines per order are not uniform over 5 to 15 (χ² {chi2:.1f}, {outside:,} outside)",
            chi2 <= _UNIFORM_CHI2_MAX and not outside,
        )


@dataclass(frozen=True)
class InputCounts:
    """Counts of a run's inputs."""

    profile: TpccProfile
    warehouses: int
    inputs: Mapping[str, int] | None
    """Inputs that clients drew; None if the driver does not report them."""
    new_orders: int
    """Succeeded transactions by type."""
    rolled_back: int
    """On purpose."""
    ordered: OrderCounts

    def shares(self) -> Iterator[AuditShare]:
        """The lines of the audit that are shares."""
        spec = self.profile == "spec"
        remote = 0.0 if self.warehouses == 1 else 1.0
        # HammerDB draws a remote line's warehouse among all of them, so it may be the home again.
        elsewhere = 0.01 * (remote if spec else 1 - 1 / self.warehouses)
        if spec:
            orders = self.new_orders + self.rolled_back
            yield AuditShare("rolled back of New-Orders", self.rolled_back, orders, _ROLLED_BACK, 0.001)
        else:
            yield AuditShare("orders of an unused item", self.ordered.unused, self.ordered.orders, 0.01, 0.001)
        yield AuditShare(
            "remote lines", self.ordered.lines_remote, self.ordered.lines, elsewhere, 0.0005 if elsewhere else 0.0
        )
        if self.inputs is not None:
            yield from self._input_shares(self.inputs, remote=remote)

    def _input_shares(self, counts: Mapping[str, int], *, remote: float) -> Iterator[AuditShare]:
        """Those of what clients asked for; ``remote`` is 0 where there is no other warehouse."""
        spec = self.profile == "spec"
        yield AuditShare(
            "remote payments", counts["payments_remote"], counts["payments"], 0.15 * remote, 0.01 if remote else 0.0
        )
        yield AuditShare("by name in Payment", counts["payments_by_name"], counts["payments"], 0.60, 0.03)
        yield AuditShare(
            "by name in Order-Status", counts["order_statuses_by_name"], counts["order_statuses"], 0.60, 0.03
        )
        by_name = counts["payments_by_name"] + counts["order_statuses_by_name"]
        yield AuditShare("odd names by NURand", counts["names_odd"], by_name, _NURAND_ODD)
        customers = "odd customers by NURand" if spec else "odd customers, drawn uniformly,"
        yield AuditShare(customers, counts["customers_odd"], counts["customers"], _NURAND_ODD if spec else _UNIFORM_ODD)
        if spec:
            yield AuditShare("odd items by NURand", counts["items_odd"], counts["items"], _NURAND_ODD)

    def audit(self) -> tuple[list[str], list[str]]:
        """(Shares in words, what is wrong)."""
        shares = list(self.shares())
        wrong = [share.wrong for share in shares if not share.passes]
        wrong += [text for text, right in self.ordered.of_sizes() if not right]
        return [str(share) for share in shares], wrong


def mix(by_type: Mapping[str, int]) -> Iterator[AuditShare]:
    """Each type's share of all transactions that ended well."""
    total = sum(by_type.values())
    for name, weight in MIX:
        yield AuditShare(name, by_type.get(name, 0), total, weight / _DECK)


def tpm_per_nopm(profile: TpccProfile) -> float:
    """Transactions for each New-Order, as the mix gives them; those that are rolled back on purpose are in neither."""
    orders = dict(MIX)["new_order"]
    rolled_back = _ROLLED_BACK * orders if profile == "spec" else 0.0
    return (_DECK - rolled_back) / (orders - rolled_back)


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
    """Counts of the tables that change in a run."""

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
