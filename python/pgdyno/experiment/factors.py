"""Factors: which value of an experiment each one changes, and what its levels are called."""

from __future__ import annotations

import copy
import difflib
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_origin

from pydantic import BaseModel

from .origin import keys, tables_at

Design = Literal["full", "one-at-a-time"]
"""Which combinations of levels are arms."""
SEPARATOR = " · "
"""Between the levels of an arm's label."""
_SELF_EXPLAINING = frozenset(
    {
        "world.volume",
        "world.volumes.data",
        "world.file_system",
        "instance.type",
        "postgres.bin",
        "postgres.settings",
        "workload.script",
        "workload.files",
        "workload.test",
    }
)
"""Factors whose levels are clear without the key; the levels of others are shown with their key."""
_EMPTY = {
    "postgres.bin": "embedded",
    "world.mount_options": "default mount options",
    "world.restored": "not restored",
    "workload.database.prepare": "as restored",
}
"""What an empty level means, where it is not just the absence of the key."""
_NAME = "name"
"""What a level of several keys may be called by."""
_VERSION_IN_PATH = re.compile(r".*/(?:postgresql/|pgsql-|postgres-|pg)(\d{2})(?:/bin)?/?")
"""A directory of one version's programs, as distributions lay them out."""


class UnknownKey(Exception):
    """A dotted key that no experiment has; the text ends a sentence that names the key."""

    def __init__(self, part: str, known: Sequence[str]) -> None:
        self.part = part
        near = difflib.get_close_matches(part, known, n=1)
        others = f"there are {', '.join(known)}" if known else "it has no keys below it"
        super().__init__(f"; did you mean `{near[0]}`?" if near else f"; {others}")


def target(model: type[BaseModel], name: str) -> tuple[str, ...]:
    """The path of a dotted key in an experiment's document: ``("world", "volumes", "tablespace.fast")``.

    Below a table of free keys the rest of the name is one key. :class:`UnknownKey` when a part is not known.
    """
    parts = name.split(".")
    models, path = [model], list[str]()
    while parts:
        known = list(dict.fromkeys(key for other in models for key in keys(other)))
        part = parts.pop(0)
        if part not in known:
            raise UnknownKey(part, known)
        path.append(part)
        inner = [table for other in models for table in tables_at(other, part)]
        if not inner and parts and any(_takes_any_key(other, part) for other in models):
            return (*path, ".".join(parts))
        if not inner and parts:
            raise UnknownKey(parts[0], ())
        models = inner
    return tuple(path)


def paths_of(model: type[BaseModel], name: str, levels: Any) -> list[dict[tuple[str, ...], Any]]:
    """What each level sets: path -> value. A key sets its own, a name for :func:`several keys <is_several>` those of its tables.

    :class:`UnknownKey` when the name, or a key in a level, is not known.
    """
    if not is_several(name, levels):
        path = target(model, name)
        return [{path: level} for level in levels] if isinstance(levels, list | tuple) else [{path: levels}]
    return [{target(model, ".".join(key)): value for key, value in _leaves(level)} for level in levels]


def is_several(name: str, levels: Any) -> bool:
    """Whether a factor sets several keys at once: a name without a dot, and levels that are tables of them.

    ``cell = [{ name = "8 vCPUs", instance.vcpus = 8, world.dilation = 4 }, ...]``
    """
    return "." not in name and isinstance(levels, list | tuple) and all(isinstance(level, Mapping) for level in levels)


def _leaves(level: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The keys of a level with their values, without its name."""
    for key, value in level.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*above, key))
        elif above or key != _NAME:
            yield (*above, key), value


def _takes_any_key(model: type[BaseModel], key: str) -> bool:
    infos = (info for name, info in model.model_fields.items() if key in (name, info.alias))
    return any(get_origin(info.annotation) is dict for info in infos)


def combinations(factors: Mapping[str, Sequence[Any]], design: Design = "full") -> Iterator[tuple[int, ...]]:
    """The place of each factor's level in every arm.

    `full`: all combinations, the first factor changing slowest. `one-at-a-time`: all factors at their first level, then
    each of the others at its other levels alone.
    """
    counts = [len(levels) for levels in factors.values()]
    if design == "full":
        yield from itertools.product(*(range(count) for count in counts))
        return
    first = (0,) * len(counts)
    yield first
    for place, count in enumerate(counts):
        for level in range(1, count):
            yield (*first[:place], level, *first[place + 1 :])


def substituted(document: Mapping[str, Any], values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """A copy of a document with values set at paths; tables on the way are made."""
    made: dict[str, Any] = copy.deepcopy(dict(document))
    for path, value in values.items():
        table = made
        for part in path[:-1]:
            inner = table.setdefault(part, {})
            if not isinstance(inner, dict):
                break  # it is not a table, which is refused when the result is read
            table = inner
        else:
            table[path[-1]] = copy.deepcopy(value)
    return made


def level_text(factor: str, value: Any) -> str:
    """A level as a record keeps it: as written, or what leaving it empty means."""
    if is_several(factor, [value]):
        parts = ((".".join(key), inner) for key, inner in _leaves(value))
        return str(
            name_of_level(value) or ", ".join(label_part(key, level_text(key, inner), inner) for key, inner in parts)
        )
    if isinstance(value, list | tuple):
        return ", ".join(level_text(factor, item) for item in value) or "none"
    if isinstance(value, Mapping) and {"name", "text"} <= value.keys():
        return str(value["name"]) + (f"@{value['weight']}" if value.get("weight", 1) != 1 else "")
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {level_text(f'{factor}.{key}', inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if value == "":
        role = factor.removeprefix("world.volumes.")
        return f"no {role} volume" if role != factor else _EMPTY.get(factor, "none")
    if factor == "postgres.bin" and (match := _VERSION_IN_PATH.fullmatch(str(value))):
        return f"PostgreSQL {match[1]}"
    return str(value)


def level_texts(factor: str, values: Sequence[Any]) -> tuple[str, ...]:
    """:func:`level_text` of a factor's levels in one line each; where two would be called alike, as they were written.

    Lists and tables that would be called alike, such as scripts of one name in two folders, are numbered.
    """
    texts = [" ".join(level_text(factor, value).splitlines()) for value in values]
    often = Counter(texts)
    alike: dict[str, list[Any]] = {}
    made = []
    for text, value in zip(texts, values, strict=True):
        if often[text] == 1 or value == "":
            made.append(text)
        elif not isinstance(value, list | tuple | Mapping):
            made.append(str(value))
        else:
            known = alike.setdefault(text, [])
            if value not in known:
                known.append(value)
            made.append(text if known.index(value) == 0 else f"{text} ({known.index(value) + 1})")
    return tuple(made)


def arms_count(factors: Mapping[str, Sequence[Any]], design: Design) -> int:
    """How many :func:`combinations` there are."""
    counts = [len(levels) for levels in factors.values()]
    return math.prod(counts) if design == "full" else 1 + sum(count - 1 for count in counts)


def name_of_level(level: Mapping[str, Any]) -> str | None:
    """What a level of several keys is called by its own ``name``; None where it has none."""
    return str(level[_NAME]) if level.get(_NAME) else None


def label_part(factor: str, text: str, value: Any) -> str:
    """A level in an arm's label: with the last word of its key where the level alone would not be understood."""
    if factor in _SELF_EXPLAINING or isinstance(value, Mapping) or value == "":
        return text
    return f"{factor.rpartition('.')[2]} {text}"
