"""The order shop of ``experiments/shop`` on a server of a test, its dumps, and what of it must be equal after a restore."""

from __future__ import annotations

import functools
import gzip
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.machine.journal import HostJournal
from pgdyno.server import layout
from pgdyno.server.cluster import Cluster
from pgdyno.workload.database import DatabaseTable, OwnDatabase
from pgdyno.world.restored import RestoredDatabase, Site, restore
from tools.captured.production import build

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.server.binaries import PgBinaries

SIZE = 0.03
"""1,800 orders: the shop's structure in 3 MB."""
_VOLATILE = re.compile(r"^(?:\\(?:un)?restrict .*|-- Dumped (?:from|by) .*)\n", re.MULTILINE)
"""What two dumps of one database differ in."""
_TABLES = """
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND n.nspname IN ('shop', 'audit') ORDER BY 1
"""


@dataclass(frozen=True)
class Shop:
    """A shop on a server, and a folder with its dumps."""

    cluster: Cluster
    folder: Path

    @property
    def globals(self) -> Path:
        """Its roles."""
        return self.folder / "globals.sql"

    def dump(self, form: str, *options: str) -> Path:
        """A dump of pg_dump in a format: ``custom``, ``directory``, ``tar``, ``plain``."""
        path = self.folder / f"shop-{form}{'-'.join(options)}"
        if not path.exists():
            self.program("pg_dump", f"-F{form[0]}", "-f", str(path), *(options or ("-C",)), "shop")
        return path

    def program(self, name: str, *arguments: str) -> None:
        """Run a client program as the superuser."""
        cluster = self.cluster
        where = ["-h", str(cluster.socket_dir), "-p", str(cluster.port), "-U", "postgres"]
        command = [str(cluster.binaries.program(name)), *where, *arguments]
        subprocess.run(command, env=cluster.binaries.environment, check=True, timeout=120)


def make(cluster: Cluster, folder: Path) -> Shop:
    """Make the shop on a server, from which base backups can be made, and write its globals."""
    with (cluster.data_dir / "pg_hba.conf").open("a") as rules:
        rules.write("local replication all trust\n")
    cluster.connect().execute("SELECT pg_reload_conf()").connection.close()
    build(cluster, folder / "log", SIZE)
    shop = Shop(cluster, folder)
    shop.program("pg_dumpall", "--globals-only", "-f", str(shop.globals))
    return shop


def compressed(path: Path, program: str) -> Path:
    """A file compressed by gzip or zstd."""
    target = Path(f"{path}.{program}")
    if program == "gz":
        target.write_bytes(gzip.compress(path.read_bytes(), 1))
    else:
        import pyarrow as pa

        with pa.CompressedOutputStream(str(target), "zstd") as stream:
            stream.write(path.read_bytes())
    return target


@functools.cache
def of_source(cluster: Cluster) -> dict[str, Any]:
    """The fingerprint of the shop on its own server, which no test changes."""
    return fingerprint(cluster, "shop")


def fingerprint(cluster: Cluster, database: str) -> dict[str, Any]:
    """All that a restore must bring back: rows by table, sequences, settings, definitions with owners and privileges."""
    with cluster.connect(dbname=database) as connection:
        tables = [row[0] for row in connection.execute(_TABLES).fetchall()]
        rows = {
            table: connection.execute(
                f"SELECT count(*), md5(string_agg(t::text, E'\\n' ORDER BY t::text)) FROM {table} t".encode()
            ).fetchone()
            for table in tables
        }
        sequences = connection.execute(
            "SELECT schemaname, sequencename, last_value FROM pg_sequences ORDER BY 1, 2"
        ).fetchall()
        settings = connection.execute(
            "SELECT coalesce(r.rolname, ''), coalesce(d.datname, ''), setconfig FROM pg_db_role_setting s"
            " LEFT JOIN pg_roles r ON r.oid = setrole LEFT JOIN pg_database d ON d.oid = setdatabase ORDER BY 1, 2"
        ).fetchall()
        roles = connection.execute(
            "SELECT rolname, rolsuper, rolcanlogin FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1"
        ).fetchall()
    done = subprocess.run(
        [
            str(cluster.binaries.program("pg_dump")),
            "-h",
            str(cluster.socket_dir),
            "-U",
            "postgres",
            "-s",
            "-C",
            database,
        ],
        env=cluster.binaries.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return {
        "rows": rows,
        "sequences": sequences,
        "settings": settings,
        "roles": roles,
        "definitions": _VOLATILE.sub("", done.stdout),
    }


def own(source: Path | str, **keys: Any) -> OwnDatabase:
    """A data set of ``[workload.database]``."""
    return DatabaseTable.model_validate(
        {"from": str(source)} | {key: str(value) if isinstance(value, Path) else value for key, value in keys.items()}
    ).data_set()


@dataclass
class Plain:
    """Directories in place of attached volumes: restoring does not depend on what they stand on."""

    mounts: dict[str, Path]
    volumes: dict[str, Any]


def restored(
    tables: OwnDatabase, binaries: PgBinaries, folder: Path, roles: Sequence[str] = ("data",)
) -> tuple[RestoredDatabase, Cluster]:
    """Restore below ``folder``; the result, and a cluster on it that is not started."""
    mounts = {role: folder / role for role in roles}
    for mount in mounts.values():
        mount.mkdir(parents=True)
        mount.chmod(0o755)
    journal = HostJournal(folder / "state")
    attached: Any = Plain(mounts, {})
    texts: list[str] = []
    site = Site(
        binaries=binaries,
        attached=attached,
        instance=None,
        journal=journal,
        directory=folder / "record",
        title="a test",
        settings={"shared_buffers": "32MB"},
        world=None,
        progress=lambda _share, text: texts.append(text),
    )
    result = restore(tables, site)
    return result, Cluster(binaries, layout.data_dir(mounts), database=result.database, journal=journal)


def only_root(path: Path) -> None:
    """As a careful DBA leaves a dump."""
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 0, 0)
