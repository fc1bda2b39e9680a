"""Parquet as what COPY reads: CSV with a header, made here while it is loaded.

It is the one format whose bytes do not reach the server as they are. Values are written as PostgreSQL reads them: strings
in quotes and NULL as nothing, so that an empty string stays one; bytes as ``\\x`` and hexadecimal digits, and as a UUID where the file
says so or the column is one. Row groups come in
their order, so that the same file makes the same text, and an interrupted load can be resumed.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pgdyno.loader import calendar, pipe
from pgdyno.loader.pipe import Pipe

from ..base.errors import InputError

Open: TypeAlias = Callable[[], Path | io.RawIOBase]
"""Where a file can be read; each reader opens it separately."""

MAGIC = b"PAR1"
UUID_BYTES = 16
BATCH_ROWS = 16_384
"""Rows that are converted at a time: some megabytes."""


@dataclass(frozen=True)
class ParquetReader:
    """A Parquet file as text."""

    head: bytes
    """Its beginning."""
    whole: bool
    """Whether that is all."""
    rows: int
    bytes: float
    """About how long all of the text will be."""
    types: dict[str, str]
    """Column -> its type in PostgreSQL."""
    sixteen: frozenset[str] = frozenset()
    """Columns of sixteen bytes that may be UUIDs: many programs write them without saying so."""
    uuids: frozenset[str] = frozenset()
    """Those of them that are written as UUIDs."""
    nanoseconds: tuple[str, ...] = ()
    """Columns of times that are finer than PostgreSQL's microseconds."""


def facts(name: str, opening: Open, bytes_max: int, uuids: frozenset[str] = frozenset()) -> ParquetReader:
    """What is known of a file. :class:`InputError` for a damaged one, and for columns that have no type in PostgreSQL.

    ``uuids``: columns of sixteen bytes that are written as UUIDs.
    """
    with _opened(name, opening) as file:
        schema = file.schema_arrow
        types = {field.name: "uuid" if field.name in uuids else _type(name, field) for field in schema}
        sixteen = frozenset(field.name for field in schema if _is_sixteen_bytes(field.type))
        fine = tuple(field.name for field in schema if _is_finer(field.type))
        text, rows = b"", 0
        for batch in file.iter_batches(batch_size=1024):
            text += _csv(batch, header=not rows, uuids=uuids)
            rows += batch.num_rows
            if len(text) >= bytes_max:
                break
        text = text or _csv(schema.empty_table(), header=True, uuids=uuids)
        every = int(file.metadata.num_rows)
        size = len(text) * max(1.0, every / max(1, rows))
        return ParquetReader(text, rows == every, every, size, types, sixteen, uuids, fine)


@contextlib.contextmanager
def piped(
    name: str, opening: Open, failed: list[BaseException], uuids: frozenset[str] = frozenset()
) -> Iterator[tuple[int, int]]:
    """The reading ends of a pipe that gives the whole file as CSV, and of the one that says so.

    What breaks it off is appended to ``failed`` at once, and raised with the block's end. Until then the pipe stays open: its
    end would look like that of the file, and its last chunk would be committed with bounds that no complete file has.
    """
    made = pipe.made()
    left = threading.Event()
    arguments = (name, opening, made, failed, left, uuids)
    thread = threading.Thread(target=_pour, args=arguments, name="pgdyno-parquet", daemon=True)
    thread.start()
    try:
        yield made.read
    finally:
        made.leave()
        left.set()
        thread.join()
    if failed:
        raise failed[0]


def _pour(
    name: str,
    opening: Open,
    to: Pipe,
    failed: list[BaseException],
    left: threading.Event,
    uuids: frozenset[str],
) -> None:
    """Write all of a file; after an error, wait until the reader has ``left``, whose own errors are not ours."""
    with (
        contextlib.suppress(BrokenPipeError),
        os.fdopen(to.telling, "wb", buffering=0) as end,
        os.fdopen(to.writing, "wb") as out,
    ):
        try:
            with _opened(name, opening) as file:
                begun = False
                for batch in file.iter_batches(batch_size=BATCH_ROWS):
                    out.write(_csv(batch, header=not begun, uuids=uuids))
                    begun = True
            out.flush()
            end.write(pipe.ALL)
        except BrokenPipeError:
            raise
        except BaseException as error:  # noqa: BLE001 (it is raised where the text is waited for)
            failed.append(error)
            left.wait()


@contextlib.contextmanager
def _opened(name: str, opening: Open) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        # Pages carry a checksum where the program that wrote them made one; pyarrow verifies it only on request.
        # Spark's INT96 holds every year, and Arrow's nanoseconds, as which it reads them, only 1677 to 2262: others would wrap around.
        options = {"page_checksum_verification": True, "coerce_int96_timestamp_unit": "us"}
        with parquet.ParquetFile(opening(), **options) as file:
            yield file
    except BrokenPipeError:
        raise  # of who takes the text, and not of the file
    except (pa.ArrowInvalid, OSError) as error:  # of a damaged page Arrow says OSError
        raise InputError(f"{name} is not a readable Parquet file: {error}", remedy="write it again") from None


def _csv(rows: Any, *, header: bool, uuids: frozenset[str] = frozenset()) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    for place, field in enumerate(table.schema):
        column = _written(table.column(place), as_uuid=field.name in uuids)
        if column is not None:
            table = table.set_column(place, field.name, column)
    sink = pa.BufferOutputStream()
    csv.write_csv(table, sink, csv.WriteOptions(include_header=header, quoting_style="needed"))
    return bytes(sink.getvalue())


def _written(column: Any, *, as_uuid: bool) -> Any | None:
    """A column in the form in which Arrow writes its values as PostgreSQL reads them; None where it is in that form."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        plain = column.cast(kind.value_type)
        return _or(_written(plain, as_uuid=as_uuid), plain)
    if isinstance(kind, pa.BaseExtensionType):
        stored = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        return _or(_written(stored, as_uuid=_is_uuid(kind)), stored)
    if as_uuid and _is_sixteen_bytes(kind):
        values = [None if value is None else str(uuid.UUID(bytes=value)) for value in column.to_pylist()]
        return pa.array(values, pa.string())
    if any(fits(kind) for fits in _bytes_kinds()):
        return pa.array([None if value is None else "\\x" + value.hex() for value in column.to_pylist()], pa.string())
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_timestamp(kind) and kind.tz not in (None, "UTC"):
        # Arrow writes offsets in hours and minutes; those of zones had seconds until 1972.
        plain = column.cast(pa.timestamp(kind.unit, "UTC"))
        return _or(calendar.written(plain), plain)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return calendar.written(column)
    return None


def _or(result: Any | None, other: Any) -> Any:
    return other if result is None else result


def _bytes_kinds() -> tuple[Callable[[Any], bool], ...]:
    import pyarrow as pa

    return (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)


def _is_uuid(kind: Any) -> bool:
    """Whether the file says that it is one (Parquet's logical type UUID)."""
    import pyarrow as pa

    return isinstance(kind, pa.UuidType)


def _is_sixteen_bytes(kind: Any) -> bool:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_fixed_size_binary(kind) and kind.byte_width == UUID_BYTES)


def _is_finer(kind: Any) -> bool:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool((pa.types.is_timestamp(kind) or pa.types.is_time64(kind)) and kind.unit == "ns")


def _type(file: str, field: Any) -> str:
    """A column's type in PostgreSQL."""
    import pyarrow as pa

    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    known = (
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_uint64, "numeric"),
        (pa.types.is_integer, "bigint"),
        (pa.types.is_float64, "double precision"),
        (pa.types.is_floating, "real"),
        (pa.types.is_decimal, "numeric"),
        (pa.types.is_date, "date"),
        (pa.types.is_time, "time"),
        *((fits, "bytea") for fits in _bytes_kinds()),
        (_is_uuid, "uuid"),
        (pa.types.is_string, "text"),
        (pa.types.is_large_string, "text"),
        (pa.types.is_string_view, "text"),
        (lambda kind: isinstance(kind, pa.JsonType), "json"),
        (pa.types.is_null, "text"),
    )
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    type_ = next((name for fits, name in known if fits(kind)), None)
    if type_ is None:
        raise InputError(
            f"{file}: the column {field.name} is {kind}, which has no type here",
            remedy="write the file without it, or as text",
            code="load.parquet.type",
            data={"source": file, "column": field.name, "type": str(kind)},
        )
    return type_
