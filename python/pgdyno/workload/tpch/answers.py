"""What a server with the tables has beside them, and whether what queries bring is right."""

from __future__ import annotations

from pgdyno.workload.counting import counting
from pgdyno.workload.server import Server
from pgdyno.workload.tables import TPCH_SCHEMA

_VIEWS = f"""
SELECT relname::text FROM pg_catalog.pg_class
WHERE relnamespace = pg_catalog.to_regnamespace('{TPCH_SCHEMA}') AND relkind = 'v' ORDER BY relname"""


def left_views(server: Server) -> list[str]:
    """Views in the schema: a stream drops its own when it ends."""
    with counting(server) as connection:
        return [str(row[0]) for row in connection.execute(_VIEWS.encode()).fetchall()]
