"""Data sets that ``pgdyno data generate`` makes as files, imdb and tpch: their tables, sizes and definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GZIP_SHARE = 0.46
"""Largest share that gzip leaves of generated files: 0.44 of imdb's at scale 0.01, 0.451 of tpch's at scale 1."""
_ROUNDING = 1e-6
"""How far from a multiple of the step a number may be that was meant to be one."""


@dataclass(frozen=True)
class GeneratedSet:
    """Facts of a data set that a load needs."""

    name: str
    """As ``pgdyno data generate`` calls it."""
    files: Mapping[str, str]
    """Table -> the file that is loaded into it, without its suffix."""
    bytes_at_1: Mapping[str, float]
    """Table -> bytes of its file at scale 1, about; it only feeds estimates."""
    scale_most: float
    definitions: Callable[[Sequence[str], float], str]
    """SQL that makes tables for a scale."""
    scale_step: float | None = None
    """The least scale, of which all others are multiples. None: any above 0."""
    seeded: bool = True
    """True if its values derive from a seed."""
    engine_options: tuple[str, ...] = ()
    """Options that make the files such that COPY takes them."""
    memory_bytes: int = 0
    """Memory for making the files, beside the files."""
    loaded_as: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`pgdyno.loader.LoadOptions` that the files need."""

    def input_bytes(self, tables: Iterable[str], scale: float) -> int:
        """Bytes of the tables' files before any compression, about."""
        return round(sum(self.bytes_at_1[table] for table in tables) * scale)

    def tables_of(self, files: Iterable[str]) -> list[str]:
        """The tables of files, named with or without their suffixes; of all files if there are none."""
        named = {name.removesuffix(".gz").removesuffix(".tbl").removesuffix(".tsv") for name in files}
        return [table for table, file in self.files.items() if not named or file in named]

    def arguments(
        self, scale: float, out: Path, files: Iterable[str] = (), *, seed: int | None = None, gzip: bool = False
    ) -> list[str]:
        """Arguments of ``pgdyno-engine generate``. A ``seed`` is left out where no value derives from one."""
        texts = [f"--scale={scale!r}", f"--out={out}", *(f"--file={name}" for name in files)]
        texts += [f"--seed={seed}"] if self.seeded else []
        return texts + (["--gzip"] if gzip else [])

    def refusal(self, scale: float) -> str | None:
        """Reason why there is no such scale; None if there is."""
        if scale > self.scale_most:
            return f"scale = {scale:g}: {self.name} is made at up to {self.scale_most:g}"
        steps = 1 if self.scale_step is None else scale / self.scale_step
        if round(steps) >= 1 and abs(steps - round(steps)) < _ROUNDING:
            return None
        return f"scale = {scale:g}: {self.name} is made at multiples of {self.scale_step:g}"


IMDB_COLUMNS: dict[str, tuple[str, ...]] = {
    "name.basics": ("nconst", "primaryName", "birthYear", "deathYear", "primaryProfession", "knownForTitles"),
    "title.akas": (
        "titleId",
        "ordering",
        "title",
        "region",
        "language",
        "types",
        "attributes",
        "isOriginalTitle",
    ),
    "title.basics": (
        "tconst",
        "titleType",
        "primaryTitle",
        "originalTitle",
        "isAdult",
        "startYear",
        "endYear",
        "runtimeMinutes",
        "genres",
    ),
    "title.crew": ("tconst", "directors", "writers"),
    "title.episode": ("tconst", "parentTconst", "seasonNumber", "episodeNumber"),
    "title.principals": ("tconst", "ordering", "nconst", "category", "job", "characters"),
    "title.ratings": ("tconst", "averageRating", "numVotes"),
}
"""File -> its header (docs/reference/imdb.md has where it comes from)."""

_IMDB_BYTES: dict[str, float] = {
    "name.basics": 15_122_182 * 60,
    "title.akas": 55_294_765 * 48,
    "title.basics": 12_323_467 * 84,
    "title.crew": 12_325_801 * 32,
    "title.episode": 9_514_619 * 25,
    "title.principals": 98_073_271 * 43,
    "title.ratings": 1_641_397 * 17,
}
"""Rows at scale 1 times bytes of a row, about (docs/reference/imdb.md); it only feeds estimates."""

IMDB_TABLES: dict[str, str] = {file.replace(".", "_"): file for file in IMDB_COLUMNS}
"""Table -> the file that is loaded into it."""


def imdb_definitions(tables: Sequence[str], scale: float) -> str:
    """SQL that makes the tables, at any scale."""
    del scale
    return "\n".join(f"CREATE TABLE {table} ({_imdb_columns(IMDB_TABLES[table])});" for table in tables)


def _imdb_columns(file: str) -> str:
    return ", ".join(f'"{name}" text' for name in IMDB_COLUMNS[file])


IMDB = GeneratedSet(
    name="imdb",
    files=IMDB_TABLES,
    bytes_at_1={table: _IMDB_BYTES[file] for table, file in IMDB_TABLES.items()},
    scale_most=10,
    definitions=imdb_definitions,
)


SCALE_LEAST = 0.001
SCALE_MOST = 1000
"""1.1 TB of files. Both bounds, and that scales are whole thousandths, are also in crates/dataset/src/tpch/scale.rs."""
TPCH_MEMORY_BYTES = 400 << 20
"""For dbgen's pool of text (300 MiB, whatever the scale), and blocks of 256 KiB that wait to be written; a test compares it."""
_INTEGER_SCALE_MOST = 300
"""The largest of the specification's scale factors whose keys of orders (four times their number) fit into an integer."""

TPCH_COLUMNS: dict[str, str] = {
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

_TPCH_BYTES: dict[str, float] = {
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
        for table, columns in TPCH_COLUMNS.items()
    }


def tpch_definitions(tables: Sequence[str], scale: float) -> str:
    """SQL that makes the tables."""
    orderkey = "integer" if scale <= _INTEGER_SCALE_MOST else "bigint"
    return "\n".join(f"CREATE TABLE {table} ({_tpch_columns(table, orderkey)});" for table in tables)


def _tpch_columns(table: str, orderkey: str) -> str:
    # The comma of decimal(15, 2) separates no columns: those begin with their table's letters.
    prefix = "ps_" if table == "partsupp" else f"{table[0]}_"
    return f"{TPCH_COLUMNS[table].format(orderkey=orderkey).replace(f', {prefix}', f' NOT NULL, {prefix}')} NOT NULL"


def repeats_suppliers(scale: float) -> bool:
    """True if some part has one supplier twice at that scale, as clause 4.2.3 has it; also in crates/dataset/src/tpch/scale.rs."""
    suppliers = round(10_000 * scale)
    return any(step * (suppliers // 4 + lap) % suppliers == 0 for lap in range(20) for step in (1, 2, 3))


TPCH = GeneratedSet(
    name="tpch",
    files={table: table for table in TPCH_COLUMNS},
    bytes_at_1=_TPCH_BYTES,
    scale_most=SCALE_MOST,
    definitions=tpch_definitions,
    scale_step=SCALE_LEAST,
    seeded=False,
    engine_options=("--for-copy",),
    memory_bytes=TPCH_MEMORY_BYTES,
    loaded_as={"format": "text", "delimiter": "|", "header": False},
)
