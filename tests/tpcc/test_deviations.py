"""Deviations of HammerDB from TPC-C that the profile `hammerdb` has: those of amounts and of the customer whom Order-Status reads."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from ..fill.filled import Database

NEW_ORDER = b"SELECT pgdyno_tpcc.neword(1, 1, 3, 77, 15, 12345)"
LINES = b"SELECT ol_i_id, ol_quantity, ol_amount FROM pgdyno_tpcc.order_line WHERE ol_d_id = 3 AND ol_o_id = 3001 ORDER BY ol_number"


def _rows(connection: psycopg.Connection[Any], text: bytes) -> list[tuple[Any, ...]]:
    return connection.execute(text).fetchall()


def test_amounts_of_lines_have_taxes_and_the_discount_in_them(hammerdb: Database) -> None:
    with psycopg.connect(hammerdb.dsn) as connection:
        ((total,),) = _rows(connection, NEW_ORDER)
        lines = _rows(connection, LINES)
        ((factor,),) = _rows(
            connection,
            b"SELECT (1 + w_tax + d_tax) * (1 - c_discount) FROM pgdyno_tpcc.warehouse, pgdyno_tpcc.district,"
            b" pgdyno_tpcc.customer WHERE d_id = 3 AND (c_d_id, c_id) = (3, 77)",
        )
        prices = dict(_rows(connection, b"SELECT i_id, i_price FROM pgdyno_tpcc.item"))
        connection.rollback()
    known = [(quantity * prices[item] * factor) for item, quantity, _ in lines if item in prices]
    assert factor != 1
    assert sum(known) == total
    # They stand where stock was changed, and not at their lines.
    amounts = [amount for *_, amount in lines if amount is not None]
    assert sorted(amounts) == sorted(amount.quantize(Decimal("0.01")) for amount in known)


def test_an_item_twice_in_an_order_changes_stock_once_and_leaves_last_lines_without_an_amount(
    hammerdb: Database,
) -> None:
    """Of three items, so that they come again."""
    with psycopg.connect(hammerdb.dsn) as connection:
        ((text,),) = _rows(connection, b"SELECT pg_get_functiondef('pgdyno_tpcc.neword'::regproc)")
        assert "floor(random() * 100000)" in text
        connection.execute(text.replace("floor(random() * 100000)", "floor(random() * 3)").encode())
        stock = b"SELECT s_i_id, s_quantity FROM pgdyno_tpcc.stock WHERE s_i_id <= 3"
        before = dict(_rows(connection, stock))
        connection.execute(NEW_ORDER)
        lines, after = _rows(connection, LINES), dict(_rows(connection, stock))
        connection.rollback()
    of_item: dict[int, set[int]] = {}
    for item, quantity, _ in lines:
        of_item.setdefault(item, set()).add(quantity)
    sold = [item for item in of_item if item <= 3]
    assert len(lines) == 15 and len(sold) == 3
    assert [amount is not None for *_, amount in lines] == [True] * 3 + [False] * 12
    for item in sold:
        taken = {(before[item] - after[item]) % 91}
        assert taken <= {quantity % 91 for quantity in of_item[item]}, (
            "one line of it was taken from the stock, not their sum"
        )


def test_order_status_by_name_reads_one_customer_past_the_middle(hammerdb: Database) -> None:
    named = (
        "SELECT c_d_id, c_last, array_agg(c_id ORDER BY c_first), array_agg(newest ORDER BY c_first) FROM pgdyno_tpcc.customer"
        " LEFT JOIN (SELECT o_d_id, o_c_id, max(o_id) AS newest FROM pgdyno_tpcc.orders GROUP BY 1, 2) o"
        " ON (o_d_id, o_c_id) = (c_d_id, c_id) GROUP BY 1, 2 HAVING count(*) > 2 ORDER BY 1, 2"
    )
    seen = 0
    with psycopg.connect(hammerdb.dsn) as connection:
        for district, name, customers, newest in hammerdb.rows(named):
            # From 0: the middle is the one before it, as many as half of them rounded up.
            past = (len(customers) + 1) // 2
            if newest[past] is None or newest[past] == newest[past - 1]:
                continue
            result = connection.execute(
                b"SELECT (pgdyno_tpcc.ostat(1, %s, 1, 1, %s)).out_order", [district, name]
            ).fetchone()
            assert result == (newest[past],), (district, name)
            seen += 1
            if seen == 20:
                break
    assert seen == 20
