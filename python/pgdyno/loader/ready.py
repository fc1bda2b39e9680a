"""Everything that is known before the first byte goes: files, format, header, table, columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.loader import advice, column_types, columns, sample, server, source, table, upsert
from pgdyno.loader import format as formats
from pgdyno.loader.asked import LoadOptions
from pgdyno.loader.column_types import ColumnTypes
from pgdyno.loader.format import Format
from pgdyno.loader.note import LoadNote
from pgdyno.loader.remote import S3
from pgdyno.loader.sample import SourceSample
from pgdyno.loader.server import ServerFacts
from pgdyno.loader.source import RowSource
from pgdyno.loader.sql import qualified
from pgdyno.loader.table import TableColumn, TargetTable
from pgdyno.loader.transfer import Tell

from ..base.endpoint import Endpoint
from ..base.errors import InputError, ObjectChanged, ObjectDamaged
from ..base.session import Connection

HEAP_PER_INPUT_BYTE = 1.28
"""Bytes of a table for each byte of CSV (measured: rows of 98 bytes, five columns)."""

SHOWN_CHARACTERS = 80
"""Remedy for a first row that may be names or data."""
_CONVERT = "SELECT convert(header, %s, getdatabaseencoding()) FROM unnest(%s::bytea[]) AS header"
_END_NAMES = {b"\n": "LF", b"\r": "CR", b"\r\n": "CR LF"}


@dataclass(frozen=True)
class PreparedLoad:
    """A load that could begin."""

    asked: LoadOptions
    facts: ServerFacts
    samples: Sequence[SourceSample]
    format: Format
    encoding: str
    header: bool
    name: str
    """The table's, as it was asked for."""
    table: TargetTable | None
    """None: it is to be made."""
    columns: Sequence[TableColumn] | None
    """Columns of the files' values, in their order; None: all columns of the table."""
    definition: str | None
    """``CREATE TABLE``, when it is to be made."""
    keys: tuple[TableColumn, ...] = ()
    """Key columns of an upsert; none if rows are added."""
    empty: tuple[str, ...] = ()
    """Empty files, which are omitted."""
    types: ColumnTypes | None = None
    """The types of a table that is to be made, where the files are text."""
    endpoint: Endpoint | None = None
    """How the engine reaches the server, where it is the engine that loads."""

    @property
    def target(self) -> TargetTable:
        """The table, which is there."""
        assert self.table is not None, "it is created before anything is loaded"
        return self.table

    @property
    def loaded(self) -> Sequence[TableColumn]:
        """The columns that the files have values of, in their order."""
        return self.columns or self.target.loadable

    @property
    def first(self) -> SourceSample:
        """The first file that has rows: what the format, the header and the columns are taken from."""
        return _first(self.samples)

    @property
    def sources(self) -> list[RowSource]:
        """The files."""
        return [sample.source for sample in self.samples]

    @property
    def is_staged(self) -> bool:
        """Whether rows go into a table of their own first, and are merged into the target."""
        return self.asked.is_staged

    @property
    def notes(self) -> list[LoadNote]:
        """What is to be known of the files before they are loaded."""
        known = () if self.table is None else self.loaded
        signs = advice.notes(self.samples, self.format, known, header=self.header) if not self.is_columnar else []
        return [*map(LoadNote, self._of_files()), *signs]

    @property
    def is_columnar(self) -> bool:
        """Whether the files are Parquet, which has nothing to guess."""
        return any(source.parquet is not None for source in self.sources)

    def _of_files(self) -> list[str]:
        notes = [f"{_and_more(self.empty)}: empty, and omitted"] if self.empty else []
        if self.definition is not None and not self.header and self.asked.header is None and not self.asked.columns:
            notes.append(
                "no header was found, so the columns are named by numbers; --header uses the first row as names"
            )
        objects = [source.remote for source in self.sources if source.remote is not None and source.parquet is None]
        texts = [remote.name for remote in objects if remote.object.facts.checksum is None]
        if texts:
            notes.append(f"{_and_more(texts)}: no checksum to verify, only length and ETag")
        fine = [source for source in self.sources if source.parquet is not None and source.parquet.nanoseconds]
        if fine and fine[0].parquet is not None:
            listed = ", ".join(fine[0].parquet.nanoseconds)
            notes.append(
                f"{_and_more([source.name for source in fine])}: {listed} in nanoseconds; PostgreSQL keeps microseconds, and rounds"
            )
        local = self._without_zone()
        if local is not None:
            notes.append(
                f"{local} has a time zone in the file and none in the table: the table gets the time of UTC (timestamptz keeps the instant)"
            )
        marked = [sample.source.name for sample in self.samples if sample.byte_order_mark]
        if marked and not self.header:
            notes.append(f"{_and_more(marked)}: begins with a byte order mark, which becomes part of its first value")
        return notes

    def _without_zone(self) -> str | None:
        """The first column of instants in a Parquet file whose column in the table has no time zone."""
        if self.table is None:
            return None
        for row_source in self.sources:
            types = () if row_source.parquet is None else row_source.parquet.types.values()
            for kind, column in zip(types, self.loaded, strict=False):
                if kind == "timestamptz" and column.type.endswith("without time zone"):
                    return column.name
        return None

    @property
    def failure(self) -> ObjectChanged | ObjectDamaged | None:
        """Why what came of an object must not be gone on with."""
        return next((source.remote.failure for source in self.sources if source.remote and source.remote.failure), None)

    @property
    def bytes_total(self) -> float | None:
        """Uncompressed, about."""
        return sample.total(self.samples)

    @property
    def rows_total(self) -> float | None:
        """About; by the first file's rows."""
        size = self.bytes_total
        return None if size is None else size / self.first.bytes_per_row(self.format)

    def rows_before(self) -> float:
        """The approximate number of rows: the server's estimate, or from the size if the table was never analyzed."""
        if self.table is None:
            return 0.0
        by_size = self.table.bytes / HEAP_PER_INPUT_BYTE / self.first.bytes_per_row(self.format)
        return self.table.rows or by_size

    def options(self) -> dict[str, object]:
        """What the plan keeps, beside the files."""
        upserted = {"upsert": [key.name for key in self.keys]} if self.keys else {}
        skipped = {} if self.asked.on_conflict is None else {"on_conflict": self.asked.on_conflict}
        return {
            **upserted,
            **skipped,
            "format": self.format.document(),
            "encoding": self.encoding,
            "header": self.header,
            "columns": None if self.columns is None else [column.name for column in self.columns],
            **self.asked.chunks.plan(),
            "rejects": None if self.asked.reject is None else str(self.asked.reject.absolute()),
        }


def get_ready(connection: Connection, options: LoadOptions) -> PreparedLoad:
    """Look at files and table, and refuse what does not fit. Nothing is changed."""
    result = source.find(options.sources, S3(options.s3_endpoint, options.s3_anonymous))
    sources = [item for item in result if not item.is_empty]
    empty = tuple(item.name for item in result if item.is_empty)
    if options.reject is not None:
        _require_another_file(options.reject, sources)
    names = [item.file_name for item in result]
    columnar = _parquet_only(options, sources)
    formatted = formats.CSV if columnar else formats.choose(options, names)
    if columnar:
        options = replace(options, header=True)
    facts = server.facts(connection)
    encoding = server.check_encoding(connection, options.encoding)
    reached = server.reach(connection, options.into, None if columnar else encoding)
    samples = [sample.take(source, formatted, encoding) for source in sources]
    if not columnar:
        for other in samples:
            advice.refuse_separator_line(other, formatted)
    name = table.name_of(options.table, names)
    there = table.find(connection, name)
    if there is not None:
        table.check(connection, there, truncate=options.truncate, upsert=bool(options.upsert), staged=options.is_staged)
        ready = PreparedLoad(
            options, facts, samples, formatted, encoding, False, name, there, None, None, empty=empty, endpoint=reached
        )
        return _fitted(connection, ready)
    if not options.create:
        raise InputError(
            f"there is no table {name}", remedy="create it, use --create, or name another one with --table"
        )
    columns.require_short_table(table.parts(connection, name)[-1])
    first = _first(samples)
    if not columnar and not options.columns:
        advice.refuse_trailing_delimiter(first, formatted, None, header=options.header)
    header = _header(options, first, ())
    if header:
        _require_readable_headers(connection, samples, formatted, encoding)
    given = _names(options, first, formatted, encoding, header=header)
    types = None if columnar else column_types.of_samples([first], formatted, given, header=header)
    kinds = list(first.source.parquet.types.values()) if first.source.parquet is not None else []
    definition = columns.definition(name, given, kinds if types is None else types.types, options.upsert)
    seen = (options, facts, samples, formatted, encoding, header, name)
    return PreparedLoad(*seen, None, None, definition, empty=empty, types=types, endpoint=reached)


def typed(ready: PreparedLoad, tell: Tell) -> PreparedLoad:
    """With types by all rows of the files in place of those by their beginning. All of the files are read for that."""
    if ready.types is None:
        return ready
    names = [column.column for column in ready.types.columns]
    samples = [sample for sample in ready.samples if sample.data]
    types = column_types.of_files(samples, ready.format, names, tell, header=ready.header)
    definition = columns.definition(ready.name, names, types.types, ready.asked.upsert)
    return replace(ready, types=types, definition=definition)


def created(connection: Connection, ready: PreparedLoad) -> PreparedLoad:
    """Make the table. :class:`InputError` with what the server has against it."""
    import psycopg

    assert ready.definition is not None
    whole = qualified(table.schema_of(connection, ready.name), table.parts(connection, ready.name)[-1])
    with connection.transaction():
        try:
            server.run(connection, columns.with_name(ready.definition, ready.name, whole))
        except psycopg.Error as error:
            raise InputError(
                f"the table {ready.name} cannot be created: {server.said(error)}",
                remedy="create it yourself, or name another one",
            ) from None
        made = table.find(connection, ready.name)
        assert made is not None, "it was created just now"
        # From here on as if it had been there: a second run of the same command finds the same plan. What is refused now
        # is refused with the table.
        return _fitted(connection, replace(ready, table=made))


def _fitted(connection: Connection, ready: PreparedLoad) -> PreparedLoad:
    """With the columns of its table."""
    options, first = ready.asked, ready.first
    others = [sample for sample in ready.samples if sample is not first and sample.data]
    known = ready.target.loadable
    width = len(options.columns) if options.columns else len(known)
    if not ready.is_columnar:
        for sample in ready.samples:
            advice.refuse_trailing_delimiter(sample, ready.format, width, header=options.header)
    header = _header(options, first, known)
    given = columns.header_names(first.rows, options.rename)
    chosen = columns.chosen(given, known, options.columns, options.rename, header)
    for sample in ready.samples:
        where = f" of {sample.source.name}" if len(ready.samples) > 1 else ""
        columns.check_width(sample.rows, len(chosen or known), ready.format, sample.first_line, where)
    if header:
        _require_one_header(first, others, known, chosen, options)
        _require_readable_headers(connection, ready.samples, ready.format, ready.encoding)
    elif options.header is None:
        _require_no_header(first, others, known, options)
    if options.reject is not None:
        _require_one_line_end(ready.samples, ready.format)
    keys = upsert.keys_of(connection, options.upsert, ready.target, chosen or known)
    if options.on_conflict is not None:
        upsert.require_conflicts(connection, ready.target, chosen or known)
    samples = [_with_uuids(sample, chosen or known, ready) for sample in ready.samples]
    return replace(ready, samples=samples, header=header, columns=chosen, keys=keys)


def _with_uuids(source_sample: SourceSample, meant: Sequence[TableColumn], ready: PreparedLoad) -> SourceSample:
    """A Parquet file whose sixteen bytes are text as a UUID has it, where the column of the table is one."""
    if source_sample.source.parquet is None:
        return source_sample
    types = {name: column.type for name, column in zip(source_sample.source.parquet.types, meant, strict=False)}
    texts = {name for name in source_sample.source.parquet.sixteen if types.get(name) == "uuid"}
    return (
        sample.take(source.with_uuids(source_sample.source, texts), ready.format, ready.encoding)
        if texts
        else source_sample
    )


def _parquet_only(options: LoadOptions, sources: Sequence[RowSource]) -> bool:
    """Whether the files are Parquet: all or none, and without options that are about text."""
    kinds = {source.parquet is not None for source in sources}
    if kinds == {False}:
        return False
    if len(kinds) > 1:
        raise InputError("some of the files are Parquet and some are not", remedy="load them one by one")
    text = (options.format, options.delimiter, options.quote, options.escape, options.null, options.columns or None)
    if any(option is not None for option in text) or options.header is False or options.encoding != "UTF8":
        raise InputError(
            "Parquet has no delimiter, quotes, NULL text or encoding, and names its columns",
            remedy="omit these options; --rename maps a name to a column",
        )
    return True


def _first(samples: Sequence[SourceSample]) -> SourceSample:
    """The first with content: a compressed file may have none."""
    return next((sample for sample in samples if sample.data), samples[0])


def _header(options: LoadOptions, first: SourceSample, known: Sequence[TableColumn]) -> bool:
    """Whether the first row has names: as was said, else as it looks, and never by a guess that could lose a row."""
    if options.header is not None:
        return options.header
    header = columns.is_header(first.rows, known, options.rename) if known else columns.is_header_of_new(first.rows)
    if header is None or (options.columns and (header or columns.looks_like_names(first.rows))):
        why = ", and --columns does not say which" if options.columns else ""
        raise InputError(
            f"the first row of {first.source.name} may be names or data{why}: {first.first_line[:SHOWN_CHARACTERS]}",
            remedy="use --header if it has names, --no-header if it is data",
        )
    return header


def _names(options: LoadOptions, first: SourceSample, formatted: Format, encoding: str, *, header: bool) -> list[str]:
    """The columns of a table that is to be made. :class:`InputError` where the file's rows do not fit them."""
    if not first.rows:
        raise InputError(
            f"{first.source.name} has no complete row in its beginning, so no table can be created from it",
            remedy="create the table",
        )
    names = list(options.columns)
    if not names and header:
        names = columns.header_names(first.rows, options.rename)
        columns.require_names(names, first.source.name)
    names = names or [f"column{number + 1}" for number in range(len(first.rows[0]))]
    columns.require_short(names, of_option=bool(options.columns))
    if first.source.parquet is not None:
        return names
    other = sample.other_delimiter(first, formatted, encoding) if options.delimiter is None else None
    if other is not None and len(names) == 1 and all(len(row) == 1 for row in first.rows):
        shown, written = formats.shown_delimiter(other[0])
        raise InputError(
            f"{first.source.name} would be one column, and with {shown} as the delimiter all its rows have {other[1]} values",
            remedy=f"use --delimiter {written}, or --delimiter {formats.shown_delimiter(formatted.delimiter)[1]} for one column",
        )
    escape = advice.backslash_quotes(first, formatted) is not None
    rows = first.rows[1:] if header else first.rows
    wrong = advice.width_error(rows, len(names), first.source.name, other, escape=escape)
    if wrong is not None:
        raise wrong
    return names


def _require_one_header(
    first: SourceSample,
    others: Sequence[SourceSample],
    known: Sequence[TableColumn],
    chosen: Sequence[TableColumn] | None,
    options: LoadOptions,
) -> None:
    """Files of one load have one header, or values would go to other columns. Capitals matter as little as for one file."""

    def means(sample: SourceSample) -> object:
        names = columns.header_names(sample.rows, options.rename)
        return [name.strip().lower() for name in names] if options.columns else columns.named(names, known)

    meant = means(first) if options.columns else chosen
    other = next((sample for sample in others if means(sample) != meant), None)
    if other is not None:
        raise InputError(
            f"the first row of {other.source.name} is not the header of {first.source.name}",
            remedy="load them one by one, or use --no-header",
        )


def _require_no_header(
    first: SourceSample, others: Sequence[SourceSample], known: Sequence[TableColumn], options: LoadOptions
) -> None:
    """Where the first file has no header the others have none either, or it would be loaded as a row."""
    other = next((sample for sample in others if columns.is_header(sample.rows, known, options.rename)), None)
    if other is not None:
        raise InputError(
            f"{other.source.name} has a header, and {first.source.name} has none",
            remedy="load them one by one, or use --no-header if the first row is data",
        )


def _require_readable_headers(
    connection: Connection, samples: Sequence[SourceSample], formatted: Format, encoding: str
) -> None:
    """Headers are not sent to COPY, so the server checks that they are valid text, before anything is changed."""
    import psycopg

    def convert(headers: list[bytes]) -> None:
        with connection.transaction():
            server.many(connection, _CONVERT, (encoding, headers))

    first_rows = [sample.first_row(formatted) for sample in samples]
    try:
        convert(first_rows)
    except psycopg.Error:
        for sample, row in zip(samples, first_rows, strict=True):
            try:
                convert([row])
            except psycopg.Error as error:
                remedy = (
                    "remove the NUL characters, which PostgreSQL does not store in text"
                    if b"\0" in row
                    else "name the file's encoding with --encoding, as LATIN1 or WIN1252"
                )
                raise InputError(f"the header of {sample.source.name}: {server.said(error)}", remedy=remedy) from None
        raise


def _and_more(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    return names[0] + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")


def _require_another_file(reject: Path, sources: Sequence[RowSource]) -> None:
    """Rejected rows take the place of what is at their path, also after an error: of rows that are yet to be loaded."""
    place = reject.resolve()
    same = next((source for source in sources if source.remote is None and Path(source.name).resolve() == place), None)
    if same is not None:
        raise InputError(
            f"--reject {reject} is a file to be loaded, and rejected rows would overwrite it",
            remedy="name another file for them",
        )


def _require_one_line_end(samples: Sequence[SourceSample], formatted: Format) -> None:
    """Rows that are rejected go into one file, which could not be loaded if its lines ended in several ways."""
    first: tuple[SourceSample, bytes] | None = None
    for source_sample in samples:
        end = sample.line_end(source_sample, formatted)
        if end is None:
            continue
        if first is None:
            first = source_sample, end
        elif end != first[1]:
            raise InputError(
                f"lines of {source_sample.source.name} end in {_END_NAMES[end]}, and those of {first[0].source.name} in"
                f" {_END_NAMES[first[1]]}: their rejected rows cannot share one file",
                remedy="load them separately, each kind with its own --reject",
            )
