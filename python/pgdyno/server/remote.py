"""An existing PostgreSQL server, named by its connection string. Nothing on it is changed unless the user asks for it.

What the connection string leaves open comes from libpq's own places: the environment (``PGPASSWORD``, ``PGPASSFILE``,
``PGSERVICEFILE``, ``PGSSLROOTCERT``), ``~/.pgpass``, ``~/.pg_service.conf``. A password is never kept, shown or put on a
command line.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..base import endpoint, session
from ..base.endpoint import Endpoint
from ..base.errors import HostError, InputError, PgdynoError
from . import settings as settings_module
from .binaries import VERSION_MIN, PgBinaries, find_binaries

if TYPE_CHECKING:
    import psycopg

    from ..results.record import ServerRecord

TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")
NAMED_MAX = 4
"""Tables that an error names; sysbench may have thousands."""
_IDENTITY = """
SELECT pg_catalog.current_setting('server_version'), pg_catalog.current_setting('server_version_num')::int,
       pg_catalog.current_setting('transaction_read_only') = 'on', pg_catalog.pg_is_in_recovery()
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

    It has what a workload and the probes use of :class:`~pgdyno.server.cluster.Cluster`.
    """

    dsn: str
    """As it was given, without a password. With several hosts it names the chosen one, and it asks for TLS if the first
    session had it."""
    version: str
    """As ``15.20``."""
    major: int
    read_only: bool
    """Whether sessions cannot write: a standby, or ``default_transaction_read_only``."""
    binaries: PgBinaries
    """Client programs of this machine: pgbench."""
    record: ServerRecord
    """Where it is, for a run's record."""
    reached: Endpoint | InputError = field(repr=False)
    """How the engine reaches it, or why it cannot."""

    @classmethod
    def open(cls, dsn: str, binaries: PgBinaries | None = None) -> RemoteServer:
        """Connect once and see what is there.

        ``binaries`` are the client programs to use (default: the embedded ones, which talk to every version).
        :class:`InputError` for an invalid connection string, :class:`HostError` when no connection comes about or the
        server is too old.
        """
        from ..results.record import ServerRecord

        with connect(dsn) as connection:
            row = connection.execute(_IDENTITY).fetchone()
            assert row is not None
            info = connection.info
            record = ServerRecord(host=info.host or None, port=info.port, dbname=info.dbname, user=info.user)
            given, dsn = dsn, endpoint.pinned(dsn, connection)
            reached = _reached(connection, given, dsn)
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
            reached=reached,
        )

    @property
    def endpoint(self) -> Endpoint:
        """How the engine reaches it. :class:`InputError` if it cannot."""
        if isinstance(self.reached, InputError):
            raise self.reached
        return self.reached

    def require_engine(self) -> None:
        """Refuse a connection that the engine's sessions cannot make as libpq does. :class:`InputError`."""
        self.endpoint.require_utf8()
        self.endpoint.check()

    @property
    def environment(self) -> dict[str, str]:
        """The caller's own ``PG*`` variables, for a client program: the password and the places of files.

        Those that the connection string sets itself are for the program that reads it; these must not overrule them. The
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
        """A psycopg connection (autocommit by default)."""
        return connect(self.dsn, **options)

    def require_prepared(self) -> None:
        """Refuse a connection pooler through which prepared statements would collide. :class:`InputError`."""
        with self.connect() as connection:
            session.require_prepared(connection, self.connect)

    def settings(self) -> list[dict[str, str | None]]:
        """Every setting that the role may see: name, setting, unit, source, boot_val."""
        with self.connect() as connection:
            return settings_module.of_server(connection)

    def require_tables(self, scale: int, *, writes: bool, yes_create: bool) -> bool:
        """Whether pgbench's tables have to be made before a run; ``False`` when they are there and of this ``scale``.

        ``writes`` says whether the workload changes rows. Nothing is ever dropped or replaced: tables of another scale,
        a part of them, missing rights and a server that cannot be written to are refused, and so is the making without
        ``yes_create``. :class:`InputError` says which.
        """
        by_hand = f"`pgbench -i -s {scale}`"
        if self.lacks_tables("pgbench", TABLES, by_hand, writes=writes, yes_create=yes_create):
            return True
        with self.connect() as connection:
            _require_rights(connection, writes=writes)
            number = int(row_of(connection, "SELECT count(*) FROM pgbench_branches")[0])
        if number != scale:
            raise InputError(
                f"pgbench's tables have scale {number}, not {scale}",
                remedy=f"use scale {number}, or another database; existing tables are not replaced",
            )
        return False

    def lacks_tables(self, family: str, names: Sequence[str], by_hand: str, *, writes: bool, yes_create: bool) -> bool:
        """Whether the tables of a program have to be made before a run; ``False`` when all are there.

        ``by_hand`` is the command that makes them. A part of them is refused, and what :meth:`require_tables` says of rights and the making.
        """
        if writes and self.read_only:
            raise InputError(
                "this server takes no writes (it is a standby, or read-only), and the workload writes",
                remedy="use a workload that reads only, such as pgbench's select-only, or another server",
            )
        with self.connect() as connection:
            there = [
                name
                for name in names
                if row_of(connection, "SELECT pg_catalog.to_regclass(%s) IS NOT NULL", (name,))[0]
            ]
            if not there:
                self._require_creatable(connection, family, by_hand, yes_create=yes_create)
                return True
        if len(there) < len(names):
            more = f" and {len(there) - NAMED_MAX} more" if len(there) > NAMED_MAX else ""
            raise InputError(
                f"the database has {', '.join(there[:NAMED_MAX])}{more} but not the others of {family}'s tables",
                remedy="use another database; existing tables are not replaced",
            )
        return False

    def drop_tables(self, names: Sequence[str]) -> None:
        """Drop tables that were created for runs. :class:`HostError` where something else depends on one, which then stays."""
        import psycopg
        from psycopg import sql

        with self.connect() as connection:
            for name in names:
                try:
                    connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))
                except psycopg.Error as error:
                    text = " ".join(str(error).split())
                    raise HostError(f"the table {name} cannot be dropped: {text}", remedy="drop it by hand") from None

    def _require_creatable(
        self, connection: psycopg.Connection[tuple[Any, ...]], family: str, by_hand: str, *, yes_create: bool
    ) -> None:
        if not yes_create:
            raise InputError(
                f"the database {self.record.dbname} has no {family} tables, and pgdyno does not create them without --yes-create",
                remedy=f"create them with {by_hand}, or use --yes-create",
            )
        if self.read_only:
            raise InputError(f"this server is read-only, and {family}'s tables are missing", remedy="use its primary")
        session.require_own(connection, self.connect, "making tables")
        allowed = row_of(connection, "SELECT pg_catalog.has_schema_privilege(pg_catalog.current_schema(), 'CREATE')")[0]
        if not allowed:
            raise InputError(
                f"the role {self.record.user} may not create tables in the database {self.record.dbname}",
                remedy=f"run as its owner `CREATE SCHEMA AUTHORIZATION {self.record.user}`, or use another database",
            )


def _reached(connection: psycopg.Connection[tuple[Any, ...]], dsn: str, pinned: str) -> Endpoint | InputError:
    try:
        return replace(endpoint.of_session(connection, dsn), another=partial(_of_role, pinned))
    except InputError as error:
        return error


def _of_role(dsn: str, user: str, dbname: str) -> Endpoint:
    """How the engine reaches a database as a role, which may have a password of its own in the user's files."""
    from psycopg.conninfo import make_conninfo

    own = make_conninfo(dsn, user=user, dbname=dbname)
    with connect(own) as connection:
        return endpoint.of_session(connection, own)


def connect(dsn: str, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect with a deadline (autocommit by default). :class:`InputError` or :class:`HostError` if not."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        result = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # libpq's message repeats what it could not read, which may be the password.
        raise InputError(
            "the DSN is not a connection string", remedy="write it as `host=db.example dbname=app user=bench`"
        ) from None
    chosen: dict[str, Any] = {"autocommit": True, "application_name": "pgdyno", **session.OPTIONS}
    if "connect_timeout" not in result and "PGCONNECT_TIMEOUT" not in os.environ:
        chosen["connect_timeout"] = endpoint.CONNECT_TIMEOUT_S
    chosen |= {keyword: value for keyword, value in endpoint.KEEPALIVE.items() if keyword not in result}
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
            if not row_of(connection, "SELECT pg_catalog.has_table_privilege(%s, %s)", (table, right))[0]:
                raise InputError(
                    f"the role may not {right} the table {table}",
                    remedy=f"run as its owner `GRANT {rights} ON {table}`",
                )


def row_of(
    connection: psycopg.Connection[tuple[Any, ...]], query: str, values: tuple[Any, ...] = ()
) -> tuple[Any, ...]:
    """The first row of a query that always has one. :class:`PgdynoError` when there is none."""
    row = connection.execute(query.encode(), values).fetchone()
    if row is None:
        raise PgdynoError("the server did not answer", remedy="check its log")
    return row
