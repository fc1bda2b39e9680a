"""Tables in a schema on an existing server: pgdyno's own, which may be made, or those that HammerDB has built."""

from __future__ import annotations

from pgdyno.workload.tables import SUPPLIERS_PER_SCALE, SchemaTables, TpccTables

from ..server.built_schema import Built, require_built
from ..server.remote import RemoteServer
from ..server.remote_schema import lacks_schema, require_schema
from ..workload.generated import column_names
from ..workload.tables import BY, TPCC_COLUMNS, routine_arguments


def schema_is_missing(server: RemoteServer, tables: SchemaTables, *, yes_create: bool) -> bool:
    """Whether the tables have to be made. :class:`InputError` for others, and where they are missing and may not be made."""
    if tables.built:
        require_built(server, _built(tables))
        return False
    return lacks_schema(server, tables.schema, tables.comment, yes_create=yes_create)


def require_schema_of(server: RemoteServer, tables: SchemaTables) -> None:
    """Refuse a server that lacks the tables, or has others. :class:`InputError`."""
    if tables.built:
        require_built(server, _built(tables))
    else:
        require_schema(server, tables.schema, tables.comment, tables.family)


def _built(tables: SchemaTables) -> Built:
    if isinstance(tables, TpccTables):
        kind, routines = tables.routines, routine_arguments(tables.routines)
        return Built(BY, tables.schema, TPCC_COLUMNS, routines, kind, "warehouse", tables.warehouses, "warehouses", 1)
    rows = round(tables.scale_factor * SUPPLIERS_PER_SCALE)
    return Built(
        BY, tables.schema, column_names(), {}, "", "supplier", rows, "scale_factor", float(SUPPLIERS_PER_SCALE)
    )
