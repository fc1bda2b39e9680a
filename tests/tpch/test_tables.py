"""The tables are what they are called: columns, keys, indexes, references and rows of both profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from pgdyno.workload.fill import drop, fill
from pgdyno.workload.tables import TPCH_BYTES_PER_SCALE, TpchTables, scale_factor_for

from ..fill.filled import Database
from .conftest import SCALE_FACTOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgdyno.server.cluster import Cluster

HAMMERDB = {
    "orders": "o_orderdate ts, o_orderkey n!, o_custkey n!, o_orderpriority c15, o_shippriority n, o_clerk c15, "
    "o_orderstatus c1, o_totalprice n, o_comment v79",
    "partsupp": "ps_partkey n!, ps_suppkey n!, ps_supplycost n!, ps_availqty n, ps_comment v199",
    "customer": "c_custkey n!, c_mktsegment c10, c_nationkey n, c_name v25, c_address v40, c_phone c15, c_acctbal n, "
    "c_comment v118",
    "part": "p_partkey n!, p_type v25, p_size n, p_brand c10, p_name v55, p_container c10, p_mfgr c25, p_retailprice n, "
    "p_comment v23",
    "supplier": "s_suppkey n!, s_nationkey n, s_comment v102, s_name c25, s_address v40, s_phone c15, s_acctbal n",
    "nation": "n_nationkey n!, n_name c25, n_regionkey n, n_comment v152",
    # Its primary key makes the column NOT NULL.
    "region": "r_regionkey n!, r_name c25, r_comment v152",
    "lineitem": "l_shipdate ts, l_orderkey n!, l_discount n!, l_extendedprice n!, l_suppkey n!, l_quantity n!, "
    "l_returnflag c1, l_partkey n!, l_linestatus c1, l_tax n!, l_commitdate ts, l_receiptdate ts, l_shipmode c10, "
    "l_linenumber n!, l_shipinstruct c25, l_comment v44",
}
"""HammerDB's columns in its order; ``!`` is NOT NULL."""
SPEC = {
    "lineitem": "l_orderkey i!, l_partkey i!, l_suppkey i!, l_linenumber i!, l_quantity d!, l_extendedprice d!, "
    "l_discount d!, l_tax d!, l_returnflag c1!, l_linestatus c1!, l_shipdate date!, l_commitdate date!, "
    "l_receiptdate date!, l_shipinstruct c25!, l_shipmode c10!, l_comment v44!",
    "orders": "o_orderkey i!, o_custkey i!, o_orderstatus c1!, o_totalprice d!, o_orderdate date!, o_orderpriority c15!, "
    "o_clerk c15!, o_shippriority i!, o_comment v79!",
    "partsupp": "ps_partkey i!, ps_suppkey i!, ps_availqty i!, ps_supplycost d!, ps_comment v199!",
    "part": "p_partkey i!, p_name v55!, p_mfgr c25!, p_brand c10!, p_type v25!, p_size i!, p_container c10!, "
    "p_retailprice d!, p_comment v23!",
    "customer": "c_custkey i!, c_name v25!, c_address v40!, c_nationkey i!, c_phone c15!, c_acctbal d!, c_mktsegment c10!, "
    "c_comment v117!",
    "supplier": "s_suppkey i!, s_name c25!, s_address v40!, s_nationkey i!, s_phone c15!, s_acctbal d!, s_comment v101!",
    "nation": "n_nationkey i!, n_name c25!, n_regionkey i!, n_comment v152!",
    "region": "r_regionkey i!, r_name c25!, r_comment v152!",
}
TYPES = {
    "timestamp without time zone": "ts", "numeric(15,2)": "d", "numeric": "n", "integer": "i", "date": "date",
}  # fmt: skip
KEYS = {
    "region": "r_regionkey", "nation": "n_nationkey", "supplier": "s_suppkey", "partsupp": "ps_partkey, ps_suppkey",
    "part": "p_partkey", "orders": "o_orderkey", "customer": "c_custkey", "lineitem": "l_orderkey, l_linenumber",
}  # fmt: skip
INDEXES = {
    "l_partkey, l_suppkey", "o_custkey", "ps_partkey", "ps_suppkey", "s_nationkey", "c_nationkey", "n_regionkey",
    "l_orderkey",
}  # fmt: skip
REFERENCES = {
    ("lineitem", "l_partkey, l_suppkey", "partsupp"), ("lineitem", "l_orderkey", "orders"),
    ("orders", "o_custkey", "customer"), ("partsupp", "ps_partkey", "part"), ("partsupp", "ps_suppkey", "supplier"),
    ("supplier", "s_nationkey", "nation"), ("customer", "c_nationkey", "nation"), ("nation", "n_regionkey", "region"),
}  # fmt: skip
ROWS = {
    "lineitem": 60_175, "orders": 15_000, "partsupp": 8_000, "part": 2_000, "customer": 1_500, "supplier": 100,
    "nation": 25, "region": 5,
}  # fmt: skip
"""dbgen's at scale factor 0.01."""
COLUMNS_ASKED = """
SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull
FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
WHERE relnamespace = 'pgdyno_tpch'::regnamespace AND relkind = 'r' AND attnum > 0 ORDER BY relname, attnum"""
INDEXES_ASKED = """
SELECT t.relname, pg_get_indexdef(indexrelid), indisprimary FROM pg_index
JOIN pg_class t ON t.oid = indrelid WHERE t.relnamespace = 'pgdyno_tpch'::regnamespace"""
REFERENCES_ASKED = """
SELECT conrelid::regclass::text, pg_get_constraintdef(oid), condeferrable, convalidated FROM pg_constraint
WHERE contype = 'f' AND connamespace = 'pgdyno_tpch'::regnamespace"""


def _short(kind: str) -> str:
    for long, letter in (("character varying", "v"), ("character", "c")):
        if kind.startswith(long):
            return letter + kind.removeprefix(long).strip("()")
    return TYPES[kind]


def test_columns_keys_indexes_and_references_are_those_of_the_profile(hammerdb: Database, spec: Database) -> None:
    for database, columns in ((hammerdb, HAMMERDB), (spec, SPEC)):
        texts: dict[str, list[str]] = {}
        for table, name, kind, not_null in database.rows(COLUMNS_ASKED):
            texts.setdefault(table, []).append(f"{name} {_short(kind)}{'!' if not_null else ''}")
        assert {table: ", ".join(each) for table, each in texts.items()} == columns
        rows = database.rows(INDEXES_ASKED)
        of = [(table, text.partition("btree (")[2].rstrip(")"), primary) for table, text, primary in rows]
        ours = database is hammerdb
        keys = KEYS | ({"lineitem": "l_linenumber, l_orderkey"} if ours else {})
        assert {table: text for table, text, primary in of if primary} == keys
        # What a primary key begins with has no further index in the profile spec.
        further = INDEXES if ours else INDEXES - {"ps_partkey", "l_orderkey"}
        assert sorted(text for _, text, primary in of if not primary) == sorted(further)
        references = database.rows(REFERENCES_ASKED)
        assert {
            (
                table.removeprefix("pgdyno_tpch."),
                text.partition("(")[2].partition(")")[0],
                text.partition("REFERENCES ")[2].partition("(")[0].removeprefix("pgdyno_tpch."),
            )
            for table, text, _, _ in references
        } == REFERENCES
        assert all(holds for *_, holds in references)
        deferred = {text.partition("REFERENCES ")[2].partition("(")[0] for _, text, late, _ in references if late}
        assert deferred == ({"pgdyno_tpch.orders"} if ours else set())


def test_rows_are_dbgens_and_the_same_in_both_profiles(hammerdb: Database, spec: Database) -> None:
    for table, count in ROWS.items():
        assert hammerdb.rows(f"SELECT count(*) FROM pgdyno_tpch.{table}") == [(count,)]
        # As text, dates without an hour and amounts with two decimals.
        names = ", ".join(
            f"{name}::date" if "date" in name else f"{name}::numeric(15,2)" if kind[0] in "di" else name
            for name, kind in (column.split() for column in SPEC[table].split(", "))
        )
        digest = f"SELECT sum(hashtextextended(t::text, 0)) FROM (SELECT {names} FROM pgdyno_tpch.{table}) t"
        assert hammerdb.rows(digest) == spec.rows(digest), table
    first = "SELECT l_partkey, l_extendedprice, l_shipdate::text, l_comment FROM pgdyno_tpch.lineitem WHERE l_orderkey = 1 AND l_linenumber = 1"
    ((part, price, shipped, _),) = spec.rows(first)
    # The part and the date are those of dbgen's first line at this scale.
    assert (part, str(price), shipped) == (1552, "24710.35", "1996-03-13")


def test_the_schema_says_what_is_in_it(hammerdb: Database, spec: Database) -> None:
    comment = "SELECT obj_description('pgdyno_tpch'::regnamespace, 'pg_namespace')"
    assert hammerdb.rows(comment) == [(TpchTables(SCALE_FACTOR, "hammerdb").comment,)]
    assert spec.rows(comment) == [(TpchTables(SCALE_FACTOR, "spec").comment,)]
    visible = "SELECT relname, relallvisible = relpages FROM pg_class WHERE oid = 'pgdyno_tpch.lineitem'::regclass"
    assert spec.rows(visible) == [("lineitem", True)], "vacuumed"


@pytest.mark.parametrize("profile", ["hammerdb", "spec"])
def test_the_tables_take_the_room_that_is_expected(request: pytest.FixtureRequest, profile: str) -> None:
    database: Database = request.getfixturevalue(profile)
    tables = TpchTables(SCALE_FACTOR, "spec" if profile == "spec" else "hammerdb")
    of_tables = """
        SELECT sum(pg_total_relation_size(oid)) FROM pg_class
        WHERE relnamespace = 'pgdyno_tpch'::regnamespace AND relkind = 'r'"""
    # Small tables have maps of free space and first pages of indexes beside their rows.
    assert float(database.rows(of_tables)[0][0]) == pytest.approx(tables.size_bytes, rel=0.1)
    size = 3 * TPCH_BYTES_PER_SCALE[tables.profile]
    assert scale_factor_for(size, tables.profile) == pytest.approx(3, abs=0.01)


def test_only_what_is_pgdynos_is_dropped(spec: Database, clone: Callable[[Database], Database]) -> None:
    mine, tables = clone(spec), TpchTables(SCALE_FACTOR, "spec")
    with pytest.raises(InputError, match="already exists"):
        fill(mine, tables, replace=False)
    mine.run("CREATE TABLE orders (a int)")
    mine.run("CREATE TABLE pgdyno_tpch.mine (a int)")
    with pytest.raises(InputError, match="cannot drop schema pgdyno_tpch"):
        drop(mine, tables)
    assert mine.rows("SELECT count(*) FROM pgdyno_tpch.region") == [(5,)]
    mine.run("DROP TABLE pgdyno_tpch.mine")
    drop(mine, tables)
    drop(mine, tables)
    assert mine.tables() == ["orders"]
    assert mine.rows("SELECT 1 FROM pg_namespace WHERE nspname = 'pgdyno_tpch'") == []


def test_every_reference_holds_at_ten_times_the_scale(cluster: Cluster) -> None:
    """Ports of dbgen err at fractions of scale 1: keys would be drawn that are not there, and the server looks each up."""
    with cluster.connect() as connection:
        connection.execute("CREATE DATABASE tenth")
    mine = Database(cluster, "tenth")
    loaded = fill(mine, TpchTables(0.1, "spec"))
    # dbgen's lines at this scale.
    assert loaded.rows["pgdyno_tpch.lineitem"] == 600_572
    assert loaded.rows["pgdyno_tpch.orders"] == 150_000
    references = mine.rows(REFERENCES_ASKED)
    assert len(references) == len(REFERENCES)
    assert all(holds for *_, holds in references)
    with cluster.connect() as connection:
        connection.execute("DROP DATABASE tenth WITH (FORCE)")


def test_hammerdbs_inserts_leave_the_same_tables(hammerdb: Database, cluster: Cluster) -> None:
    with cluster.connect() as connection:
        connection.execute("CREATE DATABASE inserted")
    mine = Database(cluster, "inserted")
    ids = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    begun = int(mine.rows(ids)[0][0])
    loaded = fill(mine, TpchTables(SCALE_FACTOR, "hammerdb"), connections=2, manner="hammerdb")
    ended = int(mine.rows(ids)[0][0])
    for table, count in ROWS.items():
        digest = f"SELECT count(*), sum(hashtextextended(t::text, 0)) FROM pgdyno_tpch.{table} t"
        assert mine.rows(digest) == hammerdb.rows(digest), table
        assert loaded.rows[f"pgdyno_tpch.{table}"] == count
    for text in (INDEXES_ASKED, REFERENCES_ASKED, COLUMNS_ASKED):
        assert sorted(mine.rows(text)) == sorted(hammerdb.rows(text))
    # A commit for each of 38 INSERTs; beside these schema, tables, keys, references, indexes, comment and analyze.
    assert 38 + 30 <= ended - begun <= 38 + 60


def test_a_scale_at_which_partsupp_has_no_primary_key_is_refused(spec: Database) -> None:
    with pytest.raises(InputError, match="gives some parts one supplier twice"):
        fill(spec, TpchTables(0.001, "spec"))
