"""Origins of an experiment's values: file and line of each key, and errors that name them."""

from __future__ import annotations

import difflib
import re
import tomllib
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import NoneType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, PlainValidator, ValidationError

from ..base.errors import InputError
from ..base.text import has_control
from ..kinds.registry import KINDS, keys_of, kind_of
from ..workload.kind import Workload

Path = tuple[str | int, ...]

_WANTED = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "it should be a whole number"),
    "int_parsing_size": "it should be a smaller number",
    **dict.fromkeys(("float_type", "float_parsing"), "it should be a number"),
    "finite_number": "it should be a finite number",
    "string_type": "it should be a string in quotes",
    "string_pattern_mismatch": "it should match {pattern}",
    "string_too_long": "it should have {max_length} characters at most",
    **dict.fromkeys(("bool_type", "bool_parsing"), "it should be true or false"),
    **dict.fromkeys(("tuple_type", "list_type"), "it should be a list, as [1, 2]"),
    "too_short": "it should have at least {min_length} element",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "it should be a table"),
    "greater_than": "it should be greater than {gt:g}",
    "greater_than_equal": "it should be {ge:g} or more",
    "less_than": "it should be less than {lt:g}",
    "less_than_equal": "it should be {le:g} or less",
}
"""What pydantic finds wrong with a value -> what the value should be, in the words of TOML."""


@dataclass(frozen=True)
class Origin:
    """The places of an experiment's values: lines of a file, or flags."""

    name: str = ""
    """The file, as the user named it; empty when there is none."""
    lines: Mapping[Path, int] = field(default_factory=dict)
    flags: Mapping[Path, str] = field(default_factory=dict)
    """Values that came from the command line, and the flag (``--scale``)."""
    remedy: str = "`pgdyno show schema experiment` has the keys and what they take"

    def place(self, path: Sequence[str | int]) -> str:
        """Where the value of ``path`` stands, and its name: ``wal.toml:12: workload.scale``, or ``--scale``."""
        wanted = tuple(path)
        for length in range(len(wanted), 0, -1):
            if wanted[:length] in self.flags:
                flag = self.flags[wanted[:length]]
                return flag if flag.partition(" ")[0] not in ("--set", "--setting") else f"{flag}: {dotted(wanted)}"
        key = dotted(wanted)
        if not self.name:
            return key
        return f"{self.name}:{self.line(path)}: {key}" if key else f"{self.name}:{self.line(path)}"

    def error(
        self,
        path: Sequence[str | int],
        message: str,
        remedy: str = "",
        *,
        code: str = "",
        data: dict[str, Any] | None = None,
    ) -> InputError:
        """An error about the value of ``path``; its data say ``key`` and, of a file, ``line``."""
        at = {"key": dotted(path)} | ({} if self.line(path) is None else {"line": self.line(path)})
        return InputError(
            f"{self.place(path)}: {message}", remedy=remedy or self.remedy, code=code, data=at | (data or {})
        )

    def line(self, path: Sequence[str | int]) -> int | None:
        """Where in the file a value stands, or the nearest table that is there; None of what came from elsewhere."""
        wanted = tuple(path)
        if not self.name or any(wanted[:length] in self.flags for length in range(len(wanted), 0, -1)):
            return None
        return next(
            (self.lines[wanted[:length]] for length in range(len(wanted), 0, -1) if wanted[:length] in self.lines), 1
        )

    @contextmanager
    def explained(self, path: Sequence[str | int]) -> Iterator[None]:
        """Say of an :class:`InputError` which value it is about."""
        try:
            yield
        except InputError as error:
            raise self.error(path, error.message, error.remedy, code=error.code, data=error.data) from error


def control_characters(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Texts of a document with control characters, and their places. What was read of a file (``text``) is not shown anywhere."""
    if isinstance(value, str):
        if has_control(value):
            yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if has_control(key):
                yield (*path, key), key
            elif not (key == "text" and "name" in value):
                yield from control_characters(inner, (*path, key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from control_characters(inner, (*path, number))


def dotted(path: Sequence[str | int]) -> str:
    """A path as TOML would write it; a position in an array counts from 1."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            shown = part if part.replace("_", "").replace("-", "").isalnum() else f'"{part}"'
            text += f".{shown}" if text else shown
    return text


def refusal(error: ValidationError, model: type[BaseModel], document: Any) -> tuple[Path, str]:
    """The first thing that pydantic found wrong with a document: where, and a sentence without its place."""
    # An unknown key is the likeliest cause of other missing keys, so it is reported first.
    result = min(error.errors(), key=lambda other: other["type"] != "extra_forbidden")
    path: Path = tuple(result["loc"])
    if result["type"] == "extra_forbidden":
        return path, _unknown(path, model)
    if result["type"] == "missing":
        return path, "is missing"
    if result["type"] == "at_key":
        return (*path, str(result["ctx"]["key"])), result["msg"]
    if result["type"] == "value_error":
        return _existing(path, document), result["msg"].removeprefix("Value error, ")
    wanted = _WANTED.get(result["type"])
    if wanted is None:
        wanted = result["msg"].replace("Input should be", "it should be", 1)
    given = result.get("input")
    there = "" if isinstance(given, dict) or given in ([], ()) else f", not {toml_text(given)}"
    return _existing(path, document), wanted.format(**result.get("ctx", {})) + there


def _unknown(path: Path, model: type[BaseModel]) -> str:
    known = keys(model, path[:-1])
    near = difflib.get_close_matches(str(path[-1]), known, n=1)
    return "there is no such key; " + (f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}")


def keys(model: type[BaseModel], path: Sequence[str | int] = ()) -> list[str]:
    """The keys of the table at ``path`` as a file writes them; empty where any key is allowed."""
    models = [model]
    for part in path:
        if not isinstance(part, int):  # a place in an array of tables
            models = [table for other in models for table in (*tables_at(other, part), *_rows_at(other, part))]
    return list(dict.fromkeys(key for other in models for key in keys_of(other)))


def tables_at(model: type[BaseModel], key: str | int) -> list[type[BaseModel]]:
    """The models that the value of a key may be a table of: one for each kind of workload, none for other values."""
    infos = [info for name, info in model.model_fields.items() if key in (name, info.alias)]
    return [table for info in infos for table in tables_of(info.annotation)]


def _rows_at(model: type[BaseModel], key: str) -> list[type[BaseModel]]:
    """The model of each table where the value of a key is an array of tables."""
    infos = (info for name, info in model.model_fields.items() if key in (name, info.alias))
    arrays = (get_args(info.annotation) for info in infos if get_origin(info.annotation) is tuple)
    return [row for parts in arrays for row in tables_of(parts[0])]


def tables_of(annotation: Any) -> list[type[BaseModel]]:
    """The models of a field that is a table, or of one that may be."""
    if annotation is Workload:
        return list(KINDS.values())
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, types.UnionType):
        return [table for part in get_args(annotation) for table in tables_of(part)]
    return []


def _existing(path: Path, document: Any) -> Path:
    """The part of pydantic's path that is in the document: it adds names of its own for unions and dict keys."""
    reached: list[str | int] = []
    for part in path:
        inside = isinstance(document, dict) and part in document
        if not inside and not (isinstance(document, list) and isinstance(part, int) and part < len(document)):
            break
        reached.append(part)
        document = document[part]
    return tuple(reached)


def misfit(model: type[BaseModel], document: Mapping[str, Any], path: Path = ()) -> tuple[Path, str] | None:
    """The first value of another type that pydantic would take: `true` for a number, 1 for `true`, `"2"` for 2; None without one."""
    for key, field_type in _field_types(model).items():
        if key not in document:
            continue
        value, plain = document[key], field_type.plain
        table = kind_of(value) if field_type.is_workload else field_type.table
        if table is not None and isinstance(value, Mapping):
            if (results := misfit(table, value, (*path, key))) is not None:
                return results
            continue
        if isinstance(value, bool) and bool not in plain and plain & {int, float}:
            return (*path, key), f"it should be a number, not {toml_text(value)}"
        if bool in plain and plain <= {bool, NoneType} and not isinstance(value, bool):
            return (*path, key), f"it should be true or false, not {toml_text(value)}"
        if isinstance(value, str) and plain <= {int, float, NoneType} and not field_type.reads_text:
            return (*path, key), f"it should be a number, not {toml_text(value)}"
    return None


@dataclass(frozen=True)
class _FieldType:
    plain: frozenset[Any]
    table: type[BaseModel] | None
    is_workload: bool
    reads_text: bool
    """Whether a number is written with its unit, as a text."""


@cache
def _field_types(model: type[BaseModel]) -> dict[str, _FieldType]:
    """What each key of a table takes; kept, because every arm is compared with it."""
    return {
        info.alias or name: _FieldType(
            frozenset(_plain_types(info.annotation)),
            next(iter(tables_of(info.annotation)), None),
            info.annotation is Workload,
            any(
                isinstance(item, BeforeValidator | PlainValidator) for item in (*info.metadata, *_said(info.annotation))
            ),
        )
        for name, info in model.model_fields.items()
    }


def _said(annotation: Any) -> Iterator[Any]:
    """What is said of a type, and of the types in it, beside them."""
    if get_origin(annotation) is Annotated:
        yield from annotation.__metadata__
    for part in get_args(annotation):
        yield from _said(part)


def _plain_types(annotation: Any) -> set[Any]:
    """The types that a value may have, without what is said of them beside."""
    if get_origin(annotation) is Annotated:
        return _plain_types(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return set().union(*(_plain_types(part) for part in get_args(annotation)))
    return {annotation}


def toml_text(value: Any) -> str:
    """A value as TOML writes it, about: ``true``, ``"text"``, ``[1, 2]``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    return repr(value)


_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'',
    re.DOTALL,
)
_PLAIN = re.compile(r"[^,\]}\n#]+")
"""A number, a truth value, a date."""


def key_lines(text: str) -> dict[Path, int]:
    """Line (from 1) by path: ``("factors", "world.volume", 1)`` is the second element of that array."""
    return _Scan(text).run()


class _Scan:
    """One pass over a text; ``at`` is the place of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._line, self._counted = 1, 0
        """The line of the place up to which ends of lines have been counted."""
        self.lines: dict[Path, int] = {}
        self._tables: dict[Path, int] = {}
        """Arrays of tables -> number of their tables that have begun."""

    def run(self) -> dict[Path, int]:
        table: Path = ()
        while self._skip(_BLANK) < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
        return self.lines

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return self.at

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match[0]

    def _note(self, path: Path) -> None:
        """A path's first line counts; its parents begin there too if nothing named them before."""
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        line = self._line
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _header(self) -> Path:
        many = self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        self._skip(_SPACE)
        path = self._key(())
        if many:
            number = self._tables[path] = self._tables.get(path, -1) + 1
            path = (*path, number)
            self._note(path)
        self.at = self.text.index("]", self.at) + (2 if many else 1)
        return path

    def _pair(self, table: Path) -> None:
        path = self._key(table)
        self.at = self.text.index("=", self.at) + 1
        self._skip(_SPACE)
        self._value(path)

    def _key(self, table: Path) -> Path:
        """A key, which may be dotted and quoted; noted where it begins."""
        path, begin = table, self.at
        while True:
            self._skip(_SPACE)
            part = self._take(_BARE)
            path = (*path, part if part is not None else self._quoted())
            end = self._skip(_SPACE)
            if not self.text.startswith(".", end):
                break
            self.at += 1
        self.at = begin
        self._note(path)
        self.at = end
        return path

    def _quoted(self) -> str:
        literal = self._take(_STRING)
        assert literal is not None
        value = tomllib.loads(f"key = {literal}")["key"]
        assert isinstance(value, str)
        return value

    def _value(self, path: Path) -> None:
        if self.text[self.at] == "[":
            self._elements(path)
        elif self.text[self.at] == "{":
            self._inline_table(path)
        elif self._take(_STRING) is None:
            self._take(_PLAIN)

    def _elements(self, path: Path) -> None:
        self.at += 1
        number = 0
        while self.text[self._skip(_BLANK)] != "]":
            self._note((*path, number))
            self._value((*path, number))
            if self.text[self._skip(_BLANK)] == ",":
                self.at += 1
            number += 1
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while self.text[self._skip(_BLANK)] != "}":
            self._pair(path)
            if self.text[self._skip(_BLANK)] == ",":
                self.at += 1
        self.at += 1
