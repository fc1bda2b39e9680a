"""The eight files of ``pgdyno data generate tpch``: how large they are, and tables that take them.

Columns and types are those of the TPC-H specification (clause 1.4, ``decimal`` as ``decimal(15, 2)``); there is neither a key
nor an index: for others use ``definitions``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.workload.generated import GeneratedSet

SCALE_LEAST = 0.001
SCALE_MOST = 1000
"""1.1 TB of files. Both bounds, and that scales are whole thousandths, are also in crates/dataset/src/tpch/scale.rs."""
MEMORY_BYTES = 400 << 20
"""For dbgen's pool of text (300 MiB, whatever the scale), and blocks of 256 KiB that wait to be written; a test compares it."""
_INTEGER_SCALE_MOST = 300
"""The largest of the specification's scale factors whose keys of orders (four times their number) fit into an integer."""

COLUMNS: dict[str, str] = {
    "customer": "c_custkey integer, c_name varchar(25), c_address varchar(40), c_nationkey integer, c_phone char(15),"
    " c_acctbal decimal(15, 2), c_mktsegment char(10), c_comment varchar(117)",
    "lineitem": "l_orderkey {orderkey}, l_partkey integer, l_suppkey integer, l_linenumber integer,"
    " l_quantity decimal(15, 2), l_extendedprice decimal(15, 2), l_discount decimal(15, 2), l_tax decimal(15, 2),"
    " l_returnflag char(1), l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date,"
    " l_shipinstruct char(25), l_shipmode char(10), l_comment varchar(44)",
    "nation": "n_nationkey integer, n_name char(25), n_regionkey integer, n_comment varchar(152)",
    "orders": "o_orderkey {orderkey}, o_custkey integer, o_orderstatus char(1), o_totalprice decimal(15, 2),"
    " o_orderdate date, o_orderpriority char(15), o_clerk char(15), o_shippriority integer, o_comment varchar(79)",
    "part": "p_partkey integer, p_name varchar(55), p_mfgr char(25), p_brand char(10), p_type varchar(25),"
    " p_size integer, p_container char(10), p_retailprice decimal(15, 2), p_comment varchar(23)",
    "partsupp": "ps_partkey integer, ps_suppkey integer, ps_availqty integer, ps_supplycost decimal(15, 2),"
    " ps_comment varchar(199)",
    "region": "r_regionkey integer, r_name char(25), r_comment varchar(152)",
    "supplier": "s_suppkey integer, s_name char(25), s_address varchar(40), s_nationkey integer, s_phone char(15),"
    " s_acctbal decimal(15, 2), s_comment varchar(101)",
}
"""Table -> its columns, none of which is ever NULL."""

_BYTES: dict[str, float] = {
    "customer": 24_346_144,
    "lineitem": 759_863_287,
    "nation": 2_224,
    "orders": 171_952_161,
    "part": 24_135_125,
    "partsupp": 118_984_616,
    "region": 389,
    "supplier": 1_409_184,
}
"""dbgen's files at scale 1."""


def column_names() -> dict[str, tuple[str, ...]]:
    """The names of each table's columns, in the order of its file."""
    # The comma of decimal(15, 2) separates no columns: their names have an underscore.
    return {
        table: tuple(part.split()[0] for part in columns.split(", ") if "_" in part)
        for table, columns in COLUMNS.items()
    }


def definitions(tables: Sequence[str], scale: float) -> str:
    """SQL that makes the tables."""
    orderkey = "integer" if scale <= _INTEGER_SCALE_MOST else "bigint"
    return "\n".join(f"CREATE TABLE {table} ({_columns(table, orderkey)});" for table in tables)


def _columns(table: str, orderkey: str) -> str:
    # The comma of decimal(15, 2) separates no columns: those begin with their table's letters.
    prefix = "ps_" if table == "partsupp" else f"{table[0]}_"
    return f"{COLUMNS[table].format(orderkey=orderkey).replace(f', {prefix}', f' NOT NULL, {prefix}')} NOT NULL"


def repeats_suppliers(scale: float) -> bool:
    """Whether some part has one supplier twice at that scale, as clause 4.2.3 has it; also in crates/dataset/src/tpch/scale.rs."""
    suppliers = round(10_000 * scale)
    return any(step * (suppliers // 4 + lap) % suppliers == 0 for lap in range(20) for step in (1, 2, 3))


SET = GeneratedSet(
    name="tpch",
    files={table: table for table in COLUMNS},
    bytes_at_1=_BYTES,
    scale_most=SCALE_MOST,
    definitions=definitions,
    scale_step=SCALE_LEAST,
    seeded=False,
    engine_options=("--for-copy",),
    memory_bytes=MEMORY_BYTES,
    loaded_as={"format": "text", "delimiter": "|", "header": False},
)
