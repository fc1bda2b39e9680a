"""Which column each value of a file belongs to, and the table for files that have none yet."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pgdyno.loader.format import Format, shown_delimiter
from pgdyno.loader.sql import quoted
from pgdyno.loader.table import TableColumn

from ..base.errors import InputError

Rows: TypeAlias = Sequence[Sequence[str | None]]

NAME_BYTES_MAX = 63
"""Longest name of a column (``NAMEDATALEN`` less one): the server cuts the rest off."""
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|NaN")
_BOOLEAN = re.compile(r"t|f|true|false|yes|no|on|off", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?")
_ZONED = re.compile(_TIMESTAMP.pattern + r" ?(Z|[+-]\d{2}(:?\d{2})?)")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LEADING_ZERO = re.compile(r"[+-]?0\d")
"""Of postal codes and the like: a number would lose it."""
_NAME = re.compile(r"[^\W\d].*", re.DOTALL)
_MISSING = frozenset({"na", "n/a", "nan", "null", "none", "nil", "unknown", "inf", "infinity"})
"""Words that stand for a missing value, also in a column of numbers."""
_VALUE_AND_NAME = re.compile(rf"\d{{4}}|{_DATE.pattern}|{_BOOLEAN.pattern}", re.IGNORECASE)
"""Values that tables in a wide form have as names of columns too: years, days, and words such as ``t`` or ``on``."""


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
"""What values may be meant as, from the narrowest on."""


def type_of(values: Sequence[str | None]) -> str:
    """The first of :data:`TYPES` that takes every value, else text: to tell names from data, never to make a column of it."""
    present = [value for value in values if value is not None]
    if not present:
        return "text"
    return next((name for name, takes in TYPES if all(takes(value) for value in present)), "text")


def looks_like_names(rows: Rows) -> bool:
    """Whether all values of the first row are different texts, none of which is a value of another type."""
    if not rows:
        return False
    names = [name for name in rows[0] if name]
    return len(names) == len(rows[0]) == len(set(names)) and all(type_of([name]) == "text" for name in names)


def is_header(rows: Rows, known: Sequence[TableColumn], rename: Mapping[str, str]) -> bool | None:
    """Whether the first row names columns of a table that exists; None when it may as well be data.

    A row whose values are all names of columns is a header, whatever they look like, but for columns that are all boolean,
    where ``t`` is a common value. A row with some names of columns, and otherwise with what names may look like, is a header
    that does not fit: :func:`chosen` refuses it, because loaded as data it would be a row too many.
    """
    names = header_names(rows, rename)
    columns = named(names, known)
    if columns is not None:
        return None if all(column.type == "boolean" for column in columns) else True
    shared = {name.strip().lower() for name in names} & {column.name.lower() for column in known}
    return bool(shared) and _may_be_names(rows[0])


def is_header_of_new(rows: Rows) -> bool | None:
    """Whether the first row names columns of a table that is yet to be made; None when it may as well be data.

    It does when all of it is text, or when a column has text there and only numbers, dates or the like below.
    """
    if not rows:
        return False
    names, below = rows[0], rows[1:]
    if looks_like_names(rows) or any(
        _is_name(name) and _has_a_narrow_type([row[place] for row in below if place < len(row)])
        for place, name in enumerate(names)
    ):
        return True
    return None if _may_be_names(names) else False


def _is_name(value: str | None) -> bool:
    return (
        value is not None
        and type_of([value]) == "text"
        and _NAME.fullmatch(value) is not None
        and value.lower() not in _MISSING
    )


def _has_a_narrow_type(values: Sequence[str | None]) -> bool:
    return any(value is not None for value in values) and type_of(values) != "text"


def _may_be_names(row: Sequence[str | None]) -> bool:
    """Whether each value is text, nothing (pandas writes the name of its index so), or what is both a value and a name."""
    present = [value for value in row if value]
    return bool(present) and all(type_of([value]) == "text" or _VALUE_AND_NAME.fullmatch(value) for value in present)


def require_names(names: Sequence[str], file: str) -> None:
    """:class:`InputError` for a header that cannot name the columns of a new table: a name is empty, or comes twice."""
    fault = _fault(names)
    if fault is not None:
        raise InputError(
            f"the header of {file} cannot name columns: {fault}",
            remedy="name them with --header --columns, or correct the header (pandas: index=False leaves its index out);"
            " --no-header if the first row is data",
        )


def _fault(names: Sequence[str]) -> str | None:
    """What is wrong with a header, whatever the table: an empty name, or one that comes twice."""
    blank = next((place for place, name in enumerate(names, 1) if not name.strip()), None)
    if blank is not None:
        return f"its column {blank} has no name"
    doubled = next((name for place, name in enumerate(names) if name in names[:place]), None)
    return None if doubled is None else f"two columns are called {doubled!r}"


def require_short(names: Sequence[str], *, of_option: bool = False) -> None:
    """:class:`InputError` for a name that the server would cut, so that the header does not name the column any more.

    ``of_option``: the names are those of ``--columns``.
    """
    for name in names:
        size = len(name.encode())
        if size <= NAME_BYTES_MAX:
            continue
        rename = f"give it a shorter one: --rename {shlex.quote(f'{name}=SHORTER')}"
        raise InputError(
            f"the column name {name!r} has {size} bytes, and PostgreSQL keeps {NAME_BYTES_MAX} of a name",
            remedy="give a shorter one with --columns" if of_option else rename,
            code="load.column.name_too_long",
            data={"column": name, "bytes": size, "bytes_max": NAME_BYTES_MAX},
        )


def require_short_table(name: str) -> None:
    """:class:`InputError` for the name of a new table that the server would cut."""
    size = len(name.encode())
    if size > NAME_BYTES_MAX:
        raise InputError(
            f"the table name {name!r} has {size} bytes, and PostgreSQL keeps {NAME_BYTES_MAX} of a name",
            remedy="give a shorter one with --table",
            code="load.table.name_too_long",
            data={"table": name, "bytes": size, "bytes_max": NAME_BYTES_MAX},
        )


def definition(table: str, names: Sequence[str], types: Sequence[str], keys: Sequence[str] = ()) -> str:
    """``CREATE TABLE``. ``keys`` are the primary key, if there are any."""
    lines = [f"{quoted(name)} {kind}" for name, kind in zip(names, types, strict=True)]
    if keys:
        absent = next((key for key in keys if key not in names), None)
        if absent is not None:
            raise InputError(f"--upsert: the files have no column {absent!r}", remedy=f"they have {', '.join(names)}")
        lines.append(f"PRIMARY KEY ({', '.join(quoted(key) for key in keys)})")
    return f"CREATE TABLE {table} (\n" + ",\n".join(f"    {line}" for line in lines) + "\n)"


def with_name(definition: str, name: str, other: str) -> str:
    """The definition for a table of another name."""
    return definition.replace(f"CREATE TABLE {name}", f"CREATE TABLE {other}", 1)


def header_names(rows: Rows, rename: Mapping[str, str]) -> list[str]:
    """What the first row calls the columns, after renaming; empty without a row."""
    return [rename.get(name or "", name or "") for name in rows[0]] if rows else []


def named(names: Sequence[str], columns: Sequence[TableColumn]) -> list[TableColumn] | None:
    """The columns that a header's names mean, exactly or but for capitals; None unless all are there, each once."""
    exact = {column.name: column for column in columns}
    folded = {column.name.lower(): column for column in columns}
    results = [exact.get(name) or folded.get(name.strip().lower()) for name in names]
    known = [column for column in results if column is not None]
    return known if names and len(known) == len(names) == len({column.name for column in known}) else None


def chosen(
    names: Sequence[str], columns: Sequence[TableColumn], texts: Sequence[str], rename: Mapping[str, str], header: bool
) -> list[TableColumn] | None:
    """The columns of a file's values: those asked for, else those of its header; None: all, in the table's order."""
    if texts:
        chosen = named(texts, columns)
        if chosen is None:
            raise InputError(
                f"--columns: {_unknown(texts, columns)}", remedy=f"the table has {_list(columns)}; name each once"
            )
        return chosen
    if not header:
        if rename:
            raise InputError("--rename needs a header, and there is none", remedy="use --columns")
        return None
    chosen = named(names, columns)
    if chosen is None:
        raise InputError(
            f"the header does not fit the table: {_unknown(names, columns)}",
            remedy=f"the table has {_list(columns)}; use --rename name=column, or name all columns with --header --columns;"
            " --no-header if the first row is data",
        )
    return chosen


def check_width(rows: Rows, width: int, formatted: Format, first_line: str, where: str = "") -> None:
    """Refuses a file whose first row has another number of values than there are columns: mostly a wrong delimiter.

    ``where``: of which of several files it is, as `` of a.csv``.
    """
    if not rows or len(rows[0]) == width:
        return
    other = formatted.fitting(first_line, width)
    shown, _ = shown_delimiter(formatted.delimiter)
    values = f"{len(rows[0])} value{'' if len(rows[0]) == 1 else 's'}"
    message = f"the first row{where} has {values} between {shown}, and {width} columns are to be loaded"
    if other is not None:
        raise InputError(message, remedy=f"it would have {width} with --delimiter {shown_delimiter(other)[1]}")
    raise InputError(message, remedy="check --delimiter and --format, or name the columns with --columns")


def _unknown(names: Sequence[str], columns: Sequence[TableColumn]) -> str:
    known = {column.name.lower() for column in columns}
    absent = [name for name in names if name.strip().lower() not in known]
    fault = _fault(names)
    return fault or (f"there is no column {absent[0]!r}" if absent else "a column is named twice")


def _list(columns: Sequence[TableColumn]) -> str:
    return ", ".join(column.name for column in columns)
