"""What a server has counted, kept as one document: pg_stat_statements, settings, sequences, sizes.

Two of them, before and after a capture, say what its statements did in production. No literal of a statement is kept.
"""

from __future__ import annotations

import re
import time
from typing import Any

from pgdyno.workload.replay.counted import counted
from pgdyno.workload.replay.identity import identity
from pgdyno.workload.replay.production import VERSION

from ..base import session
from ..server import remote

_SEQUENCES = """
SELECT schemaname, sequencename, last_value, increment_by, cache_size FROM pg_catalog.pg_sequences ORDER BY 1, 2
"""
_SIZES = """
SELECT space.nspname, class.relname, class.relkind::pg_catalog.text, pg_catalog.pg_relation_size(class.oid)
FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
WHERE class.relkind::pg_catalog.text OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'm', 'i', 't'])
  AND space.nspname OPERATOR(pg_catalog.<>) ALL (ARRAY['pg_catalog', 'information_schema'])
ORDER BY 1, 2
"""
_NOW = """
SELECT pg_catalog.current_setting('server_version'), pg_catalog.current_database(),
       (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::pg_catalog.int8,
       pg_catalog.pg_database_size(pg_catalog.current_database())
"""
_SECRET_SETTING = re.compile(r"conninfo|command|passphrase|password", re.IGNORECASE)
"""Settings whose values may name a password."""


def stats(dsn: str) -> dict[str, Any]:
    """Read one document from a server, in one transaction that writes nothing.

    :class:`InputError` when pg_stat_statements is missing or does not show other roles' statements.
    """
    with remote.connect(dsn) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(session.SERVER_NAMES_LOCAL)
        version, database, at_us, size_bytes = remote.row_of(connection, _NOW)
        statements = counted(connection)
        settings = connection.execute(
            "SELECT name, setting, unit, source FROM pg_catalog.pg_settings ORDER BY name"
        ).fetchall()
        sequences = connection.execute(_SEQUENCES).fetchall()
        server = identity(connection)
        sizes = connection.execute(_SIZES).fetchall()
        connection.execute("ROLLBACK")
    return {
        "stats_version": VERSION,
        "taken_unix_ns": time.time_ns(),
        "server_time_us": at_us,
        "server_version": version,
        "database": database,
        "server": server,
        "size_bytes": size_bytes,
        "statements": statements,
        "settings": [
            dict(zip(("name", "setting", "unit", "source"), row, strict=True))
            for row in settings
            if not _SECRET_SETTING.search(row[0])
        ],
        "sequences": [
            dict(zip(("schema", "name", "last_value", "increment", "cache"), row, strict=True)) for row in sequences
        ],
        "relations": [dict(zip(("schema", "name", "kind", "size_bytes"), row, strict=True)) for row in sizes],
    }
