"""The data set of an experiment: loaded once on a volume without limits, then cloned for every run."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.errors import InputError
from pgdyno.postgres import settings
from pgdyno.postgres.cluster import Cluster
from pgdyno.workload.load import load
from pgdyno.world import paths, preflight, volume
from pgdyno.world.journal import Journal

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.experiment import CompareExperiment
    from pgdyno.postgres.binaries import PgBinaries

Progress = Callable[[float, str], None]

DATA_FOLDER = "pgdata"
"""Below the mount: the root of an ext4 holds ``lost+found``, and initdb wants an empty directory."""
BYTES_PER_SCALE = 16 << 20
"""pgbench's tables with their indexes, measured at scales 10 to 200 with fill factor 100."""
_BESIDE_DATA_BYTES = 512 << 20
"""An empty cluster, its WAL while loading, and the file system's own."""
_LOAD_MEMORY_BYTES = 1 << 30
"""Settings for loading are those of this much memory; no limit is imposed."""


@dataclass(frozen=True)
class Dataset:
    """A cleanly shut down cluster with the workload's tables, as an image that volumes start from."""

    image: Path
    size_bytes: int
    """Size of the volume it was made on; a clone is at least as large."""


def bytes_needed(experiment: CompareExperiment) -> int:
    """Bytes on the volume after loading."""
    workload = experiment.workload
    return workload.scale * BYTES_PER_SCALE * 100 // workload.fillfactor + _BESIDE_DATA_BYTES


@contextmanager
def loaded(experiment: CompareExperiment, binaries: PgBinaries, progress: Progress) -> Iterator[Dataset]:
    """Load the data set, and keep it for the length of a ``with`` block."""
    size_bytes = volume_bytes(experiment)
    # Loading writes the tables once and WAL beside them; each run then writes into a layer of its own.
    preflight.require_memory(2 * bytes_needed(experiment), f"a data set of scale {experiment.workload.scale}")
    journal = Journal(paths.state_dir())
    name = f"dataset-{secrets.token_hex(3)}"
    image = paths.image_dir() / name
    with journal.directory(image), journal.directory(paths.state_dir() / "mounts" / name) as mount:
        spec = f"null:size={size_bytes >> 20}MiB"
        # The image's folder must not exist when the volume becomes it.
        image.rmdir()
        attached = volume.attach(spec, mount=mount, name=name)
        try:
            _fill(experiment, binaries, mount, journal, progress)
            attached.detach(save_image=image)
        except BaseException:
            attached.detach()
            raise
        yield Dataset(image, size_bytes)


def _fill(
    experiment: CompareExperiment, binaries: PgBinaries, mount: Path, journal: Journal, progress: Progress
) -> None:
    progress(0.0, "initdb")
    cluster = Cluster(binaries, mount / DATA_FOLDER, journal=journal)
    try:
        cluster.initdb()
        with cluster.running(settings.tuned(_LOAD_MEMORY_BYTES)):
            load(cluster, experiment.workload, progress)
    finally:
        cluster.close()


def volume_bytes(experiment: CompareExperiment) -> int:
    """Size of the volume to load on: the smallest arm's, since every arm must be able to hold the image.

    :class:`InputError` when that is too small for the data.
    """
    sizes = {arm: int(volume.resolve(arm)["size_bytes"]) for arm in experiment.arms}
    smallest = min(sizes, key=lambda arm: sizes[arm])
    needed = bytes_needed(experiment)
    if sizes[smallest] < needed:
        raise InputError(
            f"{smallest} holds {sizes[smallest] / 2**30:.1f} GiB, and scale {experiment.workload.scale} needs"
            f" {needed / 2**30:.1f} GiB",
            remedy=f"ask for a smaller --scale or a larger volume, as {smallest.split(':')[0]}:size=100GiB",
        )
    return sizes[smallest]
