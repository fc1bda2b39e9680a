"""The tables are what they are called: columns, keys, counts, laws of their values, and the conditions that hold after a load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.workload.fill import drop, fill
from pgdyno.workload.tables import TPCC_BYTES_PER_WAREHOUSE, TpccTables
from pgdyno.workload.tpcc_conditions import CONDITIONS, conditions_of, violated
from pgdyno.world.fill import require_whole

from ..fill.filled import Database

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgdyno.server.cluster import Cluster

ADDRESS = "street_1 varchar(20)!, street_2 varchar(20)!, city varchar(20)!, state char(2)!, zip char(9)!"
DISTS = ", ".join(f"s_dist_{number:02} char(24)!" for number in range(1, 11))


def _address(prefix: str) -> str:
    return ", ".join(f"{prefix}_{column}" for column in ADDRESS.split(", "))


COLUMNS = {
    "warehouse": f"w_id integer!, w_name varchar(10)!, {_address('w')}, w_tax numeric(4,4)!, w_ytd numeric(16,2)!",
    "district": "d_w_id integer!, d_next_o_id integer!, d_id smallint!, d_ytd numeric(12,2)!, d_tax numeric(4,4)!, "
    f"d_name varchar(10)!, {_address('d')}",
    "customer": "c_since timestamptz!, c_id integer!, c_w_id integer!, c_d_id smallint!, c_payment_cnt smallint!, "
    "c_delivery_cnt smallint!, c_first varchar(16)!, c_middle char(2)!, c_last varchar(16)!, "
    f"{_address('c')}, c_phone char(16)!, c_credit char(2)!, c_credit_lim numeric(12,2)!, c_discount numeric(4,4)!, "
    "c_balance numeric(12,2)!, c_ytd_payment numeric(12,2)!, c_data varchar(500)!",
    "history": "h_date timestamptz!, h_c_id integer, h_c_w_id integer!, h_w_id integer!, h_c_d_id smallint!, "
    "h_d_id smallint!, h_amount numeric(6,2)!, h_data varchar(24)!",
    "item": "i_id integer!, i_im_id integer!, i_name varchar(24)!, i_price numeric(5,2)!, i_data varchar(50)!",
    "stock": "s_i_id integer!, s_w_id integer!, s_ytd integer!, s_quantity smallint!, s_order_cnt smallint!, "
    f"s_remote_cnt smallint!, {DISTS}, s_data varchar(50)!",
    "new_order": "no_w_id integer!, no_o_id integer!, no_d_id smallint!",
    "orders": "o_entry_d timestamptz!, o_id integer!, o_w_id integer!, o_c_id integer!, o_d_id smallint!, "
    "o_carrier_id smallint, o_ol_cnt smallint!, o_all_local smallint!",
    "order_line": "ol_delivery_d timestamptz, ol_o_id integer!, ol_w_id integer!, ol_i_id integer!, "
    "ol_supply_w_id integer!, ol_d_id smallint!, ol_number smallint!, ol_quantity smallint!, ol_amount numeric(6,2), "
    "ol_dist_info char(24)",
}
"""HammerDB's, in its order; ``!`` is NOT NULL."""
INDEXES = {
    "warehouse_i1": "w_id",
    "district_i1": "d_w_id, d_id",
    "customer_i1": "c_w_id, c_d_id, c_id",
    "customer_i2": "c_w_id, c_d_id, c_last, c_first, c_id",
    "item_i1": "i_id",
    "stock_i1": "s_i_id, s_w_id",
    "new_order_i1": "no_w_id, no_d_id, no_o_id",
    "orders_i1": "o_w_id, o_d_id, o_id",
    "orders_i2": "o_w_id, o_d_id, o_c_id, o_id",
    "order_line_i1": "ol_w_id, ol_d_id, ol_o_id, ol_number",
}


def test_columns_and_indexes_are_hammerdbs(hammerdb: Database, spec: Database) -> None:
    query = """
        SELECT relname, string_agg(attname || ' ' || format_type(atttypid, atttypmod)
            || CASE WHEN attnotnull THEN '!' ELSE '' END, ', ' ORDER BY attnum)
        FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
        WHERE relnamespace = 'pgdyno_tpcc'::regnamespace AND relkind = 'r' AND attnum > 0 GROUP BY relname"""
    names = {"character varying": "varchar", "character(": "char(", "timestamp with time zone": "timestamptz"}
    for database in (hammerdb, spec):
        result = dict(database.rows(query))
        for table, columns in result.items():
            for long, short in names.items():
                columns = columns.replace(long, short)
            assert columns == COLUMNS[table]
        assert result.keys() == COLUMNS.keys()
    query = """
        SELECT c.relname, pg_get_indexdef(c.oid), c.reloptions, indisunique FROM pg_index JOIN pg_class c ON c.oid = indexrelid
        WHERE c.relnamespace = 'pgdyno_tpcc'::regnamespace"""
    for database, other in ((hammerdb, {}), (spec, {"stock_i1": "s_w_id, s_i_id"})):
        rows = database.rows(query)
        assert {row[0]: row[1].partition("btree (")[2].rstrip(")") for row in rows} == INDEXES | other
        assert all(row[2] is None and row[3] for row in rows)
    assert hammerdb.rows("SELECT 1 FROM pg_constraint WHERE contype = 'f'") == []
    assert len(spec.rows("SELECT 1 FROM pg_constraint WHERE contype = 'f'")) == 10


def test_counts_of_rows_and_conditions_hold_after_a_load(hammerdb: Database, spec: Database) -> None:
    counts = {"warehouse": 1, "district": 10, "customer": 30_000, "history": 30_000, "item": 100_000, "stock": 100_000,
        "new_order": 9_000, "orders": 30_000}  # fmt: skip
    for database, broken in ((hammerdb, {10, 12}), (spec, set[int]())):
        for table, count in counts.items():
            assert database.rows(f"SELECT count(*) FROM pgdyno_tpcc.{table}") == [(count,)]
        ((lines,),) = database.rows("SELECT count(*) FROM pgdyno_tpcc.order_line")
        # The standard deviation of 30,000 draws of 5 to 15 is 548.
        assert abs(lines - 300_000) < 4 * 548
        with psycopg.connect(database.dsn) as connection:
            assert {item.number for item in CONDITIONS if item.violations(connection)} == broken
            holding = conditions_of("hammerdb" if broken else "spec", loaded=True)
            assert list(violated(connection, holding)) == []


def test_values_follow_their_laws(hammerdb: Database, spec: Database) -> None:
    of_customers = """
        SELECT avg((c_credit = 'BC')::int), max(c_discount), min(c_balance), count(DISTINCT c_last),
            bool_and(c_data ~ '^[0-9A-Za-z]*$' AND length(c_data) BETWEEN 300 AND 500), bool_and(c_zip ~ '^[0-9]{4}1{5}$') FROM pgdyno_tpcc.customer"""
    # Four standard errors of 30,000 draws are 1.2 points at 50 %, 0.7 at 10 %.
    bad, discount, balance, names, data, code = hammerdb.rows(of_customers)[0]
    assert abs(float(bad) - 0.5) < 0.012
    assert (float(discount), float(balance), names, data, code) == (0.5, -10.0, 1000, True, True)
    bad, discount, *_ = spec.rows(of_customers)[0]
    assert abs(float(bad) - 0.1) < 0.007
    assert 0.49 < float(discount) <= 0.5
    of_orders = "SELECT avg(n) FROM (SELECT count(DISTINCT o_c_id) n FROM pgdyno_tpcc.orders GROUP BY o_d_id) d"
    assert spec.rows(of_orders) == [(3000,)]
    # 1,500.5 of 3,000 are expected; a district varies by less than 30, the mean of ten by less than 10.
    assert abs(float(hammerdb.rows(of_orders)[0][0]) - 1500.5) < 40
    marked = "SELECT avg((s_data LIKE '%{}%')::int) FROM pgdyno_tpcc.stock"
    assert abs(float(hammerdb.rows(marked.format("original"))[0][0]) - 0.0952) < 0.004
    assert abs(float(spec.rows(marked.format("ORIGINAL"))[0][0]) - 0.1) < 0.004
    taxes = "SELECT w_tax BETWEEN 0.1 AND 0.2 FROM pgdyno_tpcc.warehouse"
    assert hammerdb.rows(taxes) == [(True,)]


def test_a_warehouse_takes_the_room_that_is_expected(hammerdb: Database) -> None:
    of_tables = """
        SELECT sum(pg_total_relation_size(oid)) FROM pg_class
        WHERE relnamespace = 'pgdyno_tpcc'::regnamespace AND relkind = 'r'"""
    assert float(hammerdb.rows(of_tables)[0][0]) == pytest.approx(TpccTables(1).size_bytes, rel=0.1)
    assert TpccTables(3).size_bytes - TpccTables(2).size_bytes == TPCC_BYTES_PER_WAREHOUSE


def test_hammerdbs_batches_leave_the_same_tables(hammerdb: Database, cluster: Cluster) -> None:
    with cluster.connect() as connection:
        connection.execute("CREATE DATABASE batches")
    mine = Database(cluster, "batches")
    ids = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    begun = int(mine.rows(ids)[0][0])
    loaded = fill(mine, TpccTables(1), connections=2, manner="hammerdb")
    ended = int(mine.rows(ids)[0][0])
    for table in COLUMNS:
        order = INDEXES.get(f"{table}_i1", "h_w_id, h_d_id, h_c_id")
        name = f"pgdyno_tpcc.{table}"
        assert mine.digest(name, order) == hammerdb.digest(name, order), table
        assert loaded.rows[name] == mine.rows(f"SELECT count(*) FROM {name}")[0][0]
    indexes = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'pgdyno_tpcc'::regnamespace AND relkind = 'i' ORDER BY 1"
    )
    assert mine.rows(indexes) == hammerdb.rows(indexes)
    # 762 commits of the warehouse and one of the items; beside these schema, tables, keys, indexes, routines, comment and analyze.
    assert 763 + 30 <= ended - begun <= 763 + 60


def test_only_what_is_pgdynos_is_dropped(hammerdb: Database, clone: Callable[[Database], Database]) -> None:
    mine = clone(hammerdb)
    with pytest.raises(InputError, match="already exists"):
        fill(mine, TpccTables(1), replace=False)
    mine.run("CREATE TABLE orders (a int)")
    mine.run("CREATE TABLE pgdyno_tpcc.mine (a int)")
    with pytest.raises(InputError, match="cannot drop schema pgdyno_tpcc"):
        drop(mine, TpccTables(1))
    assert mine.rows("SELECT count(*) FROM pgdyno_tpcc.warehouse") == [(1,)]
    mine.run("DROP TABLE pgdyno_tpcc.mine")
    drop(mine, TpccTables(1))
    drop(mine, TpccTables(1))
    assert mine.tables() == ["orders"]
    assert mine.rows("SELECT 1 FROM pg_namespace WHERE nspname = 'pgdyno_tpcc'") == []


def test_a_load_that_is_not_what_it_is_called_is_refused(spec: Database, clone: Callable[[Database], Database]) -> None:
    """The question that every load ends with, asked of tables that were changed."""
    wrong = clone(spec)
    require_whole(wrong, TpccTables(1, "spec"))
    with psycopg.connect(wrong.dsn) as connection:
        connection.execute("INSERT INTO pgdyno_tpcc.new_order (no_w_id, no_d_id, no_o_id) VALUES (1, 4, 2100)")
    with pytest.raises(PgdynoError, match=r"condition 11 .* fails at 1/4"):
        require_whole(wrong, TpccTables(1, "spec"))
