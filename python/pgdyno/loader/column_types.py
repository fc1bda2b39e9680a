"""Types for the columns of a table that is to be made: of each column the narrowest one that returns every value as it is written.

The engine reads all of the files before the table is made, which costs about a tenth of what COPY does with them. What can be read
only once gets its types from the beginning, and the engine then holds each later row to them before it is sent.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgdyno.loader import pipe, sample, server, source
from pgdyno.loader.compression import compression_of
from pgdyno.loader.format import Format
from pgdyno.loader.note import LoadNote
from pgdyno.loader.pipe import Pipe
from pgdyno.loader.sample import SourceSample
from pgdyno.loader.transfer import Tell

from ..base import engine
from ..base.session import Connection

TEXT = "text"
NOTES_MAX = 5
"""Columns of which is said why they are text; a table has up to 1,600."""
MANY_ROWS = 100
"""From this line on a column that turns out to be text is a surprise, whatever the value is."""
_LIKE_A_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*|[+-]?inf(inity)?|nan", re.IGNORECASE)
_LIKE_A_TIME = re.compile(r"\s*\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}.*)?\s*")
_COMMA = re.compile(r"[+-]?\d{1,3}(\.\d{3})*,\d+|[+-]?\d+,\d+")


@dataclass(frozen=True)
class LossyValue:
    """The first value that a column's type would not return as it is."""

    type: str
    """The type that returned all values before it; ``text`` if it is the first."""
    value: str
    source: str
    line: int


@dataclass(frozen=True)
class ColumnType:
    """A column's type, and why it is not a narrower one."""

    column: str
    type: str
    kinds: int = 0
    """How the values are written: the engine's own number, which it is given again for the rest of a stream."""
    lost: LossyValue | None = None
    words: Mapping[str, int] = field(default_factory=dict)
    """Words for missing values, as ``NULL`` and ``NA``, with their number of rows."""
    without_words: str = TEXT
    """The type if those were NULL."""

    def document(self) -> dict[str, Any]:
        """As the engine takes it."""
        return {"column": self.column, "type": self.type, "kinds": self.kinds}


@dataclass(frozen=True)
class ColumnTypes:
    """The types of all columns."""

    columns: Sequence[ColumnType]
    rows: int
    """Rows that were read."""
    seconds: float
    is_whole: bool
    """Whether all rows were read; otherwise the rest is either held to the types, or all columns are text."""

    @property
    def types(self) -> list[str]:
        """By column."""
        return [column.type for column in self.columns]


def of_samples(
    samples: Sequence[SourceSample], formatted: Format, names: Sequence[str], *, header: bool
) -> ColumnTypes:
    """By the beginning of files."""
    with contextlib.ExitStack() as stack:
        placed = [stack.enter_context(_beginning(sample, formatted)) for sample in samples if sample.rows]
        return _asked(placed, formatted, names, header=header)


def of_files(
    samples: Sequence[SourceSample], formatted: Format, names: Sequence[str], tell: Tell, *, header: bool
) -> ColumnTypes:
    """By all of the files, and by the beginning of streams. Raises what the engine says of a file that cannot be read."""
    failed: list[BaseException] = []
    read_once = [sample for sample in samples if sample.source.stream is not None]
    with contextlib.ExitStack() as stack:
        again = [sample.source for sample in samples if sample.source.stream is None]
        places, descriptors = stack.enter_context(source.opened(again, failed))
        placed: list[tuple[Mapping[str, Any], Sequence[int]]] = [
            ({**place, "compression": compression_of(source.head), "name": source.name}, descriptors)
            for source, place in zip(again, places, strict=True)
        ]
        placed += [stack.enter_context(_beginning(sample, formatted)) for sample in read_once if sample.rows]
        return _asked(
            placed, formatted, names, header=header, tell=tell, bytes_total=sample.total(samples), failed=failed
        )


def _asked(
    placed: Sequence[tuple[Mapping[str, Any], Sequence[int]]],
    formatted: Format,
    names: Sequence[str],
    *,
    header: bool,
    tell: Tell | None = None,
    bytes_total: float | None = None,
    failed: Sequence[BaseException] = (),
) -> ColumnTypes:
    """The engine's answer. ``failed`` gets what breaks off a source that is given from here."""
    document = {
        "sources": [place for place, _ in placed],
        "format": formatted.document(),
        "header": header,
        "columns": len(names),
    }
    descriptors = tuple(dict.fromkeys(number for _, numbers in placed for number in numbers))
    last: Mapping[str, Any] = {}
    with contextlib.closing(engine.lines(["types"], document, pass_fds=descriptors)) as lines:
        for line in lines:
            if failed:
                raise failed[0]
            last = line
            if tell is not None and line["event"] == "progress":
                share = min(1.0, line["bytes"] / bytes_total) if bytes_total else 0.0
                tell({"event": "step", "share": share, "text": "reading all rows for the types of the columns"})
    columns = [_column(name, answer) for name, answer in zip(names, last["columns"], strict=True)]
    return ColumnTypes(columns, int(last["rows"]), float(last["elapsed_ms"]) / 1e3, bool(last["whole"]))


def _column(name: str, answer: Mapping[str, Any]) -> ColumnType:
    lost = answer["lost"]
    return ColumnType(
        name,
        answer["type"],
        answer["kinds"],
        None if lost is None else LossyValue(lost["type"], lost["value"], lost["source"], lost["line"]),
        answer["words"],
        answer["without_words"],
    )


def notes(connection: Connection, types: ColumnTypes) -> list[LoadNote]:
    """Why columns are text that one would take for something narrower: what the server would make of their values."""
    notes = [note for column in types.columns if (note := _note(connection, column)) is not None]
    if len(notes) <= NOTES_MAX:
        return notes
    more = LoadNote(f"{len(notes) - NOTES_MAX:,} more columns are text for such reasons", "load.type.text")
    return [*notes[:NOTES_MAX], more]


def _note(connection: Connection, column: ColumnType) -> LoadNote | None:
    lost = column.lost
    if column.words and column.without_words != TEXT:
        listed = " and ".join(f"`{word}`" for word in column.words)
        count = sum(column.words.values())
        word = next(iter(column.words))
        return LoadNote(
            f"{column.column} is text: {count:,} value{' is' if count == 1 else 's are'} {listed}, and all others"
            f" {column.without_words}; if that means NULL, use --null '{word}' (then nothing between two delimiters is not NULL any more)",
            "load.type.null_word",
        )
    if lost is None or column.type != TEXT:
        return None
    where = f"`{lost.value}` ({lost.source} line {lost.line:,})"
    if _COMMA.fullmatch(lost.value):
        return LoadNote(
            f"{column.column} is text: {where} has a decimal comma or commas between thousands, which no numeric type reads",
            "load.type.comma",
        )
    if lost.type == TEXT:
        return None
    pattern = _LIKE_A_NUMBER if lost.type in ("bigint", "numeric", "double precision") else _LIKE_A_TIME
    if pattern.fullmatch(lost.value):
        return LoadNote(f"{column.column} is text: {where} {_returned(connection, lost)}", "load.type.text")
    if lost.line >= MANY_ROWS:
        return LoadNote(
            f"{column.column} is text: {where} is not {lost.type}, as the rows before it are", "load.type.text"
        )
    return None


def _returned(connection: Connection, lost: LossyValue) -> str:
    """What the server makes of a value."""
    import psycopg

    try:
        with connection.transaction():
            value = server.one(connection, f"SELECT %s::pg_catalog.text::{lost.type}::pg_catalog.text", (lost.value,))[
                0
            ]
    except psycopg.Error:
        return f"is not {lost.type}, as the rows before it are"
    if value == lost.value:
        return "is written in another way than the rows before it"
    return f"would come back as `{value}` from {lost.type}"


@contextlib.contextmanager
def _beginning(source_sample: SourceSample, formatted: Format) -> Iterator[tuple[Mapping[str, Any], Sequence[int]]]:
    """A pipe that gives the whole rows of a sample."""
    data = (
        source_sample.data
        if source_sample.is_whole
        else sample.whole_rows(source_sample.data[: sample.LOOK_BYTES], formatted, header=False)
    )
    made = pipe.made()
    thread = threading.Thread(target=_pour, args=(data, made), name="pgdyno-beginning", daemon=True)
    thread.start()
    try:
        reading, result = made.read
        place = {
            "path": f"/dev/fd/{reading}",
            "end": f"/dev/fd/{result}",
            "compression": "none",
            "name": source_sample.source.name,
        }
        yield place, made.read
    finally:
        made.leave()
        thread.join()


def _pour(data: bytes, to: Pipe) -> None:
    with (
        contextlib.suppress(BrokenPipeError),
        os.fdopen(to.telling, "wb", buffering=0) as end,
        os.fdopen(to.writing, "wb") as out,
    ):
        out.write(data)
        out.flush()
        end.write(pipe.ALL)
