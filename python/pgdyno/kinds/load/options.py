"""The table ``[workload.bulk]``: the files that a measured load brings into empty tables, and its options."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from pgdyno.workload.generated import GZIP_SHARE, GeneratedSet

from ...base import engine
from ...base.errors import InputError
from ...machine import paths, preflight
from ...machine.journal import HostJournal
from ...workload.generated import IMDB, TPCH
from ...workload.keys import Bytes, Seconds
from ...workload.outcome import Progress

Order = Literal["one-after-another", "parallel"]
_TABLE = re.compile(r"[a-z_][a-z0-9_]{0,62}")
"""A name that SQL takes as it is."""
_COMPRESSED = (".gz", ".zst", ".xz", ".bz2")
_UNPACKED_RATIO = 4.0
"""Bytes that a compressed one becomes, about: text of this kind under gzip becomes 2.5 to 5 times as long. For estimates."""
_MAGIC = frozenset("*?[")
_OF_GENERATED = ("scale", "gzip", "tables")
_SETS: dict[str, GeneratedSet] = {item.name: item for item in (IMDB, TPCH)}
_CONNECTIONS_LIMIT = 256
"""Sessions that `pgdyno load` takes at most."""


class SqlFile(BaseModel):
    """A file of SQL with its text: a record must be able to repeat it when the file has changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(min_length=1)]
    """The file, as it was written."""
    text: str
    """Its content."""


class BulkTable(BaseModel):
    """For kind `load`: files that are loaded into empty tables, and how. That load is the measured phase."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=False, allow_inf_nan=False
    )

    files: tuple[str, ...] = ()
    """Files or patterns, relative to the experiment file, each with its table behind an `@`: `visits-*.csv.gz@visits`. A single file without it goes into a table with the file's name."""
    generate: Literal["imdb", "tpch"] | None = None
    """Instead of `files`: those of `pgdyno data generate imdb` (seven) or `pgdyno data generate tpch` (eight), generated once for all runs."""
    scale: Annotated[float, Field(gt=0, le=1000)] = 0.01
    """Size of generated files: 1 is 204 million rows, 9.5 GB, of `imdb` (up to 10), and 8.7 million rows, 1.1 GB, of `tpch` (0.001 to 1000)."""
    gzip: bool = False
    """Compress generated files."""
    tables: tuple[str, ...] = ()
    """Tables of generated files to load, for example `title_principals` or `lineitem`. Default: all."""
    definitions: Annotated[SqlFile | None, WithJsonSchema({"type": ["string", "object"]})] = None
    """An SQL file, relative to the experiment file, that creates the tables with their keys and indexes before the load. Default: files of `imdb` go into tables of text columns, those of `tpch` into tables with the types of the specification, others into tables by their header and a sample."""
    order: Order = "one-after-another"
    """One table after the other, or all in parallel."""
    connections: Annotated[int, Field(ge=1, le=_CONNECTIONS_LIMIT)] | None = None
    """Fixed number of sessions that copy into one table. Default: those of `pgdyno load`, which adapts them."""
    chunk_bytes: Bytes | None = Field(None, alias="chunk")
    """Bytes of a file for one COPY and one commit. Default: that of `pgdyno load`."""
    tuned: bool = True
    """Use the settings that make `pgdyno load` fast: commits do not wait for the disk, autovacuum is off for the tables, indexes are handled as `indexes` says. `false`: plain COPY."""
    indexes: Literal["auto", "keep", "rebuild"] = "auto"
    """Drop indexes and rebuild them: if that is faster, never, or always."""
    vacuum: bool = True
    """VACUUM and ANALYZE each table after loading, as `pgdyno load` does; this is part of the measurement."""
    timeout_s: Annotated[Seconds, Field(gt=0)] = Field("1h", alias="timeout", validate_default=True)
    """Longest time that a load may take before it is cancelled with an error."""

    def refusal(self) -> str | None:
        """Reason why the keys cannot be combined; None if they can."""
        return next(self._refusals(), None)

    def _refusals(self) -> Iterator[str]:
        if bool(self.files) == (self.generate is not None):
            yield 'name the files to load: files = ["visits-*.csv@visits"], or generate = "imdb" (or "tpch")'
        for key in _OF_GENERATED if self.generate is None else ():
            if key in self.model_fields_set:
                yield f'{key} is for files that are generated, with generate = "imdb"'
        if self.generated is not None:
            if (why := self.generated.refusal(self.scale)) is not None:
                yield why
            unknown = [table for table in self.tables if table not in self.generated.files]
            if unknown:
                yield f"there is no generated table `{unknown[0]}`; there are {', '.join(self.generated.files)}"
        if self.indexes != "auto" and not self.tuned:
            yield "with tuned = false indexes are kept; omit one of them"
        yield from _refused_files(self.files)

    @property
    def generated(self) -> GeneratedSet | None:
        """The data set whose files are made; None for the user's files."""
        return None if self.generate is None else _SETS[self.generate]

    @property
    def names(self) -> tuple[str, ...]:
        """The tables, in the order in which they are loaded."""
        if self.generated is not None:
            return self.tables or tuple(self.generated.files)
        return tuple(table_of(entry) for entry in self.files)

    def sources(self) -> dict[str, list[Path]]:
        """The user's files by table. :class:`InputError` for a pattern that no file matches."""
        return {table_of(entry): paths_of(pattern_of(entry)) for entry in self.files}

    def input_bytes(self) -> int:
        """Bytes of all files before any compression, about; :class:`InputError` as :meth:`sources`."""
        if self.generated is not None:
            return self.generated.input_bytes(self.names, self.scale)
        paths = [path for source in self.sources().values() for path in source]
        return round(sum(path.stat().st_size * _ratio(path) for path in paths))

    def record(self) -> dict[str, Any]:
        """As it stands in ``run.json``: what of it was in use."""
        unused = {"files"} if self.generate is not None else {"generate", *_OF_GENERATED}
        written = self.model_dump(mode="json", exclude={*unused, "definitions"})
        name = None if self.definitions is None else self.definitions.name
        return {**written, "tables": list(self.names), "definitions": name}


def pattern_of(entry: str) -> str:
    """The files of ``visits-*.csv.gz@visits``."""
    return _split(entry)[0]


def table_of(entry: str) -> str:
    """The table of ``visits-*.csv.gz@visits``; of a file alone what it is called without its suffixes."""
    pattern, table = _split(entry)
    return table or _called(Path(pattern).name)


def paths_of(pattern: str) -> list[Path]:
    """The files of a pattern in the order of their names. :class:`InputError` when there is none."""
    path = Path(pattern)
    if path.is_file():
        return [path]
    paths = []
    if _MAGIC & set(pattern):
        below, rest = (Path(path.anchor), path.relative_to(path.anchor)) if path.is_absolute() else (Path(), path)
        paths = sorted(path for path in below.glob(str(rest)) if path.is_file())
    if not paths:
        raise InputError(f"no file matches {pattern}", remedy="name existing files, relative to the experiment file")
    return paths


def _split(entry: str) -> tuple[str, str]:
    """Pattern and table, which is empty where none is written. Folders may have an `@` in their names."""
    before, at, after = entry.rpartition("@")
    return (before, after) if at and "/" not in after else (entry, "")


def _called(name: str) -> str:
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    stem = re.sub(r"\W+", "_", Path(name).stem.lower()).strip("_")
    return f"_{stem}" if stem[:1].isdigit() else stem


def _refused_files(files: tuple[str, ...]) -> Iterator[str]:
    tables = [table_of(entry) for entry in files]
    for entry, table in zip(files, tables, strict=True):
        if not _split(entry)[1] and _MAGIC & set(entry):
            yield f"`{entry}` does not say which table is meant; write it as {entry}@visits"
        elif _TABLE.fullmatch(table) is None:
            yield f"`{table}` is not a table name in lower case; write it as {pattern_of(entry)}@visits"
        elif tables.count(table) > 1:
            yield f"{table} appears twice; one pattern can name all of its files"


def _ratio(path: Path) -> float:
    return _UNPACKED_RATIO if path.suffix in _COMPRESSED else 1.0


@dataclass(frozen=True)
class Files:
    """The files of one table."""

    table: str
    paths: tuple[Path, ...]
    rows: int | None = None
    """Rows in the files; None for the user's files, which were not counted."""

    @property
    def stored_bytes(self) -> int:
        """As they are on disk."""
        return sum(path.stat().st_size for path in self.paths)


@contextlib.contextmanager
def generated(bulk: BulkTable, seed: int, progress: Progress) -> Iterator[tuple[Files, ...]]:
    """The files that a load generates; they last as long as this."""
    made = bulk.generated
    assert made is not None
    needed = round(bulk.input_bytes() * (GZIP_SHARE if bulk.gzip else 1.0))
    preflight.require_memory(needed + made.memory_bytes, "making files to load")
    folder = paths.image_dir() / f"files-{secrets.token_hex(3)}"
    files = [made.files[table] for table in bulk.names]
    texts = [*made.arguments(bulk.scale, folder, files, seed=seed, gzip=bulk.gzip), *made.engine_options]
    summary: dict[str, Any] = {}
    with HostJournal(paths.state_dir()).directory(folder):
        with contextlib.closing(engine.lines(["generate", made.name, *texts], {})) as lines:
            for line in lines:
                if "progress" in line:
                    progress(line["progress"]["share"], "generate files")
                summary = line.get("summary", summary)
        document = {file["name"]: file for file in summary["files"]}
        of_tables = [(table, document[made.files[table]]) for table in bulk.names]
        yield tuple(Files(table, (Path(item["path"]),), int(item["rows"])) for table, item in of_tables)
