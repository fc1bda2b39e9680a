"""Which column each value of a file belongs to, and the table for files that have none yet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pgdyno.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pgdyno.loader.format import Format
    from pgdyno.loader.table import Column

    Rows = Sequence[Sequence[str | None]]

_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|NaN")
_BOOLEAN = re.compile(r"t|f|true|false|yes|no|on|off", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?")
_ZONED = re.compile(_TIMESTAMP.pattern + r" ?(Z|[+-]\d{2}(:?\d{2})?)")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LEADING_ZERO = re.compile(r"[+-]?0\d")
"""Of postal codes and the like: a number would lose it."""


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda value: pattern.fullmatch(value) is not None


def _is_integer(value: str) -> bool:
    return _INTEGER.fullmatch(value) is not None and not _LEADING_ZERO.match(value)


def _is_number(value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None and not _LEADING_ZERO.match(value)


TYPES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("bigint", _is_integer),
    ("numeric", _is_number),
    ("boolean", _matches(_BOOLEAN)),
    ("date", _matches(_DATE)),
    ("timestamp", _matches(_TIMESTAMP)),
    ("timestamptz", _matches(_ZONED)),
    ("uuid", _matches(_UUID)),
)
"""From the narrowest on; ``bigint`` and not ``integer``, because a sample does not show the largest value."""


def type_of(values: Sequence[str | None]) -> str:
    """The first of :data:`TYPES` that takes every value of a sample, else text."""
    present = [value for value in values if value is not None]
    if not present:
        return "text"
    return next((name for name, takes in TYPES if all(takes(value) for value in present)), "text")


def looks_like_names(rows: Rows) -> bool:
    """Whether the first row of a file without a table names columns: all different, and none of them data."""
    if not rows:
        return False
    names = rows[0]
    given = [name for name in names if name]
    return len(given) == len(names) == len(set(given)) and all(type_of([name]) == "text" for name in given)


def definition(
    table: str, names: Sequence[str], rows: Rows, kinds: Sequence[str] | None = None, keys: Sequence[str] = ()
) -> str:
    """``CREATE TABLE`` for a file: columns by its names, types by the sample's values unless the file has them.

    ``keys`` are the primary key, if there are any.
    """
    width = len(names)
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise InputError(
                f"row {number} of the file has {len(row)} values and the first {width}",
                remedy="check --delimiter and --quote, or make the table yourself",
            )
    by_column = ([row[place] for row in rows] for place in range(width))
    kinds = kinds or [type_of(values) for values in by_column]
    lines = [f"{quoted(name)} {kind}" for name, kind in zip(names, kinds, strict=True)]
    if keys:
        absent = next((key for key in keys if key not in names), None)
        if absent is not None:
            raise InputError(f"--upsert: the files have no column {absent!r}", remedy=f"they have {', '.join(names)}")
        lines.append(f"PRIMARY KEY ({', '.join(quoted(key) for key in keys)})")
    return f"CREATE TABLE {table} (\n" + ",\n".join(f"    {line}" for line in lines) + "\n)"


def quoted(name: str) -> str:
    """A name as SQL writes it whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def header_names(rows: Rows, rename: Mapping[str, str]) -> list[str]:
    """What the first row calls the columns, after renaming; empty without a row."""
    return [rename.get(name or "", name or "") for name in rows[0]] if rows else []


def named(names: Sequence[str], columns: Sequence[Column]) -> list[Column] | None:
    """The columns that a header's names mean, exactly or but for capitals; None unless all are there, each once."""
    exact = {column.name: column for column in columns}
    folded = {column.name.lower(): column for column in columns}
    found = [exact.get(name) or folded.get(name.strip().lower()) for name in names]
    known = [column for column in found if column is not None]
    return known if names and len(known) == len(names) == len({column.name for column in known}) else None


def chosen(
    names: Sequence[str], columns: Sequence[Column], asked: Sequence[str], rename: Mapping[str, str], header: bool
) -> list[Column] | None:
    """The columns of a file's values: those asked for, else those of its header; None: all, in the table's order."""
    if asked:
        found = named(asked, columns)
        if found is None:
            raise InputError(
                f"--columns: {_unknown(asked, columns)}", remedy=f"the table has {_list(columns)}; name each once"
            )
        return found
    if not header:
        if rename:
            raise InputError("--rename needs a header, and there is none", remedy="use --columns")
        return None
    found = named(names, columns)
    if found is None:
        raise InputError(
            f"the header does not fit the table: {_unknown(names, columns)}",
            remedy=f"the table has {_list(columns)}; use --rename name=column, or --columns",
        )
    return found


def check_width(rows: Rows, width: int, formatted: Format, first_line: str, where: str = "") -> None:
    """Refuses a file whose first row has another number of values than there are columns: mostly a wrong delimiter.

    ``where``: of which of several files it is, as `` of a.csv``.
    """
    if not rows or len(rows[0]) == width:
        return
    other = formatted.fitting(first_line, width)
    shown = {"\t": "a tab"}.get(formatted.delimiter, f"`{formatted.delimiter}`")
    values = f"{len(rows[0])} value{'' if len(rows[0]) == 1 else 's'}"
    message = f"the first row{where} has {values} between {shown}, and {width} columns are to be loaded"
    if other is not None:
        written = {"\t": "$'\\t'"}.get(other, f"'{other}'")
        raise InputError(message, remedy=f"it would have {width} with --delimiter {written}")
    raise InputError(message, remedy="check --delimiter and --format, or say which columns they are with --columns")


def _unknown(names: Sequence[str], columns: Sequence[Column]) -> str:
    known = {column.name.lower() for column in columns}
    absent = [name for name in names if name.strip().lower() not in known]
    return f"there is no column {absent[0]!r}" if absent else "a column is named twice"


def _list(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)
