"""Each condition catches what breaks it, and says where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.workload.tpcc_conditions import CONDITIONS, conditions_of, violated

if TYPE_CHECKING:
    from ..fill.filled import Database

ALTER = "SET LOCAL session_replication_role = replica;"
"""References would refuse some of the changes."""
MUTANTS = {
    1: "UPDATE pgdyno_tpcc.warehouse SET w_ytd = w_ytd + 0.01",
    2: "UPDATE pgdyno_tpcc.district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 4",
    3: "DELETE FROM pgdyno_tpcc.new_order WHERE no_d_id = 4 AND no_o_id = 2500",
    4: "DELETE FROM pgdyno_tpcc.order_line WHERE ol_d_id = 4 AND ol_o_id = 77 AND ol_number = 1",
    5: "UPDATE pgdyno_tpcc.orders SET o_carrier_id = NULL WHERE o_d_id = 4 AND o_id = 77",
    # Two orders that make up for each other: the district's sum is as before.
    6: "UPDATE pgdyno_tpcc.orders SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 77 THEN 1 ELSE -1 END"
    " WHERE o_d_id = 4 AND o_id IN (77, 78)",
    7: "UPDATE pgdyno_tpcc.order_line SET ol_delivery_d = NULL WHERE ol_d_id = 4 AND ol_o_id = 77 AND ol_number = 2",
    8: "DELETE FROM pgdyno_tpcc.history WHERE h_d_id = 4 AND h_c_id = 77",
    # A payment that went to another district of the same warehouse.
    9: "UPDATE pgdyno_tpcc.history SET h_d_id = 5 WHERE h_d_id = 4 AND h_c_id = 77",
    10: "UPDATE pgdyno_tpcc.customer SET c_balance = c_balance + 0.01 WHERE c_d_id = 4 AND c_id = 77",
    11: "INSERT INTO pgdyno_tpcc.new_order (no_w_id, no_d_id, no_o_id) VALUES (1, 4, 2100)",
    12: "UPDATE pgdyno_tpcc.customer SET c_ytd_payment = c_ytd_payment - 0.01 WHERE c_d_id = 4 AND c_id = 77",
}


@pytest.mark.parametrize("number", MUTANTS)
def test_a_mutant_of_each_condition_is_caught(spec: Database, number: int) -> None:
    condition = CONDITIONS[number - 1]
    assert condition.number == number
    with psycopg.connect(spec.dsn) as connection:
        connection.execute((ALTER + MUTANTS[number]).encode())
        (text,) = violated(connection, [condition])
        assert text.startswith(f"condition {number} (")
        assert text.endswith("fails at 1") if number in (1, 8) else "1/4" in text
        connection.rollback()


def test_conditions_about_lines_can_be_asked_of_some_warehouses(spec: Database) -> None:
    with psycopg.connect(spec.dsn) as connection:
        connection.execute((ALTER + MUTANTS[4]).encode())
        assert CONDITIONS[3].violations(connection, [1])
        assert not CONDITIONS[3].violations(connection, [2, 3])
        assert not any(item.violations(connection, [2, 3]) for item in (CONDITIONS[5], CONDITIONS[6]))
        connection.rollback()


def test_which_conditions_hold_is_the_profiles() -> None:
    numbers = {
        (profile, loaded): [condition.number for condition in conditions_of(profile, loaded=loaded)]
        for profile in ("hammerdb", "spec")
        for loaded in (True, False)
    }
    assert numbers["hammerdb", True] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 11]
    assert numbers["hammerdb", False] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert numbers["spec", True] == list(range(1, 13))
    assert numbers["spec", False] == [*range(1, 11), 12]
