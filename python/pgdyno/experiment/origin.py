"""Where each value of an experiment was written, and errors that say so."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from pgdyno.errors import InputError

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Origin:
    """The places of an experiment's values: lines of a file, or flags."""

    name: str = ""
    """The file, as the user named it; empty when there is none."""
    lines: Mapping[Path, int] = field(default_factory=dict)
    flags: Mapping[Path, str] = field(default_factory=dict)
    """Values that came from the command line, and the flag (``--scale``)."""
    remedy: str = "`pgdyno run --help` names the keys of an experiment file"

    def place(self, path: Sequence[str | int]) -> str:
        """Where the value of ``path`` stands, and its name: ``wal.toml:12: workload.scale``, or ``--scale``."""
        wanted = tuple(path)
        for length in range(len(wanted), 0, -1):
            if wanted[:length] in self.flags:
                flag = self.flags[wanted[:length]]
                return flag if not flag.startswith("--set") else f"{flag}: {dotted(wanted)}"
        key = dotted(wanted)
        if not self.name:
            return key
        line = next(
            (self.lines[wanted[:length]] for length in range(len(wanted), 0, -1) if wanted[:length] in self.lines), 1
        )
        return f"{self.name}:{line}: {key}" if key else f"{self.name}:{line}"

    def error(self, path: Sequence[str | int], message: str, remedy: str = "") -> InputError:
        """An error about the value of ``path``."""
        return InputError(f"{self.place(path)}: {message}", remedy=remedy or self.remedy)

    @contextmanager
    def explained(self, path: Sequence[str | int]) -> Iterator[None]:
        """Say of an :class:`InputError` which value it is about."""
        try:
            yield
        except InputError as error:
            raise self.error(path, error.message, error.remedy) from error


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
    # An unknown key is the likeliest cause of whatever else is missing, so it is told first.
    found = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    path: Path = tuple(found["loc"])
    if found["type"] == "extra_forbidden":
        return path, _unknown(path, model)
    if found["type"] == "missing":
        return path, "is missing"
    if found["type"] == "at_key":
        return (*path, str(found["ctx"]["key"])), found["msg"]
    message = found["msg"].removeprefix("Value error, ").replace("Input should be", "it should be", 1)
    if not isinstance(found.get("input"), dict) and found["type"] != "value_error":
        message += f", not {found['input']!r}"
    return _existing(path, document), message


def _unknown(path: Path, model: type[BaseModel]) -> str:
    known = keys(model, path[:-1])
    near = difflib.get_close_matches(str(path[-1]), known, n=1)
    return "there is no such key; " + (f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}")


def keys(model: type[BaseModel], path: Sequence[str | int] = ()) -> list[str]:
    """The keys of the table at ``path`` as a file writes them; empty where any key is allowed."""
    for part in path:
        inner = next((info.annotation for name, info in model.model_fields.items() if part in (name, info.alias)), None)
        table = table_of(inner)
        if table is None:
            return []
        model = table
    return [info.alias or name for name, info in model.model_fields.items()]


def table_of(annotation: Any) -> type[BaseModel] | None:
    """The model of a field that is a table, or of one that may be; None for other fields."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType):
        return next((table for part in get_args(annotation) if (table := table_of(part))), None)
    return None


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
