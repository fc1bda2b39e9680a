"""The files that runs load: the user's, or some that are made once for all runs."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.workload.bulk_load.asked import BulkTable
from pgdyno.workload.generated import GZIP_SHARE
from pgdyno.workload.loaded import Progress

from ...base import engine
from ...machine import paths, preflight
from ...machine.journal import HostJournal


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
