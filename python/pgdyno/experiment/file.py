"""Reads experiment files: TOML, with values set on the command line over it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pgdyno.base.errors import InputError
from pgdyno.experiment import factors
from pgdyno.experiment.arm import NAME_LENGTH_MAX, ExperimentFile
from pgdyno.experiment.model import CONNECTIONS, Experiment
from pgdyno.experiment.origin import Origin, key_lines
from pgdyno.experiment.origin import Path as Place
from pgdyno.kinds.pgbench import read_script

_Read = Callable[[Any, Place, Path, Origin], Any]
"""Reads what a file says of a key, its place, the file's folder."""


def read_experiment(
    path: Path, assignments: Sequence[str] = (), flags: Mapping[str, tuple[str, Any]] | None = None
) -> Experiment:
    """The experiment in a file. ``assignments`` are ``workload.duration=5s``; ``flags`` is key -> (flag, value).

    :class:`InputError` names file, line and key of what is wrong, or the flag.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(
            f"{path} cannot be read: {why}",
            remedy="name an experiment file (TOML); `pgdyno show examples` lists those that came with pgdyno",
        ) from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # Its message ends in the line and the column.
        raise InputError(f"{path}: {error}", remedy="fix this line; strings must be quoted") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply", remedy="correct the file", code="toml.too_deep") from None
    document.setdefault("name", _default_name(path.stem))
    set_here: dict[tuple[str | int, ...], str] = {}
    for key, (flag, value) in (flags or {}).items():
        target = tuple(key.split("."))
        document = factors.substituted(document, {target: value})
        set_here[target] = flag
    document, assigned = assign(document, assignments)
    set_here |= assigned
    origin = Origin(str(path), key_lines(text), set_here)
    for with_files in (_with_scripts, _with_bulk, with_database, with_capture):
        document = with_files(document, path.parent, origin)
    return Experiment.of(document, origin)


def assign(
    document: Mapping[str, Any], assignments: Sequence[str]
) -> tuple[dict[str, Any], dict[tuple[str | int, ...], str]]:
    """A document with the values of ``--set`` put in, and the flag of each value by its path."""
    made: dict[str, Any] = dict(document)
    flags: dict[tuple[str, ...], str] = {}
    for assignment in assignments:
        target, value = parse_assignment(assignment)
        made = factors.substituted(made, {target: value})
        # A connection string may have a password in it, whose refusal must not repeat it.
        secret = any(place[: len(target)] == target for place in CONNECTIONS)
        flags[target] = f"--set {assignment.partition('=')[0].strip()}=..." if secret else f"--set {assignment}"
    _require_effect(made, flags)
    return made, {tuple(target): flag for target, flag in flags.items()}


def _default_name(stem: str) -> str:
    """A file's name as the name of an experiment, with the characters replaced that a name cannot have."""
    return re.sub(r"[^A-Za-z0-9._ -]+", "-", stem).lstrip("._ -")[:NAME_LENGTH_MAX]


def parse_assignment(text: str) -> tuple[tuple[str, ...], Any]:
    """``workload.duration=5s`` as a path and a value. The value is read as TOML where it is that, else as a string."""
    name, equals, written = text.partition("=")
    remedy = (
        "write it as --set workload.duration=5s; a setting of PostgreSQL as --set postgres.parameters.work_mem=16MB"
    )
    if not equals or not name.strip():
        raise InputError(f"--set: `{text}` is not an assignment", remedy=remedy)
    try:
        path = factors.target(ExperimentFile, _key(name.strip()))
    except factors.UnknownKey as error:
        raise InputError(f"--set: an experiment has no key `{name.strip()}`{error}", remedy=remedy) from None
    return path, _value(written.strip())


def _key(written: str) -> str:
    """A key as it names one here, whose parts may be quoted as in TOML: ``factors."world.volume"`` is ``factors.world.volume``."""
    if not {'"', "'"} & set(written):
        return written
    try:
        parts = tomllib.loads(f"{written} = 0")
    except tomllib.TOMLDecodeError:
        return written
    names = []
    while isinstance(parts, dict) and len(parts) == 1:
        ((name, parts),) = parts.items()
        names.append(name)
    return ".".join(names)


def _require_effect(document: Mapping[str, Any], assigned: Mapping[tuple[str, ...], str]) -> None:
    """Refuse an assignment to a factor's key: every arm has a level there, so the assignment would change nothing."""
    levels_of = document.get("factors")
    for name, levels in levels_of.items() if isinstance(levels_of, dict) else ():
        try:
            paths = {path for level in factors.paths_of(ExperimentFile, name, levels) for path in level}
        except factors.UnknownKey:
            continue  # the reader of the document reports the error
        for target, flag in assigned.items():
            if any(target[: len(path)] == path for path in paths):
                raise InputError(
                    f"{flag}: {name} is a factor, so every arm has one of its levels instead",
                    remedy=f"set its levels, as --set 'factors.{name}=[LEVEL, ...]'",
                )


def _with_scripts(document: Mapping[str, Any], folder: Path, origin: Origin) -> dict[str, Any]:
    """The document with the texts of its scripts, so that a record has what was run, whatever becomes of the files."""
    values: dict[tuple[str, ...], Any] = {}
    workload, levels_of = document.get("workload"), document.get("factors")
    if isinstance(workload, dict) and "files" in workload:
        values["workload", "files"] = _texts(workload["files"], ("workload", "files"), folder, origin)
    levels = levels_of.get("workload.files") if isinstance(levels_of, dict) else None
    if isinstance(levels, list):
        place = ("factors", "workload.files")
        values[place] = [_texts(level, (*place, number), folder, origin) for number, level in enumerate(levels)]
    return factors.substituted(document, values)


def _with_bulk(document: Mapping[str, Any], folder: Path, origin: Origin) -> dict[str, Any]:
    """The document with the whole paths of files that are loaded, and with the text of the tables' definitions."""
    return _read_keys(document, "bulk", {"files": _whole_paths, "definitions": _sql_of}, folder, origin)


def with_database(document: Mapping[str, Any], folder: Path, origin: Origin) -> dict[str, Any]:
    """The document with the whole paths of the user's database, and with the SQL that prepares it."""
    keys = {"from": _source_path, "globals": _whole_path, "prepare": _sql_or_file}
    return _read_keys(document, "database", keys, folder, origin)


def with_capture(document: Mapping[str, Any], folder: Path, origin: Origin) -> dict[str, Any]:
    """The document with the whole path of the capture that is replayed, and of the counters of production."""
    values: dict[tuple[str, ...], Any] = {}
    workload, levels_of = document.get("workload"), document.get("factors")
    for key, read in (("capture", _whole_path), ("stats", _whole_paths)):
        if isinstance(workload, dict) and key in workload:
            values["workload", key] = read(workload[key], ("workload", key), folder, origin)
    place = ("factors", "workload.capture")
    levels = levels_of.get(place[1]) if isinstance(levels_of, dict) else None
    if isinstance(levels, list):
        values[place] = _whole_paths(levels, place, folder, origin)
    return factors.substituted(document, values)


def _read_keys(
    document: Mapping[str, Any], table: str, keys: Mapping[str, _Read], folder: Path, origin: Origin
) -> dict[str, Any]:
    """The document with keys of a table below ``[workload]`` read, in the table and among the levels of factors."""
    values: dict[tuple[str, ...], Any] = {}
    for key, read in keys.items():
        result = document.get("workload")
        for part in (table, key):
            result = result.get(part) if isinstance(result, dict) else None
        if result is not None:
            values["workload", table, key] = read(result, ("workload", table, key), folder, origin)
        levels_of, place = document.get("factors"), ("factors", f"workload.{table}.{key}")
        levels = levels_of.get(place[1]) if isinstance(levels_of, dict) else None
        if isinstance(levels, list):
            values[place] = [read(level, (*place, number), folder, origin) for number, level in enumerate(levels)]
    return factors.substituted(document, values)


def _whole_path(written: Any, _: Place, folder: Path, __: Origin) -> Any:
    return str((folder / written).absolute()) if isinstance(written, str) else written


def _source_path(written: Any, place: Place, folder: Path, origin: Origin) -> Any:
    """A path as a whole one; a connection string and the name of a kept database stay."""
    if isinstance(written, str) and (folder / written).exists():
        return _whole_path(written, place, folder, origin)
    return written


def _sql_or_file(written: Any, place: Place, folder: Path, origin: Origin) -> Any:
    """SQL as it is; a name that ends in .sql as a file's text."""
    if isinstance(written, str) and written.endswith(".sql") and "\n" not in written:
        return _sql_of(written, place, folder, origin)
    return written


def _whole_paths(written: Any, _: Place, folder: Path, __: Origin) -> Any:
    """Files by their whole paths: an experiment may be continued from elsewhere."""
    if not isinstance(written, list):
        return written
    return [str((folder / item).absolute()) if isinstance(item, str) else item for item in written]


def _sql_of(written: Any, place: Place, folder: Path, origin: Origin) -> Any:
    """A file of SQL as a table with its text."""
    if not isinstance(written, str):
        return written
    try:
        return {"name": written, "text": (folder / written).read_text(encoding="utf-8")}
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise origin.error(place, f"{folder / written} cannot be read: {why}", "name an SQL file") from None


def _texts(written: Any, place: Place, folder: Path, origin: Origin) -> Any:
    """Each `FILE.sql@WEIGHT` of a list as a table with the file's text. A value that is not a list is refused when the file is read."""
    if not isinstance(written, list):
        return written
    texts = []
    for number, item in enumerate(written):
        with origin.explained((*place, number)):
            texts.append(read_script(item, folder) if isinstance(item, str) else item)
    return texts


def _value(written: str) -> Any:
    try:
        return tomllib.loads(f"value = {written}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return written
