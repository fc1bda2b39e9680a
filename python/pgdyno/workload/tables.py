"""Tables that a workload begins with: their rows, their size on a volume, their checks, and the schema that HammerDB builds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pgdyno.workload.tpcc_conditions import (
    PUBLIC,
    TPCC_SCHEMA,
    TpccProfile,
    conditions_of,
    drawn_warehouses,
    violated,
)

from ..base.errors import InputError
from .generated import TPCH_MEMORY_BYTES

if TYPE_CHECKING:
    import psycopg


Keys = Literal["special", "uniform", "gaussian", "pareto"]
TpccRoutines = Literal["functions", "procedures", "statements"]
TpchProfile = Literal["hammerdb", "spec"]
TPCH_SCHEMA: Final = "pgdyno_tpch"
"""The schema of the tables that are derived from TPC-H."""

ROWS_PER_SCALE = {"pgbench_branches": 1, "pgbench_tellers": 10, "pgbench_accounts": 100_000}
"""Rows for each unit of the scale factor; ``pgbench_history`` begins empty."""

BYTES_PER_SCALE = 16 << 20
"""pgbench's tables with their indexes, measured at scales 10 to 200 with fill factor 100."""

ROWS_EACH_MAX = 2**31 - 1
"""Rows of one of sysbench's tables: their id is an integer."""

_PAGE_BYTES = 8192
_SBTEST_ROWS_PER_PAGE = 37
"""A row has a header of 24 bytes, two integers, 121 and 61 bytes of text with their lengths: 214, aligned to 216, and 4
for its place in a page of 8,168 (PostgreSQL 18, "Database Page Layout")."""
_KEY_ENTRIES_PER_PAGE = 366
"""Entries of 16 bytes and 4 for their place in 8,152 bytes of a leaf that is filled to 90 %."""
_SECONDARY_BYTES_PER_ROW = 10
"""The index on ``k``: equal values share an entry. Measured at 100,000 rows: 10 bytes (special) to 20 (uniform)."""
_TABLE_BYTES_LEAST = 64 << 10
"""Bytes of a table without rows: maps of free space and visibility, the indexes' first pages."""
STORED_PER_INPUT_BYTE = 2.6
"""Bytes of tables and indexes for each byte of a file: 1.28 of the heap and 1.3 of three indexes that are kept (measured, rows of
98 bytes); room that is asked for must suffice with indexes."""


@dataclass(frozen=True)
class PgbenchTables:
    """Those of ``pgbench -i``."""

    family: ClassVar[str] = "pgbench"
    filling_bytes: ClassVar[int] = 0

    scale: int
    """100,000 accounts each."""
    fillfactor: int = 100
    """Fill factor of accounts, tellers and branches, in per cent."""
    foreign_keys: bool = False
    tablespace: str | None = None
    """Tablespace of the tables; None: the database's own."""
    index_tablespace: str | None = None
    """Tablespace of the primary keys."""

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table; ``pgbench_history`` begins empty."""
        return {table: count * self.scale for table, count in ROWS_PER_SCALE.items()} | {"pgbench_history": 0}

    @property
    def size_bytes(self) -> int:
        """Tables with their indexes, about."""
        return self.scale * BYTES_PER_SCALE * 100 // self.fillfactor

    def document(self) -> dict[str, Any]:
        """In the input of ``pgdyno-engine fill``."""
        return {
            "pgbench": {
                "scale": self.scale,
                "fillfactor": self.fillfactor,
                "foreign_keys": self.foreign_keys,
                "tablespace": self.tablespace,
                "index_tablespace": self.index_tablespace,
            }
        }

    def __str__(self) -> str:
        """As a title has it."""
        return f"scale {self.scale}"

    def broken(self, connection: psycopg.Connection[tuple[Any, ...]]) -> Iterable[str]:
        """Faults of tables just loaded: nothing beyond the counts, which the loader compares."""
        return ()


@dataclass(frozen=True)
class SysbenchTables:
    """Those of sysbench's OLTP tests: ``sbtest1``, ``sbtest2``, ..."""

    family: ClassVar[str] = "sysbench"
    filling_bytes: ClassVar[int] = 0

    count: int
    """Number of tables."""
    rows_each: int
    """Rows of each."""
    auto_inc: bool = True
    """True if ids have a sequence; always so in the legacy script."""
    secondary_index: bool = True
    """True if there is an index on ``k``."""
    keys: Keys = "special"
    """Distribution of ``k``: sysbench's ``--rand-type``."""

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table."""
        return {f"sbtest{number}": self.rows_each for number in range(1, self.count + 1)}

    @property
    def size_bytes(self) -> int:
        """Tables with their indexes, about."""
        return self.count * _sbtest_bytes(self.rows_each, secondary_index=self.secondary_index)

    def document(self) -> dict[str, Any]:
        """In the input of ``pgdyno-engine fill``."""
        return {
            "sysbench": {
                "tables": self.count,
                "rows": self.rows_each,
                "auto_inc": self.auto_inc,
                "secondary_index": self.secondary_index,
                "keys": self.keys,
            }
        }

    def __str__(self) -> str:
        """As a title has it."""
        return f"{self.count} × {self.rows_each:,} rows"

    def broken(self, connection: psycopg.Connection[tuple[Any, ...]]) -> Iterable[str]:
        """As :meth:`PgbenchTables.broken`."""
        return ()


_TPCC_ROWS = {
    "order_line": 300_000, "stock": 100_000, "customer": 30_000, "orders": 30_000, "history": 30_000, "new_order": 9_000,
    "district": 10, "warehouse": 1,
}  # fmt: skip
"""Rows of a warehouse; lines of orders are drawn, so theirs is the mean."""
_TPCC_ITEMS = 100_000
TPCC_BYTES_PER_WAREHOUSE = 106 << 20
"""Tables with their keys and indexes; tests/tpcc/test_tables.py compares it with one warehouse."""
_TPCC_BYTES_OF_ITEMS = 12 << 20


@dataclass(frozen=True)
class TpccTables:
    """Those derived from TPC-C, with their routines."""

    family: ClassVar[str] = "tpcc"
    filling_bytes: ClassVar[int] = 0

    warehouses: int
    profile: TpccProfile = "hammerdb"
    routines: TpccRoutines = "functions"
    schema: str = TPCC_SCHEMA

    @property
    def built(self) -> bool:
        """True if HammerDB has built them."""
        return self.schema == PUBLIC

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table, about: lines of orders are drawn."""
        each = {f"{self.schema}.{table}": count * self.warehouses for table, count in _TPCC_ROWS.items()}
        return each | {f"{self.schema}.item": _TPCC_ITEMS}

    @property
    def size_bytes(self) -> int:
        """Tables with their indexes, about."""
        return self.warehouses * TPCC_BYTES_PER_WAREHOUSE + _TPCC_BYTES_OF_ITEMS

    @property
    def comment(self) -> str:
        """Comment of the schema, by which existing tables are recognised."""
        return f"pgdyno: derived from TPC-C; profile {self.profile}, {self.warehouses} warehouses, {self.routines}"

    def document(self) -> dict[str, Any]:
        """In the input of ``pgdyno-engine fill``."""
        return {"tpcc": {"warehouses": self.warehouses, "profile": self.profile, "routines": self.routines}}

    def __str__(self) -> str:
        """As a title has it."""
        many = "warehouse" if self.warehouses == 1 else "warehouses"
        return f"{self.warehouses:,} {many}, profile {self.profile}, {self.routines}"

    def broken(self, connection: psycopg.Connection[tuple[Any, ...]]) -> Iterable[str]:
        """The consistency conditions that tables just loaded violate; those of lines are asked of two warehouses."""
        conditions = conditions_of(self.profile, loaded=True)
        return violated(connection, conditions, drawn_warehouses(self.warehouses, self.warehouses), self.schema)


SUPPLIERS_PER_SCALE = 10_000
_TPCH_ROWS = {
    "lineitem": 6_001_215, "orders": 1_500_000, "partsupp": 800_000, "part": 200_000, "customer": 150_000,
    "supplier": SUPPLIERS_PER_SCALE,
}  # fmt: skip
"""Rows at scale factor 1; lines of orders at others are about as many by scale."""
_TPCH_ROWS_FIXED = {"nation": 25, "region": 5}
TPCH_BYTES_PER_SCALE: dict[TpchProfile, int] = {"hammerdb": 2_047 << 20, "spec": 1_546 << 20}
"""Tables with their keys and indexes at scale factor 1; tests/tpch/test_tables.py compares them with smaller ones."""


@dataclass(frozen=True)
class TpchTables:
    """Those derived from TPC-H, with dbgen's rows."""

    family: ClassVar[str] = "tpch"
    filling_bytes: ClassVar[int] = TPCH_MEMORY_BYTES

    scale_factor: float
    profile: TpchProfile = "hammerdb"
    schema: str = TPCH_SCHEMA

    @property
    def built(self) -> bool:
        """True if HammerDB has built them."""
        return self.schema == PUBLIC

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table, about: an order has one to seven lines."""
        each = {table: round(count * self.scale_factor) for table, count in _TPCH_ROWS.items()}
        return {f"{self.schema}.{table}": count for table, count in (each | _TPCH_ROWS_FIXED).items()}

    @property
    def size_bytes(self) -> int:
        """Tables with their indexes, about."""
        return round(self.scale_factor * TPCH_BYTES_PER_SCALE[self.profile]) + _TABLE_BYTES_LEAST

    @property
    def comment(self) -> str:
        """Comment of the schema, by which existing tables are recognised."""
        return f"pgdyno: derived from TPC-H; profile {self.profile}, scale factor {self.scale_factor:.6g}"

    def document(self) -> dict[str, Any]:
        """In the input of ``pgdyno-engine fill``."""
        return {"tpch": {"scale_factor": self.scale_factor, "profile": self.profile}}

    def __str__(self) -> str:
        """As a title has it."""
        return f"TPC-H's tables at scale factor {self.scale_factor:.6g}, profile {self.profile}"

    def broken(self, connection: psycopg.Connection[tuple[Any, ...]]) -> Iterable[str]:
        """Nothing is left to ask: keys and references were checked by the server, and the loader compares the counts."""
        return ()


@dataclass(frozen=True)
class BulkTables:
    """Those of a load that is measured: empty when it begins."""

    family: ClassVar[str] = "load"
    filling_bytes: ClassVar[int] = 0

    definitions: str
    """SQL that makes them; empty where the load makes them itself."""
    input_bytes: int
    """Approximate bytes of all files, uncompressed."""

    @property
    def size_bytes(self) -> int:
        """Estimate: bytes on the volume after the load, with indexes."""
        return round(self.input_bytes * STORED_PER_INPUT_BYTE)

    def __str__(self) -> str:
        """As a title has it."""
        return f"empty tables for {self.input_bytes / 2**20:,.0f} MiB of files"


SchemaTables = TpccTables | TpchTables
"""Tables in a schema of their own, which says in its comment what they are."""
Tables = PgbenchTables | SysbenchTables | SchemaTables
"""Tables that are filled before a run."""


def scale_for(size_bytes: float, fillfactor: int = 100) -> int:
    """The scale factor at which pgbench's tables with their indexes take about this number of bytes; at least 1."""
    return max(1, round(size_bytes * fillfactor / 100 / BYTES_PER_SCALE))


def sysbench_rows_for(size_bytes: float, tables: int, *, secondary_index: bool = True) -> int:
    """Rows of each of sysbench's tables so that all of them with their indexes take about this number of bytes; at least 1."""
    return max(1, int(size_bytes / tables / _sbtest_bytes_per_row(secondary_index=secondary_index)))


def warehouses_for(size_bytes: float) -> int:
    """The number of warehouses whose tables with their indexes take about this number of bytes; at least 1."""
    return max(1, round((size_bytes - _TPCC_BYTES_OF_ITEMS) / TPCC_BYTES_PER_WAREHOUSE))


def scale_factor_for(size_bytes: float, profile: TpchProfile) -> float:
    """The scale factor whose tables with their indexes take about this number of bytes, in hundredths; at least 0.01."""
    return max(1, round(100 * (size_bytes - _TABLE_BYTES_LEAST) / TPCH_BYTES_PER_SCALE[profile])) / 100


def size_for_memory(memory_bytes: int, data_to_memory: float) -> float:
    """Bytes of data that are this multiple of an instance's memory.

    A published data set is made smaller together with the memory that it met: what was cached then is cached now.
    """
    if data_to_memory <= 0:
        raise InputError(
            f"the data would be {data_to_memory:g} times the memory", remedy="give a ratio above 0, for example 2.5"
        )
    return memory_bytes * data_to_memory


def _sbtest_bytes(rows: int, *, secondary_index: bool) -> int:
    return _TABLE_BYTES_LEAST + int(rows * _sbtest_bytes_per_row(secondary_index=secondary_index))


def _sbtest_bytes_per_row(*, secondary_index: bool) -> float:
    heap, key = _PAGE_BYTES / _SBTEST_ROWS_PER_PAGE, _PAGE_BYTES / _KEY_ENTRIES_PER_PAGE
    return heap + key + (_SECONDARY_BYTES_PER_ROW if secondary_index else 0)


BY: Final = "HammerDB 6.0"
_PLACES = "{0}street_1 {0}street_2 {0}city {0}state {0}zip"
_DISTRICTS = " ".join(f"s_dist_{number:02}" for number in range(1, 11))
TPCC_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    table: tuple(columns.split())
    for table, columns in {
        "warehouse": f"w_id w_name {_PLACES.format('w_')} w_tax w_ytd",
        "district": f"d_w_id d_next_o_id d_id d_ytd d_tax d_name {_PLACES.format('d_')}",
        "customer": f"c_since c_id c_w_id c_d_id c_payment_cnt c_delivery_cnt c_first c_middle c_last {_PLACES.format('c_')}"
        " c_phone c_credit c_credit_lim c_discount c_balance c_ytd_payment c_data",
        "history": "h_date h_c_id h_c_w_id h_w_id h_c_d_id h_d_id h_amount h_data",
        "item": "i_id i_im_id i_name i_price i_data",
        "stock": f"s_i_id s_w_id s_ytd s_quantity s_order_cnt s_remote_cnt {_DISTRICTS} s_data",
        "new_order": "no_w_id no_o_id no_d_id",
        "orders": "o_entry_d o_id o_w_id o_c_id o_d_id o_carrier_id o_ol_cnt o_all_local",
        "order_line": "ol_delivery_d ol_o_id ol_w_id ol_i_id ol_supply_w_id ol_d_id ol_number ol_quantity ol_amount ol_dist_info",
    }.items()
}
"""Also in crates/dataset/src/tpcc/definitions.rs, with types."""
_ARGUMENTS: Final[dict[TpccRoutines, dict[str, int]]] = {
    "functions": {"neword": 6, "payment": 10, "delivery": 2, "slev": 3, "ostat": 5},
    "procedures": {"neword": 12, "payment": 33, "delivery": 3, "slev": 4, "ostat": 12},
}


def routine_arguments(routines: TpccRoutines) -> dict[str, int]:
    """Arguments of each routine; crates/workload/src/kind/tpcc/built.rs calls them."""
    return _ARGUMENTS[routines]
