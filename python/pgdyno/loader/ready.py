"""Everything that is known before the first byte goes: files, format, header, table, columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.errors import InputError
from pgdyno.loader import columns, sample, server, source, table, upsert
from pgdyno.loader import format as formats
from pgdyno.loader.remote import S3

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.errors import ObjectChanged, ObjectDamaged
    from pgdyno.loader.asked import Asked
    from pgdyno.loader.format import Format
    from pgdyno.loader.sample import Sample
    from pgdyno.loader.server import Connection, Facts
    from pgdyno.loader.source import Source
    from pgdyno.loader.table import Column, Table

HEAP_PER_INPUT_BYTE = 1.28
"""Bytes of a table for each byte of CSV (measured: rows of 98 bytes, five columns)."""

_END_NAMES = {b"\n": "LF", b"\r": "CR", b"\r\n": "CR LF"}


@dataclass(frozen=True)
class Ready:
    """A load that could begin."""

    asked: Asked
    facts: Facts
    samples: Sequence[Sample]
    format: Format
    encoding: str
    header: bool
    name: str
    """The table's, as it was asked for."""
    table: Table | None
    """None: it is to be made."""
    columns: Sequence[Column] | None
    """Of the files' values, in their order; None: all of the table's."""
    definition: str | None
    """``CREATE TABLE``, when it is to be made."""
    keys: tuple[Column, ...] = ()
    """Of an upsert; none where rows are added."""

    @property
    def target(self) -> Table:
        """The table, which is there."""
        assert self.table is not None, "it is made before anything is loaded"
        return self.table

    @property
    def loaded(self) -> Sequence[Column]:
        """The columns that the files have values of, in their order."""
        return self.columns or self.target.loadable

    @property
    def sources(self) -> list[Source]:
        """The files."""
        return [one.source for one in self.samples]

    @property
    def notes(self) -> list[str]:
        """What is to be known of the files before they are loaded."""
        objects = [one.remote for one in self.sources if one.remote is not None and one.parquet is None]
        found = [one.name for one in objects if one.object.facts.checksum is None]
        more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        notes = [f"{found[0]}{more}: no checksum to be held to, only length and ETag"] if found else []
        marked = [one.source.name for one in self.samples if one.byte_order_mark]
        if marked and not self.header:
            more = f" and {len(marked) - 1:,} more" if len(marked) > 1 else ""
            notes.append(f"{marked[0]}{more}: begins with a byte order mark, which becomes part of its first value")
        return notes

    @property
    def failure(self) -> ObjectChanged | ObjectDamaged | None:
        """Why what came of an object must not be gone on with."""
        return next((one.remote.failure for one in self.sources if one.remote and one.remote.failure), None)

    @property
    def bytes_total(self) -> float | None:
        """Uncompressed, about."""
        return sample.total(self.samples)

    @property
    def rows_total(self) -> float | None:
        """About; by the first file's rows."""
        size = self.bytes_total
        return None if size is None else size / self.samples[0].bytes_per_row(self.format)

    def rows_before(self) -> float:
        """Of the table, about: what the server says, or its size where it was never analyzed."""
        if self.table is None:
            return 0.0
        by_size = self.table.bytes / HEAP_PER_INPUT_BYTE / self.samples[0].bytes_per_row(self.format)
        return self.table.rows or by_size

    def options(self) -> dict[str, object]:
        """What the plan keeps, beside the files."""
        upserted = {"upsert": [key.name for key in self.keys]} if self.keys else {}
        return {
            **upserted,
            "format": self.format.document(),
            "encoding": self.encoding,
            "header": self.header,
            "columns": None if self.columns is None else [column.name for column in self.columns],
            "chunk_bytes": self.asked.chunk_bytes,
            "chunk_bytes_max": self.asked.chunk_bytes_max,
            "chunk_bytes_last": self.asked.chunk_bytes_last,
            "rejects": None if self.asked.reject is None else str(self.asked.reject.absolute()),
        }


def get_ready(connection: Connection, asked: Asked) -> Ready:
    """Look at files and table, and refuse what does not fit. Nothing is changed."""
    sources = source.find(asked.sources, S3(asked.s3_endpoint, asked.s3_anonymous))
    if asked.reject is not None:
        _require_another_file(asked.reject, sources)
    names = [one.file_name for one in sources]
    columnar = _parquet_only(asked, sources)
    formatted = formats.CSV if columnar else formats.choose(asked, names)
    if columnar:
        asked = replace(asked, header=True)
    facts = server.facts(connection)
    encoding = server.check_encoding(connection, asked.encoding)
    samples = [sample.take(one, formatted, encoding) for one in sources]
    name = table.name_of(asked.table, names)
    there = table.find(connection, name)
    if there is not None:
        table.check(connection, there, truncate=asked.truncate, upsert=bool(asked.upsert))
        return _fitted(connection, Ready(asked, facts, samples, formatted, encoding, False, name, there, None, None))
    if not asked.create:
        raise InputError(
            f"there is no table {name}", remedy="make it, let --create do it, or name another with --table"
        )
    first = samples[0]
    header = _header(asked, first, ())
    definition = _definition(asked, name, first, header=header)
    return Ready(asked, facts, samples, formatted, encoding, header, name, None, None, definition)


def created(connection: Connection, ready: Ready) -> Ready:
    """Make the table. :class:`InputError` with what the server has against it."""
    import psycopg

    assert ready.definition is not None
    try:
        server.run(connection, ready.definition)
    except psycopg.Error as error:
        raise InputError(
            f"the table {ready.name} cannot be made: {server.said(error)}", remedy="make it yourself, or name another"
        ) from None
    made = table.find(connection, ready.name)
    assert made is not None, "it was made just now"
    # From here on as if it had been there: a second run of the same command finds the same plan.
    return _fitted(connection, replace(ready, table=made))


def _fitted(connection: Connection, ready: Ready) -> Ready:
    """With the columns of its table."""
    asked, first = ready.asked, ready.samples[0]
    known = ready.target.loadable
    header = _header(asked, first, known)
    given = columns.header_names(first.rows, asked.rename)
    chosen = columns.chosen(given, known, asked.columns, asked.rename, header)
    for one in ready.samples:
        where = f" of {one.source.name}" if len(ready.samples) > 1 else ""
        columns.check_width(one.rows, len(chosen or known), ready.format, one.first_line, where)
    if header:
        _require_one_header(ready.samples)
    if asked.reject is not None:
        _require_one_line_end(ready.samples, ready.format)
    keys = upsert.keys_of(connection, asked.upsert, ready.target, chosen or known)
    return replace(ready, header=header, columns=chosen, keys=keys)


def _parquet_only(asked: Asked, sources: Sequence[Source]) -> bool:
    """Whether the files are Parquet: all or none, and without options that are about text."""
    kinds = {one.parquet is not None for one in sources}
    if kinds == {False}:
        return False
    if len(kinds) > 1:
        raise InputError("some of the files are Parquet and some are not", remedy="load them one by one")
    text = (asked.format, asked.delimiter, asked.quote, asked.escape, asked.null, asked.columns or None)
    if any(option is not None for option in text) or asked.header is False or asked.encoding != "UTF8":
        raise InputError(
            "Parquet has neither a delimiter, quotes, NULLs to be told nor an encoding, and names its columns",
            remedy="leave these options away; --rename says which column a name means",
        )
    return True


def _header(asked: Asked, first: Sample, known: Sequence[Column]) -> bool:
    """Whether the first row has names: as was said, else as it looks, and never by a guess that could lose a row."""
    if asked.header is not None:
        return asked.header
    like_names = columns.looks_like_names(first.rows)
    if asked.columns:
        if like_names:
            raise InputError(
                "the first row may be names or values, and --columns does not say which",
                remedy="say --header or --no-header",
            )
        return False
    if not known:
        return like_names
    names = {name.strip().lower() for name in columns.header_names(first.rows, asked.rename)}
    # Some names of columns and others: a header that does not fit, which is refused, and not a row.
    return like_names and bool(names & {column.name.lower() for column in known})


def _definition(asked: Asked, name: str, first: Sample, *, header: bool) -> str:
    if not first.rows:
        raise InputError(
            f"{first.source.name} has no whole row in its beginning to make a table from", remedy="make the table"
        )
    names = list(asked.columns) or (columns.header_names(first.rows, asked.rename) if header else [])
    names = names or [f"column{number + 1}" for number in range(len(first.rows[0]))]
    known = first.source.parquet
    kinds = None if known is None else list(known.types.values())
    return columns.definition(name, names, first.rows[1:] if header else first.rows, kinds, asked.upsert)


def _require_one_header(samples: Sequence[Sample]) -> None:
    """Files of one load have one header, or values would go to other columns."""
    first = samples[0]
    other = next((one for one in samples[1:] if one.rows[:1] != first.rows[:1]), None)
    if other is not None:
        raise InputError(
            f"the first row of {other.source.name} is not the header of {first.source.name}",
            remedy="load them one by one, or say --no-header",
        )


def _require_another_file(reject: Path, sources: Sequence[Source]) -> None:
    """Rejected rows take the place of what is at their path, also after an error: of rows that are yet to be loaded."""
    place = reject.resolve()
    same = next((one for one in sources if one.remote is None and Path(one.name).resolve() == place), None)
    if same is not None:
        raise InputError(
            f"--reject {reject} is a file that is loaded, and rejected rows would take its place",
            remedy="name another file for them",
        )


def _require_one_line_end(samples: Sequence[Sample], formatted: Format) -> None:
    """Rows that are rejected go into one file, which could not be loaded if its lines ended in several ways."""
    first: tuple[Sample, bytes] | None = None
    for one in samples:
        end = sample.line_end(one, formatted)
        if end is None:
            continue
        if first is None:
            first = one, end
        elif end != first[1]:
            raise InputError(
                f"lines of {one.source.name} end in {_END_NAMES[end]}, and those of {first[0].source.name} in"
                f" {_END_NAMES[first[1]]}: their rejected rows would not fit into one file",
                remedy="load them apart, each kind with a --reject of its own",
            )
