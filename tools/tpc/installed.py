"""A server with two databases: the schema that an installed HammerDB builds, and ours, with as many warehouses."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.base.endpoint import local
from pgdyno.base.errors import PgdynoError
from pgdyno.kinds.hammerdb.output import VERSION
from pgdyno.kinds.hammerdb.script import Login, opening, setting
from pgdyno.machine import hammerdb
from pgdyno.workload.fill import fill
from pgdyno.workload.server import Server
from pgdyno.workload.tables import TpccTables
from tools.tpc import loads

if TYPE_CHECKING:
    from pgdyno.base.endpoint import Endpoint
    from pgdyno.server.cluster import Cluster

WAREHOUSES = 2
THEIRS, OURS = "tpcc", "ours"
"""Names of the databases; HammerDB's is its default."""
_BUILD_S = 1800.0
"""Two warehouses take a minute and a half."""


@dataclass(frozen=True)
class Place(Server):
    """One of the databases."""

    cluster: Cluster
    name: str

    @property
    def dsn(self) -> str:
        """How it is reached."""
        return loads.dsn_of(self.cluster, self.name)

    @property
    def endpoint(self) -> Endpoint:
        """The same for the engine."""
        return local(self.dsn)

    @property
    def binaries(self) -> Any:
        """The server's programs."""
        return self.cluster.binaries


def build(cluster: Cluster) -> str:
    """Both schemas, each in a new database; HammerDB's version. :class:`PgdynoError` if HammerDB does not build its own."""
    program, login = hammerdb.program(), Login.of(Place(cluster, "postgres"))
    # One user builds all warehouses: by several, 4.12 with Tcl 8.6 did not come to an end.
    settings: dict[str, object] = {
        "pg_superuser": login.user, "pg_superuserpass": login.user, "pg_defaultdbase": "postgres",
        "pg_user": THEIRS, "pg_pass": THEIRS, "pg_dbase": THEIRS,
        "pg_count_ware": WAREHOUSES, "pg_num_vu": 1, "pg_storedprocs": False, "pg_partition": False,
    }  # fmt: skip
    lines = [*opening("TPC-C", login), *(setting("tpcc", key, value) for key, value in settings.items())]
    with tempfile.TemporaryDirectory(prefix="pgdyno-tpc-") as folder:
        script = Path(folder) / "build.tcl"
        script.write_text("\n".join([*lines, "buildschema", "vudestroy", "exit", ""]))
        own = dict.fromkeys(("TMP", "TMPDIR", "TEMP"), folder)
        done = subprocess.run(
            [program, "tcl", "auto", script], cwd=program.parent, env=os.environ | own, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=_BUILD_S,
        )  # fmt: skip
    match = VERSION.search(done.stdout)
    if "SCHEMA COMPLETE" not in done.stdout or match is None:
        raise PgdynoError(f"HammerDB did not build its schema: {done.stdout[-500:]}", remedy="see what it says")
    loads.make(cluster, OURS)
    # As HammerDB loads it: how full the pages are decides how many updates stay on their page.
    fill(Place(cluster, OURS), TpccTables(WAREHOUSES), manner="hammerdb")
    return match[1]
