"""What a host brings: the directories of its loads and runs, written here by the writer of all run directories, with the host's name in their records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pgdyno.flow.stream import Frame
from pgdyno.hosts.connection import DriverHost

from ..base.errors import HostError, PgdynoError
from ..results.record import ExperimentRecord, LoadRecord, RunRecord
from ..results.writer import DirectoryWriter, LoadWriter, RunWriter

Came = dict[str, tuple[int, str | None]]
"""What came of a data set: table -> its rows, and their digest where the program that filled it reports one."""


class RemoteResults:
    """What one host brings, one directory after the other."""

    def __init__(
        self, directory: Path, written: ExperimentRecord, host: DriverHost, data_sets: dict[str, tuple[str, Came]]
    ) -> None:
        """``data_sets`` is shared by all hosts: the tables -> who filled them first, and what came of it."""
        self._directory, self._written, self._host, self._data_sets = directory, written, host, data_sets
        self._writer: DirectoryWriter | None = None

    def take(self, frame: Frame) -> RunRecord | None:
        """One frame; the record of a run that is whole with it, and is kept."""
        head = frame.head
        if "begin" in head:
            self._writer = RunWriter(self._directory.parent, self._directory.name, head["begin"])
        elif "load" in head:
            self._writer = LoadWriter(self._directory, f"{self._host.name} {head['load'].partition('-')[2]}")
        elif "file" in head:
            assert self._writer is not None
            with self._writer.file(head["file"]).open("ab") as file:
                file.write(frame.body)
        elif "loaded" in head:
            self._loaded(LoadRecord.model_validate_json(frame.body))
        else:
            assert "run" in head, head
            return self._run(RunRecord.model_validate_json(frame.body))
        return None

    def failed(self, error: dict[str, Any]) -> PgdynoError:
        """The error of a run there. Its logs are kept here."""
        pgdyno_error = PgdynoError(
            f"{self._host.name}: {error['message']}", remedy=error["remedy"], exit_code=int(error["exit_code"])
        )
        if self._writer is not None:
            self._writer.explain(pgdyno_error)
            self._writer = None
        return pgdyno_error

    def abandon(self) -> None:
        """Remove what is not whole."""
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None

    def _run(self, record: RunRecord) -> RunRecord:
        assert isinstance(self._writer, RunWriter)
        host = record.world.host.model_copy(update={"label": self._host.name, "cpu": self._host.facts.cpu})
        made = record.model_copy(update={"world": record.world.model_copy(update={"host": host})})
        self._writer.finish(made)
        self._writer = None
        return made

    def _loaded(self, record: LoadRecord) -> None:
        assert isinstance(self._writer, LoadWriter)
        self._require_same(record)
        name = self._writer.final_path.name
        title = f"{record.title} on {self._host.name}"
        self._writer.finish(record.model_copy(update={"load_id": name, "title": title}))
        self._writer = None

    def _require_same(self, record: LoadRecord) -> None:
        """Refuse data sets that differ: the runs of different hosts would have answered different questions."""
        key = json.dumps(record.tables, sort_keys=True)
        came = {table: (rows, record.digests.get(table)) for table, rows in record.rows.items()}
        first, of_first = self._data_sets.setdefault(key, (self._host.name, came))
        if other := sorted(table for table in came | of_first if came.get(table) != of_first.get(table)):
            raise HostError(
                f"{record.title}: {self._host.name} has filled other rows than {first}, in {', '.join(other)}",
                remedy="install the same pgdyno on all hosts",
            )
