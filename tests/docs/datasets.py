"""Data sets that commands share: what one has loaded the next finds, as the arms of one experiment do.

Making a server and filling it is a third of what a short measurement takes, and it is the same for most documents. The
first that needs a data set loads it as a user's command does.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pgdyno.server.binaries import PgBinaries
    from pgdyno.world.dataset import Dataset, DatasetKey, Progress

PLACE = "PGDYNO_TEST_DATASETS"
"""Environment variable that names the folder of what was loaded; without it nothing is shared."""


def share() -> None:
    """Have the experiments of this process take data sets from the folder, and leave there what they load."""
    place = os.environ.get(PLACE)
    if place is None:
        return
    from pgdyno.world import dataset

    load = dataset._loaded

    @contextlib.contextmanager
    def found_or_loaded(
        key: DatasetKey, binaries: PgBinaries, progress: Progress, directory: Path, note: Callable[[str], None]
    ) -> Iterator[Dataset]:
        if key.tables.family == "database":  # a database of the user's has a name of its own, and is restored at once
            with load(key, binaries, progress, directory, note) as made:
                yield made
            return
        # What loads it is no part of a key: pgbench and the engine load the same.
        kept = Path(place) / hashlib.sha256(repr((key, binaries.version)).encode()).hexdigest()[:16]
        if not kept.is_dir():
            before = set((directory / "loads").glob("*"))
            with load(key, binaries, progress, directory, note) as made:
                _keep(made, sorted(set((directory / "loads").glob("*")) - before), kept)
                yield made
            return
        shutil.copytree(kept / "loads", directory / "loads", dirs_exist_ok=True)
        yield dataset.Dataset(key, {role: kept / role for role, _ in key.sizes})

    dataset._loaded = found_or_loaded


def _keep(made: Dataset, records: list[Path], kept: Path) -> None:
    """Images are never written to, so a link keeps one."""
    unfinished = kept.with_suffix(".partial")
    shutil.rmtree(unfinished, ignore_errors=True)
    for role, image in made.images.items():
        shutil.copytree(image, unfinished / role, copy_function=os.link)
    (unfinished / "loads").mkdir()  # also where nothing was loaded into its tables
    for record in records:
        shutil.copytree(record, unfinished / "loads" / record.name)
    unfinished.rename(kept)
