"""A database to load into, and what of a table must be as it was afterwards."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from pgdyno.loader import server, trust

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.loader.server import Connection

RICH = """
CREATE TABLE other (id int PRIMARY KEY);
INSERT INTO other SELECT generate_series(1, 100);
CREATE TABLE rich (
    id bigint, code text, low int, high int, other_id int, span int4range,
    CONSTRAINT rich_pkey PRIMARY KEY (id) WITH (fillfactor = 60),
    CONSTRAINT rich_code UNIQUE (code) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT rich_span EXCLUDE USING gist (span WITH &&),
    CONSTRAINT rich_low CHECK (low > -10),
    CONSTRAINT rich_other FOREIGN KEY (other_id) REFERENCES other ON DELETE CASCADE
) WITH (autovacuum_enabled = true, fillfactor = 70, autovacuum_vacuum_threshold = 99);
CREATE INDEX rich_some ON rich (low DESC NULLS LAST) INCLUDE (high) WITH (fillfactor = 80) WHERE high > 0;
CREATE UNIQUE INDEX rich_expression ON rich (lower(code), high);
CREATE INDEX rich_high ON rich (high);
ALTER TABLE rich CLUSTER ON rich_high;
COMMENT ON INDEX rich_high IS 'it''s high';
COMMENT ON CONSTRAINT rich_pkey ON rich IS 'the key';
COMMENT ON CONSTRAINT rich_other ON rich IS 'elsewhere';
"""
"""A table with everything that must come back."""
INDEXES = 6
"""Of :data:`RICH`, its primary key and constraints counted."""
_SHAPE = """
SELECT 'index', pg_get_indexdef(i.indexrelid), i.indisunique, i.indisprimary, i.indisvalid, i.indisclustered,
       obj_description(i.indexrelid, 'pg_class')
FROM pg_index i WHERE i.indrelid = %(oid)s
UNION ALL SELECT 'constraint', conname || ' ' || pg_get_constraintdef(oid), condeferrable, condeferred, convalidated, false,
       obj_description(oid, 'pg_constraint')
FROM pg_constraint WHERE conrelid = %(oid)s
UNION ALL SELECT 'options', reloptions::text, false, false, false, false, NULL FROM pg_class WHERE oid = %(oid)s
ORDER BY 1, 2
"""


@dataclass(frozen=True)
class Database:
    """Where it is."""

    dsn: str

    @contextlib.contextmanager
    def session(self) -> Iterator[Connection]:
        """A session as the loader has them, with its tables in the database."""
        with contextlib.closing(server.connect(self.dsn)) as connection:
            trust.ensure(connection)
            yield connection

    def run(self, text: str) -> None:
        """Any SQL."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(text.encode())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query brings."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()

    def one(self, query: str) -> Any:
        """The only value that a query brings."""
        ((value,),) = self.rows(query)
        return value

    def shape(self, table: str) -> list[tuple[Any, ...]]:
        """Definitions of indexes and constraints, comments, storage parameters: what must be byte-equal afterwards."""
        with psycopg.connect(self.dsn) as connection:
            oid = connection.execute("SELECT %s::regclass::oid", (table,)).fetchone()
            assert oid is not None
            return connection.execute(_SHAPE.encode(), {"oid": oid[0]}).fetchall()

    def left_to_undo(self) -> int:
        """Lines in the undo journal."""
        there = self.one("SELECT to_regclass('pgdyno_load.undo') IS NOT NULL")
        return int(self.one("SELECT count(*) FROM pgdyno_load.undo")) if there else 0
