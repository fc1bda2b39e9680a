"""What a sample of the file costs this server: loaded into a copy of the table, measured, and rolled back."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass

from pgdyno.loader import sample, server, table
from pgdyno.loader.columns import with_name
from pgdyno.loader.compression import compression_of, plain_head
from pgdyno.loader.ready import PreparedLoad
from pgdyno.loader.sql import qualified, quoted

from ..base.session import Connection

_LSN = "SELECT pg_current_wal_insert_lsn()"
_PRIMARY_KEY = "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'p'"
_NUMBERED = re.compile(r"nextval\('(?:[^']|'')+'::regclass\)")
"""The default of a serial column."""
_CALLED = re.compile(r"(\w+)\s*\(")
TELLING_BYTES = 64 << 10
"""A shorter sample fills its pages by chance: a file of 60 bytes takes a table of 32 KiB, and tells nothing of another."""
_OF_OTHERS = """
SELECT EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
               WHERE p.proname = ANY(%s) AND n.nspname <> 'pg_catalog')
"""
"""Whether a function may be user-defined and advance a sequence, which no rollback undoes."""


@dataclass(frozen=True)
class SampleSizes:
    """One sample. Sizes in bytes."""

    input_bytes: int
    rows: int
    seconds: float
    """How long one session took to copy."""
    heap_bytes: int
    index_bytes: int
    wal_bytes: int | None
    """None with ``wal_level = minimal``, where a table of the same transaction has none. Others' WAL is in it."""
    decompress_bytes_per_s: float | None
    """Rate in uncompressed bytes, by one thread here; None if nothing is compressed."""

    @property
    def is_telling(self) -> bool:
        """Whether what it takes for each byte of the file holds for more of it."""
        return self.input_bytes >= TELLING_BYTES

    @property
    def stored_per_input_byte(self) -> float:
        """Bytes of table and indexes for each byte of the file."""
        return (self.heap_bytes + self.index_bytes) / max(1, self.input_bytes)

    @property
    def written_per_input_byte(self) -> float:
        """Bytes that reach the volume for each byte of the file: table, indexes, WAL."""
        return self.stored_per_input_byte + (self.wal_bytes or 0) / max(1, self.input_bytes)

    @property
    def bytes_per_s(self) -> float:
        """Rate of the file's bytes, by one session."""
        return self.input_bytes / max(1e-6, self.seconds)


def measure(connection: Connection, ready: PreparedLoad) -> SampleSizes | str:
    """Load the beginning of the first file into a copy of the table; why it could not be, where it could not.

    The copy has the table's columns, indexes and checks, and neither its triggers nor its foreign keys. Nothing of it
    remains, since its transaction is rolled back.
    """
    import psycopg

    first = ready.samples[0]
    data = sample.whole_rows(first.data, ready.format, header=ready.header)
    if not data:
        return "the beginning of the file holds no whole row"
    try:
        with connection.transaction(force_rollback=True):
            copy = _copy_of(connection, ready)
            before = server.one(connection, _LSN)[0]
            began = time.monotonic()
            with connection.cursor() as cursor:
                with server.usual_names(connection), cursor.copy(_statement(copy, ready).encode()) as copying:
                    copying.write(data)
                rows = cursor.rowcount
            seconds = time.monotonic() - began
            heap, indexes, wal, minimal = server.one(
                connection,
                "SELECT pg_table_size(%s::regclass), pg_indexes_size(%s::regclass),"
                " pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s::pg_lsn)::bigint,"
                " current_setting('wal_level') = 'minimal'",
                (copy, copy, before),
            )
    except psycopg.Error as error:
        return server.said(error)
    decompressed = _decompression(first.source.head)
    return SampleSizes(len(data), rows, seconds, int(heap), int(indexes), None if minimal else int(wal), decompressed)


def _copy_of(connection: Connection, ready: PreparedLoad) -> str:
    """An empty table like the one that is loaded, in this transaction only.

    An upsert's rows go into a table without indexes first, where a key may come twice.
    """
    name = f"pgdyno_sample_{secrets.token_hex(4)}"
    schema = table.schema_of(connection, ready.name) if ready.table is None else ready.table.schema
    full = qualified(schema, name)
    if ready.table is not None:
        # Without defaults, since one that calls nextval() would take numbers of the real table's sequence.
        without = "EXCLUDING DEFAULTS" + (" EXCLUDING INDEXES" if ready.is_staged else "")
        like = f"CREATE TABLE {full} (LIKE {ready.table.quoted} INCLUDING ALL {without})"
        server.run(connection, like)
        _fill(connection, ready, full)
    else:
        assert ready.definition is not None
        server.run(connection, with_name(ready.definition, ready.name, full))
        if ready.asked.upsert:
            key = server.one(connection, _PRIMARY_KEY, (full,))[0]
            server.run(connection, f"ALTER TABLE {full} DROP CONSTRAINT {quoted(key)}")
    return full


def _fill(connection: Connection, ready: PreparedLoad, copy: str) -> None:
    """Let columns that the file does not have be filled as in the table, and keys by a sequence of the copy's own."""
    loaded = {column.name for column in ready.loaded}
    for column in ready.target.columns:
        if column.name in loaded or column.generated or column.default is None:
            continue
        default = column.default
        if _NUMBERED.fullmatch(default):
            numbers = f"{quoted(ready.target.schema)}.{quoted(f'pgdyno_sample_{secrets.token_hex(4)}')}"
            server.run(connection, f"CREATE SEQUENCE {numbers}")
            literal = numbers.replace("'", "''")
            default = f"nextval('{literal}')"
        elif not _is_harmless(connection, default):
            continue
        server.run(connection, f"ALTER TABLE {copy} ALTER {column.quoted} SET DEFAULT {default}")


def _is_harmless(connection: Connection, default: str) -> bool:
    called = _CALLED.findall(default)
    # A name in quotes may be a function of any role.
    return '"' not in default and "nextval" not in called and not server.one(connection, _OF_OTHERS, (called,))[0]


def _statement(copy: str, ready: PreparedLoad) -> str:
    columns = f" ({', '.join(column.quoted for column in ready.columns)})" if ready.columns else ""
    return f"COPY {copy}{columns} FROM STDIN ({', '.join(ready.format.copy_options(ready.encoding))})"


def _decompression(head: bytes) -> float | None:
    if compression_of(head) == "none":
        return None
    began = time.monotonic()
    plain = plain_head(head, sample.PLAIN_BYTES_MAX)
    return len(plain) / max(1e-6, time.monotonic() - began)
