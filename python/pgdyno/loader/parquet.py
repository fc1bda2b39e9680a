"""Parquet as what COPY reads: CSV with a header, made here while it is loaded.

It is the one format whose bytes do not reach the server as they are. Values are written as PostgreSQL reads them: strings
in quotes and NULL as nothing, so that an empty string stays one; bytes as ``\\x`` and hexadecimal digits. Row groups come in
their order, so that the same file makes the same text, and an interrupted load can go on.
"""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.errors import InputError
from pgdyno.loader import pipe

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pgdyno.loader.pipe import Pipe

    Open = Callable[[], Path | io.RawIOBase]
    """Where a file can be read; each reader opens it anew."""

MAGIC = b"PAR1"
BATCH_ROWS = 16_384
"""Rows that are converted at a time: some megabytes."""


@dataclass(frozen=True)
class Facts:
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


def facts(name: str, opening: Open, bytes_max: int) -> Facts:
    """What is known of a file. :class:`InputError` for a damaged one, and for columns that have no type in PostgreSQL."""
    with _opened(name, opening) as file:
        types = {field.name: _type(name, field) for field in file.schema_arrow}
        text, rows = b"", 0
        for batch in file.iter_batches(batch_size=1024):
            text += _csv(batch, header=not rows)
            rows += batch.num_rows
            if len(text) >= bytes_max:
                break
        text = text or _csv(file.schema_arrow.empty_table(), header=True)
        every = int(file.metadata.num_rows)
        return Facts(text, rows == every, every, len(text) * max(1.0, every / max(1, rows)), types)


@contextlib.contextmanager
def piped(name: str, opening: Open, failed: list[BaseException]) -> Iterator[tuple[int, int]]:
    """The reading ends of a pipe that gives the whole file as CSV, and of the one that says so.

    What breaks it off is appended to ``failed`` at once, and raised with the block's end. Until then the pipe stays open: its
    end would be that of the file for whoever reads it, whose last chunk would be committed with bounds that no whole file has.
    """
    made = pipe.made()
    left = threading.Event()
    arguments = (name, opening, made, failed, left)
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


def _pour(name: str, opening: Open, to: Pipe, failed: list[BaseException], left: threading.Event) -> None:
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
                    out.write(_csv(batch, header=not begun))
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
        with parquet.ParquetFile(opening()) as file:
            yield file
    except BrokenPipeError:
        raise  # of who takes the text, and not of the file
    except (pa.ArrowInvalid, OSError) as error:  # of a damaged page Arrow says OSError
        raise InputError(f"{name} is no Parquet file that can be read: {error}", remedy="write it again") from None


def _csv(rows: Any, *, header: bool) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    for place, field in enumerate(table.schema):
        is_coded = pa.types.is_dictionary(field.type)
        kind = field.type.value_type if is_coded else field.type
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            values = [None if value is None else "\\x" + value.hex() for value in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(values, pa.string()))
        elif is_coded:
            table = table.set_column(place, field.name, table.column(place).cast(kind))
    sink = pa.BufferOutputStream()
    csv.write_csv(table, sink, csv.WriteOptions(include_header=header, quoting_style="needed"))
    return bytes(sink.getvalue())


def _type(file: str, field: Any) -> str:
    """A column's type in PostgreSQL."""
    import pyarrow as pa

    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    known = (
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_uint64, "numeric"),
        (pa.types.is_integer, "bigint"),
        (pa.types.is_floating, "double precision"),
        (pa.types.is_decimal, "numeric"),
        (pa.types.is_date, "date"),
        (pa.types.is_time, "time"),
        (pa.types.is_binary, "bytea"),
        (pa.types.is_large_binary, "bytea"),
        (pa.types.is_string, "text"),
        (pa.types.is_large_string, "text"),
        (pa.types.is_null, "text"),
    )
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    found = next((name for fits, name in known if fits(kind)), None)
    if found is None:
        raise InputError(
            f"{file}: the column {field.name} is {kind}, which has no type here",
            remedy="write the file without it, or as text",
        )
    return found
