"""What is compared: a workload, the original that defines it, and how each driver is told of it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pgdyno.kinds.tpcc.audit import MIX
from pgdyno.workload.tables import TpccTables

CLIENTS = 4
SCALE = 8
"""Of pgbench's tables, about 120 MB: more branches than clients, and three clones in shared buffers."""
TABLES = 4
ROWS = 25_000
"""Of sysbench's tables, about 25 MB."""
TPCC = "tpcc"
"""Five types of transaction derived from TPC-C, profile `hammerdb`, for which pgbench has scripts of ours."""
TPCC_SCRIPTS = Path(__file__).with_name("tpcc")
WAREHOUSES = 2
"""About 220 MB, so that three clones are in shared buffers; a client has one."""
_SIZE = (f"--tables={TABLES}", f"--table-size={ROWS}")
LEGACY_PLACES = (
    Path("/usr/share/sysbench/tests/include/oltp_legacy/oltp.lua"),
    Path("/usr/local/share/sysbench/tests/include/oltp_legacy/oltp.lua"),
)
"""Debian's package leaves the old scripts out; an installation from the sources of 1.0 has them."""
LEGACY_OWN = Path(__file__).with_name("legacy.lua")
"""The same transaction as a script for 1.0, where there is no old one: sysbench's machine with our words."""
LEGACY_VARIABLE = "PGDYNO_SYSBENCH_LEGACY"
"""Environment variable that names ``oltp.lua`` elsewhere."""


Original = Literal["pgbench", "sysbench"]
"""A program that defines workloads."""


@dataclass(frozen=True)
class Length:
    """How many clients work, and for how long: for so many seconds, or so many transactions of each."""

    clients: int
    seconds: int | None = None
    transactions: int | None = None


@dataclass(frozen=True)
class Workload:
    """A workload as both drivers know it."""

    name: str
    original: Original
    protocol: Literal["simple", "prepared"] = "prepared"
    mixed: bool = False
    """Whether a transaction is of a type that is drawn; otherwise all send the same statements."""

    @property
    def filled(self) -> TpccTables | None:
        """The tables that pgdyno fills; None where the original does."""
        return TpccTables(WAREHOUSES) if self.name == TPCC else None

    @property
    def template(self) -> str:
        """The database whose clone each run starts from."""
        if self.filled is not None:
            return "seed_tpcc"
        if self.original == "pgbench":
            return "seed_pgbench"
        return "seed_sysbench"

    def missing(self) -> str | None:
        """What this machine lacks for the original, or ``None``."""
        if self.original == "sysbench" and shutil.which("sysbench") is None:
            return "sysbench is not installed"
        return None

    def native(self, seed: int, length: Length) -> dict[str, Any]:
        """The driver's document, but for the server."""
        if self.name == TPCC:
            work: dict[str, Any] = {"tpcc": {"warehouses": WAREHOUSES, "all_warehouses": True}}
        elif self.original == "pgbench":
            work = {"pgbench": {"scripts": [{"builtin": self.name}], "scale": SCALE}}
        else:
            work = {"sysbench": {"test": self.name, "tables": TABLES, "rows": ROWS}}
        return {
            "workload": work,
            "clients": length.clients,
            "threads": 1,
            "protocol": self.protocol,
            "duration_ms": 1000 * (length.seconds or _LONG_S),
            "transactions_max": length.transactions,
            "seed": seed,
        }

    def command(self, pgbench: Path, seed: int, length: Length) -> list[str]:
        """The original's command line; the connection comes by libpq's variables, but sysbench's by :func:`connected`."""
        if self.original == "pgbench":
            ends = ["-t", str(length.transactions)] if length.seconds is None else ["-T", str(length.seconds)]
            return [
                *(str(pgbench), "-n", *self.scripts(), "-M", self.protocol, "-c", str(length.clients), "-j", "1"),
                *("--random-seed", str(seed), *ends),
            ]
        ends = [f"--time={length.seconds or 0}", f"--events={(length.transactions or 0) * length.clients}"]
        return [
            *("sysbench", *self.tables(), f"--threads={length.clients}", f"--rand-seed={seed}", *ends),
            f"--db-ps-mode={'disable' if self.protocol == 'simple' else 'auto'}",
            "run",
        ]

    def scripts(self) -> list[str]:
        """The arguments of pgbench for its scripts: a built-in one, or files with the weights of a deck."""
        if self.name != TPCC:
            return ["-b", self.name]
        files = [word for name, weight in MIX for word in ("-f", f"{TPCC_SCRIPTS / name}.sql@{weight}")]
        return [*files, "-D", f"warehouses={WAREHOUSES}"]

    def prepare(self) -> list[str]:
        """The test that makes the tables: one for all of them."""
        return ["oltp_read_write", *_SIZE]

    def tables(self) -> list[str]:
        """The test and the size of its tables, as sysbench takes them."""
        if self.name != "legacy":
            return [self.name, *_SIZE]
        script = legacy_script()
        if script == LEGACY_OWN:
            return [str(script), *_SIZE]
        return [str(script), f"--oltp-tables-count={TABLES}", f"--oltp-table-size={ROWS}"]


WORKLOADS = (
    Workload("tpcb-like", "pgbench"),
    Workload("simple-update", "pgbench"),
    Workload("select-only", "pgbench"),
    Workload(TPCC, "pgbench", mixed=True),
    Workload("oltp_read_write", "sysbench"),
    Workload("oltp_point_select", "sysbench"),
    Workload("legacy", "sysbench", "simple"),
)
_LONG_S = 600
"""A run of so many transactions is over long before."""


def legacy_script() -> Path:
    """The ``oltp.lua`` of sysbench before 1.0 if it is there, else ours."""
    named = os.environ.get(LEGACY_VARIABLE)
    return next((path for path in ((Path(named),) if named else LEGACY_PLACES) if path.is_file()), LEGACY_OWN)


def connected(dsn: dict[str, str], dbname: str) -> list[str]:
    """A connection in the words of sysbench, which takes none from the environment."""
    return [
        "--db-driver=pgsql",
        f"--pgsql-host={dsn['host']}",
        f"--pgsql-port={dsn['port']}",
        f"--pgsql-user={dsn['user']}",
        "--pgsql-password=",
        f"--pgsql-db={dbname}",
    ]
