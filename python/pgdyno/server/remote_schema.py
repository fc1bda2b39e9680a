"""Tables in a schema of pgdyno's own on an existing server: whether they are there, or may be made."""

from __future__ import annotations

from ..base import session
from ..base.errors import InputError
from .remote import RemoteServer

_FOUND = """
SELECT pg_catalog.obj_description(n.oid, 'pg_namespace'), pg_catalog.has_schema_privilege(n.oid, 'USAGE')
FROM pg_catalog.pg_namespace AS n WHERE n.nspname = %s
"""
_MAY_CREATE = "SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')"


def lacks_schema(server: RemoteServer, name: str, comment: str, *, yes_create: bool) -> bool:
    """Whether the schema has to be made; ``False`` when it is there, and its comment says that it has these tables.

    Nothing is ever dropped or replaced. :class:`InputError` for a schema with other tables, and where it is missing and may not be
    made.
    """
    if server.read_only:
        raise InputError(
            "this server takes no writes (it is a standby, or read-only), and the workload writes",
            remedy="use another server",
        )
    with server.connect() as connection:
        result = connection.execute(_FOUND, (name,)).fetchone()
        if result is not None:
            _require_same(name, result[0], comment, may_use=result[1])
            return False
        if not yes_create:
            raise InputError(
                f"the database {server.record.dbname} has no schema {name}, and pgdyno does not create it without"
                " --yes-create",
                remedy="use `pgdyno run` with --yes-create",
            )
        session.require_own(connection, server.connect, "making tables")
        row = connection.execute(_MAY_CREATE).fetchone()
        if row is None or not row[0]:
            raise InputError(
                f"the role {server.record.user} may not create a schema in the database {server.record.dbname}",
                remedy=f"run as its owner `GRANT CREATE ON DATABASE {server.record.dbname} TO {server.record.user}`, or"
                " use another database",
            )
    return True


def require_schema(server: RemoteServer, name: str, comment: str, kind: str) -> None:
    """Refuse a server that lacks the schema with the tables of a ``kind`` of workload, or has others. :class:`InputError`."""
    if lacks_schema(server, name, comment, yes_create=True):
        raise InputError(
            f"the database {server.record.dbname} has no schema {name}",
            remedy=f'make it by an experiment of kind = "{kind}": `pgdyno run FILE --yes-create`',
        )


def _require_same(name: str, text: str | None, wanted: str, *, may_use: bool) -> None:
    if text != wanted:
        raise InputError(
            f"the schema {name} has other tables: its comment is {text!r}, not {wanted!r}",
            remedy=f"use those, another database, or drop it yourself: `DROP SCHEMA {name} CASCADE`",
        )
    if not may_use:
        raise InputError(f"the role may not use the schema {name}", remedy="connect as the role that made it")
