"""Runs: the tables grow by what was counted, a run repeats itself, and HammerDB's deviations are where they belong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.kinds.registry import workload_of
from pgdyno.kinds.tpcc.audit import TableGrowth
from pgdyno.kinds.tpcc.kind import MIX, Tpcc
from pgdyno.workload.fill import fill
from pgdyno.workload.outcome import RunRequest
from pgdyno.workload.tables import TpccTables

from ..drive.driven import PAUSE_MS, drive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..fill.filled import Database

COLUMNS = {
    "orders": "o_id, o_w_id, o_c_id, o_d_id, o_carrier_id, o_ol_cnt, o_all_local",
    "order_line": "ol_o_id, ol_i_id, ol_supply_w_id, ol_d_id, ol_number, ol_quantity, ol_amount, ol_dist_info",
    "customer": "c_id, c_d_id, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, left(c_data, 40)",
    "history": "h_c_id, h_d_id, h_amount, h_data",
    "stock": "s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt",
}
"""What runs change, but for times."""
NEW_ORDER = "SELECT pgdyno_tpcc.neword(1, 1, 3, 77, 15, {})"


def tpcc(**result: Any) -> Tpcc:
    """A small one."""
    workload = workload_of(**({"kind": "tpcc", "warehouses": 1, "clients": 4, "seed": 3} | result))
    assert isinstance(workload, Tpcc)
    return workload


def paced(**result: Any) -> Tpcc:
    """One whose clients pause between their transactions: all types come, and the machine has time for other tests."""
    return tpcc(think_ms=2 * PAUSE_MS, **result)


def wrong(checks: Any) -> list[str]:
    """What the failed ones say."""
    return [f"{check.name}: {check.detail}" for check in checks if not check.ok]


@pytest.mark.parametrize("profile", ["hammerdb", "spec"])
def test_the_tables_grow_by_what_was_counted(
    request: pytest.FixtureRequest, clone: Callable[[Database], Database], tmp_path: Path, profile: str
) -> None:
    mine, tpcc = clone(request.getfixturevalue(profile)), paced(profile=profile)
    outcome = tpcc.runner()(mine, RunRequest(2.0, tmp_path))
    checks = tpcc.proofs(mine, outcome, full=True)
    assert wrong((*outcome.checks, *checks)) == []
    assert {check.name for check in checks} == {
        "tpcc_new_orders", "tpcc_history", "tpcc_deliveries", "tpcc_conditions", "tpcc_mix", "tpcc_inputs",
    }  # fmt: skip
    assert checks[0].figures == {"warehouses_used": 1, "missing": 0}
    assert list(outcome.succeeded_by_type) == [name for name, _ in MIX]
    assert outcome.succeeded_by_type["new_order"] > 0
    assert outcome.account.succeeded == sum(outcome.succeeded_by_type.values())
    assert profile == "spec" or outcome.account_total.rolled_back == 0
    # What was not counted, or counted twice, is told.
    before = TableGrowth.loaded(1)
    lie = replace(
        before,
        next_orders=(before.next_orders[0] - 1, *before.next_orders[1:]),
        history=before.history + 1,
        open_orders=before.open_orders + 100_000,
    )
    skewed = replace(outcome, succeeded_by_type_total={**outcome.succeeded_by_type_total, "stock_level": 10**6})
    assert [proof.name for proof in tpcc.proofs(mine, skewed, lie) if not proof.ok] == [
        "tpcc_new_orders", "tpcc_history", "tpcc_deliveries", "tpcc_mix",
    ]  # fmt: skip
    mine.run("UPDATE pgdyno_tpcc.district SET d_ytd = d_ytd + 0.01 WHERE d_id = 3")
    (check,) = (proof for proof in tpcc.proofs(mine, outcome) if proof.name == "tpcc_conditions")
    assert not check.ok
    assert "condition 9" in check.detail
    if profile == "spec":
        _require_growth(mine, outcome.succeeded_by_type_total["new_order"])
    # A second run begins with what the first left.
    mine.run("UPDATE pgdyno_tpcc.district SET d_ytd = d_ytd - 0.01 WHERE d_id = 3")
    before = tpcc.baseline(mine)
    outcome = tpcc.runner()(mine, RunRequest(1.0, tmp_path))
    assert wrong(tpcc.proofs(mine, outcome, before)) == []


def _require_growth(mine: Database, new_orders: int) -> None:
    """Rows and index entries of an order with its lines take about the room that is asked for."""
    widths = """
        SELECT sum(pg_relation_size(c.oid)::numeric / greatest(c.reltuples, 1)
                   * CASE WHEN coalesce(t.relname, c.relname) = 'order_line' THEN 10 ELSE 1 END)
        FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid
        WHERE c.relnamespace = 'pgdyno_tpcc'::regnamespace AND coalesce(t.relname, c.relname) IN ('orders', 'order_line')"""
    assert new_orders > 0
    for table in ("orders", "order_line"):
        mine.run(f"ANALYZE pgdyno_tpcc.{table}")
    ((result,),) = mine.rows(widths)
    # Deliveries of the run leave second versions of lines.
    assert float(result) == pytest.approx(1300, rel=0.15)


def test_procedures_do_the_same(hammerdb: Database, clone: Callable[[Database], Database], tmp_path: Path) -> None:
    mine = clone(hammerdb)
    for name in ("neword", "payment", "delivery", "slev", "ostat"):
        mine.run(f"DROP FUNCTION pgdyno_tpcc.{name}")
    with pytest.raises(PgdynoError, match="does not exist"):
        tpcc().runner()(mine, RunRequest(1.0, tmp_path))
    fill(mine, TpccTables(1, routines="procedures"))
    result = paced(routines="procedures")
    assert result.protocol == "simple"
    outcome = result.runner()(mine, RunRequest(1.0, tmp_path))
    assert wrong((*outcome.checks, *result.proofs(mine, outcome))) == []
    # Their names arrive: a customer who is called so pays, and the rest of what is said of them is written.
    assert mine.rows("SELECT count(*) > 0 FROM pgdyno_tpcc.customer WHERE c_data LIKE '% 1 % 1 %'") == [(True,)]


def _digests(mine: Database) -> list[Any]:
    """Of every table but for its times."""
    return [
        mine.rows(
            f"SELECT count(*), sum(hashtextextended(t::text, 0)) FROM (SELECT {columns} FROM pgdyno_tpcc.{table}) t"
        )
        for table, columns in COLUMNS.items()
    ]


def test_statements_of_the_client_do_what_the_functions_do(
    spec: Database, clone: Callable[[Database], Database], tmp_path: Path
) -> None:
    """The same transactions leave the same rows, and are proven in the same way."""
    results = []
    for routines in ("functions", "statements"):
        mine, result = clone(spec), tpcc(profile="spec", routines=routines)
        order = {"workload": result.native(), "clients": 1, "duration_ms": 30_000, "transactions_max": 300, "seed": 5}
        summary = drive(mine.dsn, order).summary
        ended = [(script["succeeded"], script["rolled_back"]) for script in summary["scripts"]]
        results.append((_digests(mine), ended, summary["inputs"]))
    assert results[0] == results[1]
    assert results[0][1][0][1] > 0, "an order was rolled back on purpose"
    # Of the last run: the statements, by the protocol that is the default, and as text.
    assert sum(statement["count"] for statement in summary["statements"]) > 300 * 15
    for protocol in ("prepared", "simple"):
        result = paced(profile="spec", routines="statements", protocol=protocol)
        before = result.baseline(mine)
        outcome = result.runner()(mine, RunRequest(1.0, tmp_path))
        assert wrong((*outcome.checks, *result.proofs(mine, outcome, before, full=True))) == []


@pytest.mark.parametrize("profile", ["hammerdb", "spec"])
def test_one_seed_leaves_equal_tables(
    request: pytest.FixtureRequest, clone: Callable[[Database], Database], profile: str
) -> None:
    results = []
    for seed in (5, 5, 6) if profile == "hammerdb" else (5, 5):
        mine = clone(request.getfixturevalue(profile))
        order = tpcc(profile=profile).native()
        drive(mine.dsn, {"workload": order, "clients": 1, "duration_ms": 30_000, "transactions_max": 150, "seed": seed})
        results.append(_digests(mine))
    assert results[0] == results[1]
    assert all(result != other for last in results[2:] for result, other in zip(results[0], last, strict=True))


def test_hammerdbs_functions_never_find_a_customer_by_name(hammerdb: Database) -> None:
    pay = "SELECT pgdyno_tpcc.payment(1, 1, 1, 2, 77, 1, 500, '{}')"
    with psycopg.connect(hammerdb.dsn) as connection:
        paid = "SELECT h_c_id FROM pgdyno_tpcc.history WHERE h_amount = 500 AND h_d_id = 1 AND h_c_d_id = 2"
        connection.execute(pay.format("$8").encode())
        # The customer who was drawn pays, with a balance that begins at zero; nothing else of them is counted.
        row = connection.execute(
            "SELECT c_balance, c_payment_cnt, c_ytd_payment FROM pgdyno_tpcc.customer WHERE (c_d_id, c_id) = (2, 77)"
        ).fetchone()
        assert row == (-500, 1, 10)
        assert connection.execute(paid.encode()).fetchall() == [(77,)]
        connection.rollback()
        # Half of those of the name, rounded down.
        named = connection.execute(
            "SELECT c_id FROM pgdyno_tpcc.customer WHERE (c_d_id, c_last) = (2, 'BARBARBAR') ORDER BY c_first"
        ).fetchall()
        assert len(named) > 1
        connection.execute(pay.format("BARBARBAR").encode())
        assert connection.execute(paid.encode()).fetchall() == [named[len(named) // 2 - 1]]
        connection.rollback()
        nothing = connection.execute(b"SELECT (pgdyno_tpcc.ostat(1, 2, 77, 1, '$5')).*").fetchone()
        assert nothing == (None, None, 0, None)


def test_hammerdbs_unused_item_stays_as_a_line_without_an_amount(hammerdb: Database) -> None:
    with psycopg.connect(hammerdb.dsn) as connection:
        for seed in range(400):
            connection.execute(NEW_ORDER.format(seed * 5_000_001).encode())
        unused = connection.execute(
            b"SELECT ol_number, o_ol_cnt, ol_amount, ol_dist_info FROM pgdyno_tpcc.order_line"
            b" JOIN pgdyno_tpcc.orders ON (o_w_id, o_d_id, o_id) = (ol_w_id, ol_d_id, ol_o_id) WHERE ol_i_id = 100001"
        ).fetchall()
        # Four are expected of 400; none comes once in 55.
        assert unused
        assert all(row == (15, 15, None, None) for row in unused)
        changed = connection.execute(
            b"SELECT sum(s_ytd), sum(s_order_cnt), sum(s_remote_cnt) FROM pgdyno_tpcc.stock"
        ).fetchone()
        assert changed == (0, 0, 0)
        connection.rollback()


def test_a_writing_routine_of_hammerdb_has_a_subtransaction(hammerdb: Database) -> None:
    """So that it takes two ids of transactions."""
    with psycopg.connect(hammerdb.dsn, autocommit=True) as connection:
        now = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        (before,) = connection.execute(now.encode()).fetchone() or (0,)
        with connection.transaction(force_rollback=True):
            connection.execute(NEW_ORDER.format(1).encode())
        (after,) = connection.execute(now.encode()).fetchone() or (0,)
    assert after - before >= 2


def test_an_unused_item_rolls_the_specifications_order_back(spec: Database) -> None:
    order = "SELECT pgdyno_tpcc.neword(1, 3, 77, '{{5,6,{}}}', '{{1,1,1}}', '{{7,8,9}}')"
    with psycopg.connect(spec.dsn) as connection:
        assert connection.execute(order.format(100_001).encode()).fetchone() == (None,)
        assert connection.execute(b"SELECT max(o_id) FROM pgdyno_tpcc.orders WHERE o_d_id = 3").fetchone() == (3000,)
        assert connection.execute(b"SELECT sum(s_ytd) FROM pgdyno_tpcc.stock").fetchone() == (0,)
        (total,) = connection.execute(order.format(7).encode()).fetchone() or (None,)
        assert total is not None
        (wanted,) = connection.execute(
            b"SELECT sum(ol_amount) * max((1 + w_tax + d_tax) * (1 - c_discount)) FROM pgdyno_tpcc.order_line,"
            b" pgdyno_tpcc.warehouse, pgdyno_tpcc.district, pgdyno_tpcc.customer"
            b" WHERE ol_d_id = 3 AND ol_o_id = 3001 AND d_id = 3 AND (c_d_id, c_id) = (3, 77)"
        ).fetchone() or (None,)
        assert total == wanted
        assert connection.execute(b"SELECT sum(s_ytd), sum(s_order_cnt) FROM pgdyno_tpcc.stock").fetchone() == (24, 3)
        connection.rollback()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"warehouses": 0}, "warehouses: "),
        ({"warehouses": 1.5}, "warehouses: "),
        ({"warehouses": 100_001}, "warehouses: "),
        ({"profile": "spec", "routines": "procedures"}, "routines: the profile spec has functions or statements"),
        ({"routines": "statements"}, "routines: the profile hammerdb has functions or procedures"),
        ({"profile": "spec", "names_match": True}, "names_match: names match there anyway"),
        ({"keying": True, "rate_per_s": 5.0}, "keying: clients of an open loop"),
        ({"keying": True, "think_ms": 5.0}, "keying: it has a think time for each type"),
        ({"scale": 5}, "scale: it is for kind"),
        ({"warehouses": 3, "data_to_memory": 2.0}, "data_to_memory: it sets the amount of data"),
        ({"load": {"foreign_keys": True}}, "load: foreign_keys are for pgbench's tables"),
        ({"load": {"manner": "hammerdb", "split": True}}, "load.split: its sessions share the rows"),
        ({"load": {"times": 3}}, "load.times: a load without limits shows nothing about a volume"),
        ({"kind": "pgbench", "load": {"manner": "hammerdb"}}, 'load.manner: "hammerdb" is for the kinds tpcc and tpch'),
        ({"engine": "pgbench"}, "engine: pgbench cannot run"),
    ],
)
def test_what_cannot_be_run_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as raises:
        workload_of(**({"kind": "tpcc"} | asked))
    assert said in raises.value.message
