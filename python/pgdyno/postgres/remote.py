"""A PostgreSQL that exists already, named by its connection string. Nothing on it is changed, unless that is asked for.

What the connection string leaves open comes from libpq's own places: the environment (``PGPASSWORD``, ``PGPASSFILE``,
``PGSERVICEFILE``, ``PGSSLROOTCERT``), ``~/.pgpass``, ``~/.pg_service.conf``. A password is never kept, shown or put on a
command line.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.errors import HostError, InputError, PgdynoError
from pgdyno.postgres.binaries import VERSION_MIN, PgBinaries, find_binaries

if TYPE_CHECKING:
    import psycopg

    from pgdyno.store.record import ServerRecord

CONNECT_TIMEOUT_S = 10
"""A server that is not reached within this time is not one to measure."""
PATIENCE = {"keepalives_idle": 60, "keepalives_interval": 15, "keepalives_count": 8, "tcp_user_timeout": 300_000}
"""When to give up on a server that has vanished, in libpq's words (s, s, probes, ms), as the engine does
(``crates/drive/src/vanish.rs``): without them a session waits for two hours, and where it has sent something for 15 minutes."""
CLIENT_ENCODING = "UTF8"
"""Of every session: left to the database, psycopg answers with bytes instead of text where that is SQL_ASCII, as initdb chooses
it without a locale."""
TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")
_IDENTITY = """
SELECT current_setting('server_version'), current_setting('server_version_num')::int,
       current_setting('transaction_read_only') = 'on', pg_is_in_recovery()
"""
_RIGHTS = {
    "pgbench_accounts": "SELECT, UPDATE",
    "pgbench_branches": "SELECT, UPDATE",
    "pgbench_tellers": "SELECT, UPDATE",
    "pgbench_history": "SELECT, INSERT",
}
"""What the scripts do to each table, and what the check of balances reads afterwards."""


@dataclass(frozen=True)
class RemoteServer:
    """A server that takes connections at ``dsn``. Make one with :meth:`open`.

    It has what a workload and the probes use of :class:`~pgdyno.postgres.cluster.Cluster`.
    """

    dsn: str
    """As it was given: without a password."""
    version: str
    """As ``15.20``."""
    major: int
    read_only: bool
    """Whether sessions cannot write: a standby, or ``default_transaction_read_only``."""
    binaries: PgBinaries
    """Client programs of this machine: pgbench."""
    record: ServerRecord
    """Where it is, for a run's record."""

    @classmethod
    def open(cls, dsn: str, binaries: PgBinaries | None = None) -> RemoteServer:
        """Connect once and see what is there.

        ``binaries`` are the client programs to use (default: the embedded ones, which talk to every version).
        :class:`InputError` for what is no connection string, :class:`HostError` when no connection comes about or the
        server is too old.
        """
        from pgdyno.store.record import ServerRecord

        with connect(dsn) as connection:
            row = connection.execute(_IDENTITY).fetchone()
            assert row is not None
            info = connection.info
            record = ServerRecord(host=info.host or None, port=info.port, dbname=info.dbname, user=info.user)
        version, number, read_only, standby = row
        if number // 10000 < VERSION_MIN:
            raise HostError(
                f"the server has PostgreSQL {version}, which is not supported",
                remedy=f"use a server of version {VERSION_MIN} or later",
            )
        return cls(
            dsn=dsn,
            version=str(version).split()[0],
            major=number // 10000,
            read_only=read_only or standby,
            binaries=binaries or find_binaries(),
            record=record,
        )

    @property
    def environment(self) -> dict[str, str]:
        """The caller's own ``PG*`` variables, for a client program: the password and the places of files.

        Those that the connection string sets itself are for whoever translates it; these must not overrule them. The
        database is named here, because pgbench does not take it from a service file.
        """
        from psycopg import pq
        from psycopg.conninfo import conninfo_to_dict

        given = {keyword for keyword, value in conninfo_to_dict(self.dsn).items() if value is not None}
        options = pq.Conninfo.get_defaults()
        named = {option.envvar.decode() for option in options if option.envvar and option.keyword.decode() in given}
        ours = {name: value for name, value in os.environ.items() if name.startswith("PG") and name not in named}
        return ours | {"PGDATABASE": self.record.dbname or ""}

    def connect(self, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """A psycopg connection (autocommit unless said otherwise)."""
        return connect(self.dsn, **options)

    def settings(self) -> list[dict[str, str | None]]:
        """Every setting that the role may see: name, setting, unit, source, boot_val."""
        columns = ("name", "setting", "unit", "source", "boot_val")
        with self.connect() as connection:
            rows = connection.execute(
                "SELECT name, setting, unit, source, boot_val FROM pg_catalog.pg_settings ORDER BY name"
            ).fetchall()
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def require_tables(self, scale: int, *, writes: bool, yes_create: bool) -> bool:
        """Whether pgbench's tables have to be made before a run; ``False`` when they are there and of this ``scale``.

        ``writes`` says whether the workload changes rows. Nothing is ever dropped or replaced: tables of another scale,
        a part of them, missing rights and a server that cannot be written to are refused, and so is the making without
        ``yes_create``. :class:`InputError` says which.
        """
        if writes and self.read_only:
            raise InputError(
                "this server takes no writes (it is a standby, or read-only), and the workload writes",
                remedy="use the script select-only, or another server",
            )
        with self.connect() as connection:
            there = [name for name in TABLES if _row(connection, "SELECT to_regclass(%s) IS NOT NULL", (name,))[0]]
            if not there:
                self._require_creatable(connection, scale, yes_create=yes_create)
                return True
            if len(there) < len(TABLES):
                raise InputError(
                    f"the database has {', '.join(there)} but not the others of pgbench's tables",
                    remedy="use another database; nothing that is there is replaced",
                )
            _require_rights(connection, writes=writes)
            found = int(_row(connection, "SELECT count(*) FROM pgbench_branches")[0])
        if found != scale:
            raise InputError(
                f"pgbench's tables are there with scale {found}, not {scale}",
                remedy=f"ask for scale {found}, or use another database; nothing that is there is replaced",
            )
        return False

    def _require_creatable(
        self, connection: psycopg.Connection[tuple[Any, ...]], scale: int, *, yes_create: bool
    ) -> None:
        if not yes_create:
            raise InputError(
                f"the database {self.record.dbname} has no pgbench tables, and pgdyno makes none unasked",
                remedy=f"make them with `pgbench -i -s {scale}`, or let pgdyno do it with --yes-create",
            )
        if self.read_only:
            raise InputError(
                "this server takes no writes, and pgbench's tables are not there", remedy="use its primary"
            )
        allowed = _row(connection, "SELECT has_schema_privilege(current_schema(), 'CREATE')")[0]
        if not allowed:
            raise InputError(
                f"the role {self.record.user} may not make tables in the database {self.record.dbname}",
                remedy=f"run as its owner `CREATE SCHEMA AUTHORIZATION {self.record.user}`, or use another database",
            )


def connect(dsn: str, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect with a deadline (autocommit unless said otherwise). :class:`InputError` or :class:`HostError` if not."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        asked = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # libpq's message repeats what it could not read, which may be the password.
        raise InputError(
            "the DSN is no connection string", remedy="write it as `host=db.example dbname=app user=bench`"
        ) from None
    chosen: dict[str, Any] = {"autocommit": True, "application_name": "pgdyno", "client_encoding": CLIENT_ENCODING}
    if "connect_timeout" not in asked and "PGCONNECT_TIMEOUT" not in os.environ:
        chosen["connect_timeout"] = CONNECT_TIMEOUT_S
    chosen |= {keyword: value for keyword, value in PATIENCE.items() if keyword not in asked}
    try:
        return psycopg.connect(dsn, **(chosen | options))
    except psycopg.ProgrammingError as error:
        raise InputError(
            f"the connection string cannot be used: {' '.join(str(error).split())}", remedy="correct that value"
        ) from error
    except psycopg.OperationalError as error:
        raise HostError(
            f"the server cannot be connected to: {' '.join(str(error).split())}",
            remedy="check the connection string, and that `psql` connects with it",
        ) from error


def _require_rights(connection: psycopg.Connection[tuple[Any, ...]], *, writes: bool) -> None:
    for table, rights in _RIGHTS.items():
        for right in rights.split(", ") if writes else ("SELECT",):
            if not _row(connection, "SELECT has_table_privilege(%s, %s)", (table, right))[0]:
                raise InputError(
                    f"the role may not {right} the table {table}",
                    remedy=f"run as its owner `GRANT {rights} ON {table}`",
                )


def _row(connection: psycopg.Connection[tuple[Any, ...]], query: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    found = connection.execute(query.encode(), values).fetchone()
    if found is None:
        raise PgdynoError("the server gave no answer", remedy="check its log")
    return found
