"""What the beginning of a file says about options that are missing: signs of files that COPY reads otherwise than they are meant.

Each sign is one that a sound file does not have. What would be wrong for certain is refused, the rest is a note.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import TypeAlias

from pgdyno.loader.format import Format, shown_delimiter
from pgdyno.loader.note import LoadNote
from pgdyno.loader.sample import LOOK_BYTES, SourceSample
from pgdyno.loader.table import TableColumn

from ..base.errors import InputError

Rows: TypeAlias = Sequence[Sequence[str | None]]

NULL_WORDS = ("NULL", "null", "Null", "\\N", "NA", "N/A", "n/a", "#N/A", "None", "nil", "nan", "(null)", "-")
"""Words for a missing value in files of other programs (the engine has the same list, in ``values/column.rs``)."""
REFUSED = "load.row.refused"
"""The engine's error for a row that the server does not take."""
_SEPARATOR_LINE = re.compile(r"sep=(.)", re.IGNORECASE)
_TEXTS = re.compile(r"(text|character varying|character|bytea|json|xml|name|citext|varchar|char)\b")
_WORD_IN_QUOTES = re.compile(r"[\"»„«“](" + "|".join(re.escape(word) for word in NULL_WORDS) + r")[\"«“”»]")
_COMMA_IN_QUOTES = re.compile(r"[\"»„«“][+-]?[\d.]*\d,\d+[\"«“”»]")


def refuse_separator_line(sample: SourceSample, formatted: Format) -> None:
    """:class:`InputError` for Excel's ``sep=;`` before the rows, which COPY would take for a row."""
    match = _SEPARATOR_LINE.fullmatch(sample.first_line.strip())
    if formatted.kind == "csv" and match is not None:
        written = shown_delimiter(match[1])[1]
        raise InputError(
            f"the first line of {sample.source.name} is `{sample.first_line.strip()}`, by which Excel knows the delimiter; COPY would"
            " take it for a row",
            remedy=f"load the file without it: `tail -n +2 {shlex.quote(sample.source.name)} | pgdyno load - --format csv --delimiter"
            f" {written} --table NAME --into DSN`",
            code="load.csv.separator_line",
            data={"source": sample.source.name, "delimiter": match[1]},
        )


def refuse_trailing_delimiter(
    sample: SourceSample, formatted: Format, width: int | None, *, header: bool | None
) -> None:
    """:class:`InputError` where every row ends in a delimiter, as ``dbgen`` writes them: COPY takes that for one more value.

    ``width``: columns that are to be loaded; None where the file decides. ``header``: as it was said.
    """
    if not _ends_in_delimiters(sample.rows, width, header):
        return
    shown, written = shown_delimiter(formatted.delimiter)
    pattern = re.sub(r"([\\^$*.\[\]/])", r"\\\1", "\\t" if formatted.delimiter == "\t" else formatted.delimiter)
    pattern = "\\t" if formatted.delimiter == "\t" else pattern
    plain = formatted.quote.encode() not in sample.data[:LOOK_BYTES] if formatted.quote else True
    how = (
        f"remove it: `sed 's/{pattern}\\r*$//' {shlex.quote(sample.source.name)} | pgdyno load - --format {_format_name(formatted)}"
        f" --delimiter {written} --table NAME --into DSN`"
        if plain
        else "write the file without it"
    )
    raise InputError(
        f"every row of {sample.source.name} ends in a delimiter ({shown}), which COPY takes for one more value",
        remedy=f"{how}; if it is a column without values, name all columns with --columns",
        code="load.row.trailing_delimiter",
        data={"source": sample.source.name, "delimiter": formatted.delimiter, "values": len(sample.rows[-1])},
    )


def _format_name(formatted: Format) -> str:
    return "text" if formatted.kind == "text" else ("csv" if formatted.quote == '"' else "tsv")


def _ends_in_delimiters(rows: Rows, width: int | None, header: bool | None) -> bool:
    below = rows[1:]
    if header is not False and below and all(len(row) == len(below[0]) > 1 and not row[-1] for row in below):
        names = rows[0]
        # A name for the last value is missing, or the header alone ends without a delimiter.
        is_named = all(names[:-1]) and not any(_is_number(name) for name in names[:-1])
        if is_named and (
            (len(names) == len(below[0]) and not names[-1]) or (len(names) == len(below[0]) - 1 and names[-1])
        ):
            return width is None or len(below[0]) == width + 1 or not names[-1]
    if header or not rows:
        return False
    if any(len(row) != len(rows[0]) or len(row) < 2 or row[-1] for row in rows):
        return False
    return width is None or len(rows[0]) == width + 1


def _is_number(value: str | None) -> bool:
    return value is not None and re.fullmatch(r"[+-]?[\d.]+", value) is not None


def backslash_quotes(sample: SourceSample, formatted: Format) -> int | None:
    """The line of the first ``\\"`` inside a quoted value: MySQL and others escape quotes so, COPY does not.

    None if there is none, also for a path like ``"C:\\"``, whose backslash is the last character of its value.
    """
    if formatted.kind != "csv" or formatted.escape != formatted.quote or formatted.escape == "\\":
        return None
    quote, delimiter = re.escape(formatted.quote.encode()), re.escape(formatted.delimiter.encode())
    inside = rb"(?:[^\\" + quote + rb"]|\\[^" + quote + rb"]|" + quote + quote + rb")*+"
    sign = (
        rb"(?:\A|[\r\n"
        + delimiter
        + rb"])"
        + quote
        + inside
        + rb"\\"
        + quote
        + rb"(?=[^\s"
        + delimiter
        + quote
        + rb"]| [^\s])"
    )
    data = sample.data[:LOOK_BYTES]
    match = re.search(sign, data)
    return None if match is None else data.count(b"\n", 0, match.end()) + 1


def escape_remedy() -> str:
    """What to do about quotes that a backslash escapes."""
    return "if a backslash escapes quotes in this file, use --escape '\\'"


def notes(
    samples: Sequence[SourceSample], formatted: Format, columns: Sequence[TableColumn], *, header: bool
) -> list[LoadNote]:
    """Signs that are not certain, of a table's ``columns`` in the order of the values; none of these where it is yet to be made."""
    notes = []
    for sample in samples:
        line = backslash_quotes(sample, formatted)
        if line is not None:
            notes.append(
                LoadNote(
                    f"{sample.source.name} line {line}: `\\{formatted.quote}` stands inside a quoted value; COPY keeps the backslash and"
                    f" drops the quote: {escape_remedy()}",
                    "load.csv.backslash_quotes",
                )
            )
            break
    if formatted.kind == "csv" and samples:
        notes += _null_words(samples, formatted, columns, header=header)
    return notes


def _null_words(
    samples: Sequence[SourceSample], formatted: Format, columns: Sequence[TableColumn], *, header: bool
) -> list[LoadNote]:
    """Words for NULL: in columns whose type has no such value, and ``\\N`` anywhere."""
    for sample in samples:
        for number, row in enumerate(sample.rows[1 if header else 0 :], 1):
            for place, value in enumerate(row):
                if value not in NULL_WORDS or value == formatted.null:
                    continue
                column = columns[place] if place < len(columns) else None
                if value != "\\N" and (column is None or _takes(column, value)):
                    continue
                named = f"column {place + 1}" if column is None else f"{column.name} ({column.type})"
                return [
                    LoadNote(
                        f"{sample.source.name}: {named} has `{value}` in row {number:,}; if that means NULL, use"
                        f" {null_option(value)}",
                        "load.csv.null_word",
                    )
                ]
    return []


def null_option(word: str) -> str:
    """The option for a word, with what it changes."""
    return f"--null '{word}' (then nothing between two delimiters is not NULL any more)"


def _takes(column: TableColumn, value: str) -> bool:
    return _TEXTS.match(column.type) is not None or (
        value == "nan" and column.type in ("numeric", "double precision", "real")
    )


def remedy_for(error: InputError, samples: Sequence[SourceSample], formatted: Format) -> str | None:
    """What the files say about a row that was refused; None if nothing."""
    if error.code != REFUSED and error.code != "load.row.width":
        return None
    if any(backslash_quotes(sample, formatted) is not None for sample in samples):
        return escape_remedy()
    word = _WORD_IN_QUOTES.search(error.message)
    if word is not None:
        return f"if `{word[1]}` means NULL, use {null_option(word[1])}"
    if _COMMA_IN_QUOTES.search(error.message):
        return "numbers with a decimal comma are not read by PostgreSQL: load the column as text and convert it with replace(), or write the file with points"
    return None


def width_error(rows: Rows, width: int, name: str, other: tuple[str, int] | None, *, escape: bool) -> InputError | None:
    """The error for the first row with another number of values than the first; None if all have the same."""
    number = next((number for number, row in enumerate(rows, 1) if len(row) != width), None)
    if number is None:
        return None
    row = rows[number - 1]
    if escape:
        remedy = escape_remedy()
    elif other is not None:
        remedy = f"with --delimiter {shown_delimiter(other[0])[1]} all its rows have {other[1]} values"
    else:
        remedy = "check --delimiter and --quote, or create the table yourself"
    return InputError(
        f"row {number} of {name} has {len(row)} value{'' if len(row) == 1 else 's'} and the first {width}",
        remedy=remedy,
        code="load.row.width",
        data={"source": name, "row": number, "values": len(row), "expected": width},
    )
