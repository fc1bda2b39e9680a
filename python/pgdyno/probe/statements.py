"""What pg_stat_statements has counted, when a watch begins and when it ends: blocks, WAL and temporary blocks of each statement.

The extension's own function is asked, wherever its schema is, and without the texts unless they were asked for: they lie in a file
that the server reads, and may hold what others must not see.
"""

from __future__ import annotations

from typing import Any

from pgdyno.probe.literals import without_literals
from pgdyno.probe.sampler import Connection, SqlSampler, now_ns, reason
from pgdyno.probe.samples import Gap, ProbeTables

STATEMENTS_TABLE = "probe/statements"
_LONG_S = 7 * 86_400.0
"""Longer than any watch: only the first sample and the last one are taken."""
_FIND = """
SELECT pg_catalog.quote_ident(space.nspname), pg_catalog.bool_or(function.proname = 'pg_stat_statements_info'),
       pg_catalog.min(extension.extversion)
FROM pg_catalog.pg_extension AS extension
JOIN pg_catalog.pg_depend AS member ON member.refobjid = extension.oid AND member.deptype = 'e'
     AND member.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
     AND member.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass
JOIN pg_catalog.pg_proc AS function ON function.oid = member.objid AND function.proname LIKE 'pg_stat_statements%'
JOIN pg_catalog.pg_namespace AS space ON space.oid = function.pronamespace
WHERE extension.extname = 'pg_stat_statements'
GROUP BY space.nspname
"""
"""Since 1.9, which is PostgreSQL 14's, a second function says when the counters were reset."""
_ASK = """
SELECT {reset}, queryid, pg_catalog.sum(calls)::pg_catalog.int8, pg_catalog.sum(total_exec_time),
       pg_catalog.sum(shared_blks_read)::pg_catalog.int8, pg_catalog.sum(temp_blks_written)::pg_catalog.int8,
       pg_catalog.sum(wal_bytes)::pg_catalog.int8, {text}
FROM {schema}.pg_stat_statements({shown})
WHERE queryid IS NOT NULL
GROUP BY queryid
"""
"""All databases and roles together. Columns: from version 1.8 of the extension on, which is PostgreSQL 13's."""
_VERSION_MIN = (1, 8)
_RESET = "(SELECT extract(epoch FROM stats_reset) * 1000 FROM {schema}.pg_stat_statements_info())::pg_catalog.int8"
_NAMES = (
    "reset_unix_ms",
    "queryid",
    "calls",
    "exec_time_ms",
    "shared_blks_read",
    "temp_blks_written",
    "wal_bytes",
    "query",
)
_TEXT = "pg_catalog.left(pg_catalog.min(query), 200)"
_NOT_SHOWN = "(not shown: it names a password)"


class StatementsProbe(SqlSampler):
    """Samples the function once at the start and once at the end. Without the extension it has no table."""

    name = "statements"

    def __init__(self, dsn: str, *, texts: bool = False, **options: Any) -> None:
        super().__init__(dsn, _LONG_S, **options)
        self._texts = texts
        self._query: str | None = None
        self._rows: list[dict[str, Any]] = []

    def _begin(self, connection: Connection) -> None:
        """Find the extension. Its catalogs may have to be read from a volume that is at its limit: then the rest is watched without it."""
        import psycopg

        begin_ns = now_ns()
        try:
            result = self._question(connection, _FIND).fetchone()
        except psycopg.Error as error:
            self.ledger.add(Gap(begin_ns, now_ns(), "sql.statements", reason(error)))
            return
        if result is not None and is_older(result[2], _VERSION_MIN):
            why = (
                f"the database {connection.info.dbname} has pg_stat_statements {result[2]}, which is older than the server:"
                " `ALTER EXTENSION pg_stat_statements UPDATE` there"
            )
            self.ledger.add(Gap(begin_ns, now_ns(), "sql.statements", why))
        elif result is not None:
            text = _TEXT if self._texts else "NULL::pg_catalog.text"
            reset = _RESET.format(schema=result[0]) if result[1] else "NULL::pg_catalog.int8"
            self._query = _ASK.format(schema=result[0], reset=reset, text=text, shown=str(self._texts).lower())

    def _ask(self, connection: Connection) -> list[tuple[str, str]]:
        try:
            return [] if self._query is None else self._counted(connection, self._query)
        finally:
            self._disconnect()  # a session that is idle for the whole watch may be ended, and is of no use

    def _counted(self, connection: Connection, query: str) -> list[tuple[str, str]]:
        """Keep what the function answers; what is missing, with the reason."""
        import psycopg

        begin_ns = now_ns()
        try:
            rows = self._question(connection, query).fetchall()
        except psycopg.Error as error:  # it is installed and not loaded, or this role may not execute it
            return [("sql.statements", reason(error))]
        at = {"t_begin_ns": begin_ns, "t_end_ns": now_ns()}
        self._rows += [{**at, **dict(zip(_NAMES, row, strict=True))} for row in rows]
        return []

    def _parts(self) -> list[str]:
        return ["sql.statements"] if self._query is not None else []

    def _brought(self) -> ProbeTables:
        from ..results.tables import from_rows

        for row in self._rows:
            if row["query"] is not None:
                row["query"] = _NOT_SHOWN if "password" in row["query"].lower() else without_literals(row["query"])
        return ProbeTables({STATEMENTS_TABLE: from_rows(STATEMENTS_TABLE, self._rows)} if self._rows else {}, self.ledger.gaps())


def is_older(version: str, than: tuple[int, int]) -> bool:
    """Whether an extension's version (``1.7``) is older; one of another form is taken to be newer."""
    parts = version.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        return False
    return (int(parts[0]), int(parts[1])) < than
