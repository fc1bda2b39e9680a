"""The files that runs load: the user's, or some that are made once for all runs."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno import _engine
from pgdyno.workload import imdb
from pgdyno.world import paths, preflight
from pgdyno.world.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pgdyno.experiment import Arm
    from pgdyno.experiment.bulk import BulkTable
    from pgdyno.workload.load import Progress

BYTES_PER_S = 30 << 20
"""Of files, loaded on two cores with everything that belongs to it; it only feeds estimates."""
_GZIP_SHARE = 0.45
"""What gzip leaves of generated files at most."""


@dataclass(frozen=True)
class Files:
    """The files of one table."""

    table: str
    paths: tuple[Path, ...]
    rows: int | None = None
    """That they have; None of the user's, which nobody has counted."""

    @property
    def stored_bytes(self) -> int:
        """As they are on disk."""
        return sum(path.stat().st_size for path in self.paths)


def estimate_s(bulk: BulkTable) -> float:
    """How long a load takes, about."""
    return bulk.input_bytes() / BYTES_PER_S


@contextlib.contextmanager
def files_of(arms: Iterable[Arm], seed: int, progress: Progress) -> Iterator[dict[int, tuple[Files, ...]]]:
    """The files of every arm that loads some, by its index. Those that are generated are made once, and last as long as this."""
    with contextlib.ExitStack() as stack:
        made: dict[tuple[float, bool, tuple[str, ...]], tuple[Files, ...]] = {}
        found: dict[int, tuple[Files, ...]] = {}
        for arm in arms:
            bulk = arm.workload.bulk
            if arm.workload.kind != "load":
                continue
            if bulk.generate is None:
                found[arm.index] = tuple(Files(table, tuple(paths)) for table, paths in bulk.sources().items())
                continue
            key = (bulk.scale, bulk.gzip, tuple(sorted(bulk.names)))
            if key not in made:
                made[key] = stack.enter_context(_generated(bulk, seed, progress))
            of_table = {one.table: one for one in made[key]}
            found[arm.index] = tuple(of_table[name] for name in bulk.names)
        yield found


@contextlib.contextmanager
def _generated(bulk: BulkTable, seed: int, progress: Progress) -> Iterator[tuple[Files, ...]]:
    needed = round(bulk.input_bytes() * (_GZIP_SHARE if bulk.gzip else 1.0))
    preflight.require_memory(needed, "files to load")
    folder = paths.image_dir() / f"files-{secrets.token_hex(3)}"
    asked = [f"--scale={bulk.scale!r}", f"--out={folder}", f"--seed={seed}"]
    asked += [f"--file={imdb.TABLES[table]}" for table in bulk.names] + (["--gzip"] if bulk.gzip else [])
    summary: dict[str, Any] = {}
    with Journal(paths.state_dir()).directory(folder):
        with contextlib.closing(_engine.lines(["generate", "imdb", *asked], {})) as lines:
            for line in lines:
                if "progress" in line:
                    progress(line["progress"]["share"], "generate files")
                summary = line.get("summary", summary)
        rows = {Path(one["path"]).name.partition(".tsv")[0]: one for one in summary["files"]}
        yield tuple(
            Files(table, (Path(rows[imdb.TABLES[table]]["path"]),), int(rows[imdb.TABLES[table]]["rows"]))
            for table in bulk.names
        )
