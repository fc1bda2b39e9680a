"""Reads run directories. Tables are read when they are asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from ..base.errors import InputError
from ..base.text import parsed_json
from . import tables
from .names import PARTIAL
from .record import SCHEMA_VERSION, ExperimentRecord, LoadRecord, RunRecord

if TYPE_CHECKING:
    import pyarrow as pa

_Record = TypeVar("_Record", RunRecord, ExperimentRecord, LoadRecord)
TABLES_KEPT = 24
"""Tables in memory: those of one run. Its figures and its evidence ask for the same ones several times, and none is changed."""


@dataclass(frozen=True)
class StoredRun:
    """A finished run."""

    path: Path
    record: RunRecord

    def has(self, name: str) -> bool:
        """Whether the run has that table (``workload/latency``)."""
        return (self.path / f"{name}.parquet").is_file()

    def table(self, name: str) -> pa.Table:
        """A table of the run, whole; without rows when the run never had it."""
        return _table(self.path, name)

    def damaged(self, name: str) -> str | None:
        """Why a table that is there cannot be read as a whole; None where it can."""
        try:
            self.table(name)
        except InputError as error:
            return error.message
        return None

    def document(self, relative: str) -> dict[str, Any]:
        """A JSON file of the run (``workload/latency.hdr.json``)."""
        return _read_json(self.path / relative)


@dataclass(frozen=True)
class StoredLoad:
    """A data set that was filled, or the tables on an existing server."""

    path: Path
    record: LoadRecord

    def table(self, name: str) -> pa.Table:
        """A table of the load (``probe/disk``), whole; without rows when it never had it."""
        return _table(self.path, name)


@dataclass(frozen=True)
class StoredExperiment:
    """An experiment with the runs that were finished, in the order in which they were made."""

    path: Path
    record: ExperimentRecord
    runs: tuple[StoredRun, ...]
    unreadable: dict[Path, str] = field(default_factory=dict)
    """Run directories that could not be read or are copies of another, and why."""


def open_run(path: Path) -> StoredRun:
    """The run in a directory; :class:`InputError` says why it is none."""
    if path.name.endswith(PARTIAL):
        raise InputError(f"{path} is an unfinished run", remedy="repeat the experiment")
    record = _read_record(path / "run.json", RunRecord)
    return StoredRun(path, record)


def open_experiment(path: Path) -> StoredExperiment:
    """The experiment in a directory. Runs that cannot be read are listed in ``unreadable``, unfinished ones are not."""
    record = _read_record(path / "experiment.json", ExperimentRecord)
    runs: list[StoredRun] = []
    unreadable: dict[Path, str] = {}
    for directory in sorted((path / "runs").glob("*")):
        if directory.name.endswith(PARTIAL) or not directory.is_dir():
            continue
        try:
            runs.append(open_run(directory))
        except InputError as error:
            unreadable[directory] = error.message
    runs, copies = without_copies(runs)
    unreadable |= copies
    return StoredExperiment(path, record, tuple(sorted(runs, key=lambda run: run.record.position)), unreadable)


def without_copies(runs: Sequence[StoredRun]) -> tuple[list[StoredRun], dict[Path, str]]:
    """Each run once, and why the others are left out: counted twice, a run would make intervals too narrow.

    Of a run and its copies the one whose directory has the run's name is kept.
    """
    kept: dict[tuple[str, str], StoredRun] = {}
    for run in sorted(runs, key=lambda run: (run.path.name != run.record.run_id, run.path)):
        kept.setdefault((run.record.experiment_id, run.record.run_id), run)
    copies = {
        run.path: f"it is a copy of the run {run.record.run_id}, which is in {original.path}"
        for run in runs
        if (original := kept[run.record.experiment_id, run.record.run_id]) is not run
    }
    return [run for run in runs if run.path not in copies], copies


def open_loads(path: Path) -> list[StoredLoad]:
    """The finished loads of an experiment's directory, in the order in which they were made.

    Loads that cannot be read are left out: what is concluded from runs does not rest on them.
    """
    loads = []
    for directory in sorted((path / "loads").glob("*")):
        if directory.is_dir() and not directory.name.endswith(PARTIAL):
            with contextlib.suppress(InputError):
                loads.append(StoredLoad(directory, _read_record(directory / "load.json", LoadRecord)))
    return loads


def list_experiments(root: Path, unreadable: dict[Path, str] | None = None) -> list[StoredExperiment]:
    """Every experiment below the results folder, the oldest first; empty when the folder does not exist.

    One that cannot be read is put into ``unreadable`` with the reason, so that it does not hide the others; without
    ``unreadable`` it is raised.
    """
    experiments = []
    for path in sorted(root.glob("*/experiment.json")):
        try:
            experiments.append(open_experiment(path.parent))
        except InputError as error:
            if unreadable is None:
                raise
            unreadable[path.parent] = error.message
    return experiments


def _table(directory: Path, name: str) -> pa.Table:
    if name not in tables.TABLES:
        raise InputError(f"there is no table {name}", remedy=f"one of {', '.join(tables.TABLES)}")
    file = directory / f"{name}.parquet"
    try:
        stat = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return tables.empty(name)
    return _read_table(file, name, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=TABLES_KEPT)
def _read_table(file: Path, name: str, _mtime_ns: int, _size_bytes: int) -> pa.Table:
    """A table as it is on disk; a file that was replaced is another one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as opened:
            return opened.read()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file} cannot be read: {error}", remedy="repeat the experiment") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = parsed_json(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path} does not exist", remedy="`pgdyno runs` lists what there is") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", remedy="repeat the experiment") from error
    if not isinstance(document, dict):
        raise InputError(f"{path} is not a JSON object", remedy="repeat the experiment")
    return document


def _read_record(path: Path, model: type[_Record]) -> _Record:
    document = _read_json(path)
    version = document.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise InputError(
            f"{path} was written by a newer pgdyno (schema {version}, this one reads {SCHEMA_VERSION})",
            remedy="use the newer pgdyno",
        )
    try:
        return model.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise InputError(f"{path}: {where}: {first['msg']}", remedy="repeat the experiment") from error
