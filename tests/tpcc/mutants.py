"""Routines that do something else than they should: what each changes, and the proof that must say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..fill.filled import Database


@dataclass(frozen=True)
class Mutant:
    """A routine with a part replaced."""

    profile: str
    routine: str
    text: str
    by: str
    check: str
    """The proof that fails."""
    said: str
    """A part of what it says."""

    def into(self, database: Database) -> None:
        """Put it in the place of the routine."""
        ((definition,),) = database.rows(f"SELECT pg_get_functiondef('pgdyno_tpcc.{self.routine}'::regproc)")
        assert self.text in definition, self
        database.run(definition.replace(self.text, self.by))


def _condition(number: int, routine: str, text: str, by: str) -> Mutant:
    return Mutant("spec", routine, text, by, "tpcc_conditions", f"condition {number} (")


CONDITIONS = {
    1: _condition(1, "payment", "w_ytd = w_ytd + in_amount", "w_ytd = w_ytd + in_amount + 0.01"),
    2: _condition(2, "neword", "d_next_o_id = d_next_o_id + 1", "d_next_o_id = d_next_o_id + 1 + (in_d_id = 4)::integer"),
    3: _condition(3, "delivery", "ORDER BY no_o_id LIMIT 1", "ORDER BY no_o_id OFFSET 1 LIMIT 1"),
    4: _condition(4, "neword", "now(), cardinality(in_items),", "now(), cardinality(in_items) - 1,"),
    5: _condition(5, "delivery", "o_carrier_id = in_carrier", "o_carrier_id = o_carrier_id"),
    6: _condition(6, "neword", "now(), cardinality(in_items),", "now(), cardinality(in_items) - 1 + 2 * (the_order % 2),"),
    7: _condition(7, "delivery", "ol_delivery_d = now()", "ol_delivery_d = ol_delivery_d"),
    8: _condition(8, "payment", "now(), in_amount, concat", "now(), in_amount + 0.01, concat"),
    9: _condition(9, "payment", "the_customer, in_d_id, in_w_id, now()", "the_customer, in_d_id % 10 + 1, in_w_id, now()"),
    10: _condition(10, "payment", "c_balance = c_balance - in_amount", "c_balance = c_balance - in_amount - 0.01"),
    12: _condition(12, "payment", "c_ytd_payment + in_amount", "c_ytd_payment + in_amount + 0.01"),
}  # fmt: skip
"""By the number of the condition; condition 11 holds after a load alone."""
GROWTH = (
    Mutant("hammerdb", "neword", "d_next_o_id = d_next_o_id + 1", "d_next_o_id = d_next_o_id + 1 + (in_d_id = 4)::integer",
           "tpcc_new_orders", "next orders grew by"),
    Mutant("hammerdb", "payment", "INSERT INTO", "IF in_d_id = 4 THEN RETURN; END IF; INSERT INTO", "tpcc_history", "history grew by"),
    Mutant("spec", "delivery", "out_delivered := out_delivered + 1", "out_delivered := out_delivered", "tpcc_deliveries",
           "orders were delivered"),
)  # fmt: skip
INPUTS = (
    Mutant("spec", "neword", "RAISE no_data_found", "CONTINUE", "tpcc_inputs", "rolled back of New-Orders 0.00 %"),
    Mutant("hammerdb", "neword", "the_item := 100001", "the_item := 100000", "tpcc_inputs", "orders of an unused item 0.00 %"),
    Mutant("hammerdb", "neword", "the_supply := in_w_id;", "the_supply := in_w_id + (the_line = 5)::integer;", "tpcc_inputs",
           "remote lines"),
    Mutant("hammerdb", "neword", "PERFORM pg_catalog.setseed", "in_lines := least(in_lines, 9); PERFORM pg_catalog.setseed",
           "tpcc_inputs", "lines per order"),
)  # fmt: skip
QUICK = (CONDITIONS[9], GROWTH[2], INPUTS[2])
"""Those of every `make test`; SQL that breaks each condition is in test_conditions.py."""
