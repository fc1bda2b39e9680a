"""The consistency conditions of TPC-C (5.11, 3.3.2.1 to 12), as queries for what violates them.

Which of them hold is the profile's: HammerDB's data break 10 and 12 from the load on, as delivered lines have amounts that no
balance knows, and 11 holds after a load alone. They are asked while no session writes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    import psycopg

TpccProfile = Literal["hammerdb", "spec"]

TPCC_SCHEMA: Final = "pgdyno_tpcc"
"""The schema of the tables that are derived from TPC-C, and of their routines."""
PUBLIC: Final = "public"
"""The schema in which HammerDB builds its own."""
ASKED_WAREHOUSES = 2
"""Warehouses whose lines are read, unless all are to be."""
SHOWN = 3
"""Rows that violate a condition, of which a check tells."""


@dataclass(frozen=True)
class TpccCondition:
    """One of the twelve."""

    number: int
    what: str
    """The condition in words."""
    query: str
    """Brings what violates it. ``{S}`` is the schema; ``{OF column}`` restricts a column to some warehouses."""

    def violations(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        warehouses: Sequence[int] | None = None,
        schema: str = TPCC_SCHEMA,
    ) -> list[tuple[Any, ...]]:
        """The first rows that violate it, of all warehouses or of some."""
        text = self.query.replace("{S}", schema)
        while (begin := text.find("{OF ")) >= 0:
            end = text.index("}", begin)
            column = text[begin + 4 : end]
            some = "true" if warehouses is None else f"{column} = ANY (ARRAY[{', '.join(map(str, warehouses))}])"
            text = text[:begin] + some + text[end + 1 :]
        return connection.execute(f"{text} LIMIT {SHOWN}".encode()).fetchall()


_LINES = """
(SELECT ol_w_id, ol_d_id, {BY}count(*) AS lines FROM {S}.order_line WHERE {OF ol_w_id} GROUP BY 1, 2{GROUP}) AS l"""
_DELIVERED = """
(SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM {S}.orders JOIN {S}.order_line
    ON (o_w_id, o_d_id, o_id) = (ol_w_id, ol_d_id, ol_o_id)
    WHERE ol_delivery_d IS NOT NULL AND {OF ol_w_id} AND {OF o_w_id} GROUP BY 1, 2, 3) AS d
    ON (d.o_w_id, d.o_d_id, d.o_c_id) = (c_w_id, c_d_id, c_id)"""

CONDITIONS: Final = (
    TpccCondition(1, "a warehouse was paid what its districts were", """
SELECT w_id FROM {S}.warehouse JOIN {S}.district ON d_w_id = w_id GROUP BY w_id, w_ytd HAVING w_ytd <> sum(d_ytd)"""),
    TpccCondition(2, "the next order of a district follows its last one, and its last one that is open", """
SELECT d_w_id, d_id FROM {S}.district
LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last FROM {S}.orders GROUP BY 1, 2) AS o
    ON (o_w_id, o_d_id) = (d_w_id, d_id)
LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS last FROM {S}.new_order GROUP BY 1, 2) AS n
    ON (no_w_id, no_d_id) = (d_w_id, d_id)
WHERE d_next_o_id - 1 IS DISTINCT FROM o.last OR d_next_o_id - 1 <> n.last"""),
    TpccCondition(3, "the open orders of a district follow one another", """
SELECT no_w_id, no_d_id FROM {S}.new_order GROUP BY 1, 2 HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)"""),
    TpccCondition(4, "a district has as many lines as its orders say", f"""
SELECT coalesce(o_w_id, ol_w_id), coalesce(o_d_id, ol_d_id)
FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS lines FROM {{S}}.orders WHERE {{OF o_w_id}} GROUP BY 1, 2) AS o
FULL JOIN {_LINES.replace('{BY}', '').replace('{GROUP}', '')} ON (o_w_id, o_d_id) = (ol_w_id, ol_d_id)
WHERE o.lines IS DISTINCT FROM l.lines"""),
    TpccCondition(5, "an order is open as long as it has no carrier", """
SELECT coalesce(o_w_id, no_w_id), coalesce(o_d_id, no_d_id), coalesce(o_id, no_o_id)
FROM {S}.orders FULL JOIN {S}.new_order ON (no_w_id, no_d_id, no_o_id) = (o_w_id, o_d_id, o_id)
WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)"""),
    TpccCondition(6, "an order has as many lines as it says", f"""
SELECT coalesce(o_w_id, ol_w_id), coalesce(o_d_id, ol_d_id), coalesce(o_id, ol_o_id)
FROM (SELECT o_w_id, o_d_id, o_id, o_ol_cnt FROM {{S}}.orders WHERE {{OF o_w_id}}) AS o
FULL JOIN {_LINES.replace('{BY}', 'ol_o_id, ').replace('{GROUP}', ', 3')}
    ON (o_w_id, o_d_id, o_id) = (ol_w_id, ol_d_id, ol_o_id)
WHERE o_ol_cnt IS DISTINCT FROM l.lines"""),
    TpccCondition(7, "a line is delivered where its order has a carrier", """
SELECT ol_w_id, ol_d_id, ol_o_id, ol_number FROM {S}.order_line JOIN {S}.orders
    ON (o_w_id, o_d_id, o_id) = (ol_w_id, ol_d_id, ol_o_id)
WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL) AND {OF ol_w_id} AND {OF o_w_id}"""),
    TpccCondition(8, "a warehouse was paid what its history says", """
SELECT w_id FROM {S}.warehouse LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM {S}.history GROUP BY 1) AS h
    ON h_w_id = w_id
WHERE w_ytd <> coalesce(paid, 0)"""),
    TpccCondition(9, "a district was paid what its history says", """
SELECT d_w_id, d_id FROM {S}.district
LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM {S}.history GROUP BY 1, 2) AS h
    ON (h_w_id, h_d_id) = (d_w_id, d_id)
WHERE d_ytd <> coalesce(paid, 0)"""),
    TpccCondition(10, "a customer's balance is what was delivered less what was paid", f"""
SELECT c_w_id, c_d_id, c_id FROM {{S}}.customer
LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM {{S}}.history GROUP BY 1, 2, 3) AS h
    ON (h_c_w_id, h_c_d_id, h_c_id) = (c_w_id, c_d_id, c_id)
LEFT JOIN {_DELIVERED}
WHERE c_balance <> coalesce(delivered, 0) - coalesce(paid, 0) AND {{OF c_w_id}}"""),
    TpccCondition(11, "2,100 orders of a district are not open", """
SELECT d_w_id, d_id FROM {S}.district
LEFT JOIN (SELECT o_w_id, o_d_id, count(*) AS orders FROM {S}.orders GROUP BY 1, 2) AS o ON (o_w_id, o_d_id) = (d_w_id, d_id)
LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS open FROM {S}.new_order GROUP BY 1, 2) AS n
    ON (no_w_id, no_d_id) = (d_w_id, d_id)
WHERE coalesce(orders, 0) - coalesce(open, 0) <> 2100"""),
    TpccCondition(12, "a customer's balance and payments are what was delivered", f"""
SELECT c_w_id, c_d_id, c_id FROM {{S}}.customer LEFT JOIN {_DELIVERED}
WHERE c_balance + c_ytd_payment <> coalesce(delivered, 0) AND {{OF c_w_id}}"""),
)  # fmt: skip
"""In their order."""
_ONLY_LOADED = frozenset({11})
_NOT_OF_HAMMERDB = frozenset({10, 12})


def conditions_of(profile: TpccProfile, *, loaded: bool = False) -> tuple[TpccCondition, ...]:
    """Those that hold: just ``loaded``, or after a run."""
    missing = (_NOT_OF_HAMMERDB if profile == "hammerdb" else frozenset()) | (frozenset() if loaded else _ONLY_LOADED)
    return tuple(item for item in CONDITIONS if item.number not in missing)


def drawn_warehouses(warehouses: int, seed: int) -> list[int] | None:
    """The warehouses whose lines are read; None: of all."""
    if warehouses <= ASKED_WAREHOUSES:
        return None
    return sorted(random.Random(seed).sample(range(1, warehouses + 1), ASKED_WAREHOUSES))


def violated(
    connection: psycopg.Connection[tuple[Any, ...]],
    conditions: Sequence[TpccCondition],
    warehouses: Sequence[int] | None = None,
    schema: str = TPCC_SCHEMA,
) -> Iterator[str]:
    """Each condition that does not hold, with places where it does not."""
    for condition in conditions:
        violations = condition.violations(connection, warehouses, schema)
        if violations:
            places = ", ".join("/".join(map(str, row)) for row in violations)
            more = " and others" if len(violations) == SHOWN else ""
            yield f"condition {condition.number} ({condition.what}) fails at {places}{more}"
