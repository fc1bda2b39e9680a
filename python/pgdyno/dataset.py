"""The data sets of an experiment: each loaded once on volumes without limits, then cloned for every run.

Arms share a data set when a server of the same major version can run on it, on the same file system, with the same
tables; it is as large as the smallest of their volumes.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.postgres import settings
from pgdyno.postgres.cluster import Cluster
from pgdyno.workload.load import load
from pgdyno.workload.spec import PgbenchSpec
from pgdyno.world import paths, preflight, volume
from pgdyno.world.journal import Journal

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.experiment import Experiment
    from pgdyno.postgres.binaries import PgBinaries
    from pgdyno.resolved import ResolvedArm
    from pgdyno.world.file_system import FileSystem

Progress = Callable[[float, str], None]

DATA_FOLDER = "pgdata"
"""Below the mount: the root of an ext4 holds ``lost+found``, and initdb wants an empty directory."""
BYTES_PER_SCALE = 16 << 20
"""pgbench's tables with their indexes, measured at scales 10 to 200 with fill factor 100."""
LOAD_S_FIXED = 5.0
LOAD_S_PER_SCALE = 0.2
"""Loading on two cores, as measured; it only feeds estimates."""
_BESIDE_DATA_BYTES = 512 << 20
"""An empty cluster, its WAL while loading, and the file system's own."""
_LOAD_MEMORY_BYTES = 1 << 30
"""Settings for loading are those of this much memory; no limit is imposed."""


@dataclass(frozen=True)
class DatasetKey:
    """What makes two data sets the same."""

    postgres_major: int
    file_system: FileSystem
    scale: int
    fillfactor: int
    size_bytes: int
    """Size of the volume it is made on; a clone is at least as large."""

    @property
    def bytes_needed(self) -> int:
        """Bytes on the volume after loading."""
        return _bytes_needed(self.scale, self.fillfactor)

    @property
    def estimate_s(self) -> float:
        """How long loading takes, about."""
        return LOAD_S_FIXED + self.scale * LOAD_S_PER_SCALE


@dataclass(frozen=True)
class Dataset:
    """A cleanly shut down cluster with the workload's tables, as images that volumes start from."""

    key: DatasetKey
    images: dict[str, Path]
    """By the role of the volume."""


def dataset_keys(experiment: Experiment, arms: Sequence[ResolvedArm]) -> dict[int, DatasetKey]:
    """The data set of each arm by the arm's index. An error when a volume is too small for the data."""
    sharing: dict[tuple[int, FileSystem, int, int], list[ResolvedArm]] = {}
    for one in arms:
        _require_room(experiment, one)
        workload = one.arm.workload
        common: tuple[int, FileSystem, int, int] = (
            one.binaries.major,
            one.arm.world.file_system,
            workload.scale,
            workload.fillfactor,
        )
        sharing.setdefault(common, []).append(one)
    keys: dict[int, DatasetKey] = {}
    for (major, file_system, scale, fillfactor), group in sharing.items():
        size_bytes = min(int(one.volumes["data"]["size_bytes"]) for one in group)
        keys |= {one.arm.index: DatasetKey(major, file_system, scale, fillfactor, size_bytes) for one in group}
    return keys


@contextlib.contextmanager
def loaded(
    wanted: Mapping[DatasetKey, PgBinaries], progress: Callable[[DatasetKey], Progress]
) -> Iterator[dict[DatasetKey, Dataset]]:
    """Load every data set, and keep them for the length of a ``with`` block."""
    # Loading writes the tables once and WAL beside them; each run then writes into a layer of its own.
    needed = sum(key.bytes_needed for key in wanted) + max((key.bytes_needed for key in wanted), default=0)
    preflight.require_memory(needed, f"{len(wanted)} data set{'s' if len(wanted) > 1 else ''} with a run on a clone")
    with contextlib.ExitStack() as stack:
        yield {key: stack.enter_context(_loaded(key, binaries, progress(key))) for key, binaries in wanted.items()}


@contextlib.contextmanager
def _loaded(key: DatasetKey, binaries: PgBinaries, progress: Progress) -> Iterator[Dataset]:
    journal = Journal(paths.state_dir())
    name = f"dataset-{secrets.token_hex(3)}"
    image = paths.image_dir() / name
    with journal.directory(image):
        # The image's folder must not exist when the volume becomes it.
        image.rmdir()
        with journal.directory(paths.state_dir() / "mounts" / name) as mount:
            spec = f"null:size={key.size_bytes >> 20}MiB"
            attached = volume.attach(spec, mount=mount, name=name, file_system=key.file_system)
            try:
                _fill(key, binaries, mount, journal, progress)
                attached.detach(save_image=image)
            except BaseException:
                attached.detach()
                raise
        yield Dataset(key, {"data": image})


def _fill(key: DatasetKey, binaries: PgBinaries, mount: Path, journal: Journal, progress: Progress) -> None:
    progress(0.0, "initdb")
    cluster = Cluster(binaries, mount / DATA_FOLDER, journal=journal)
    try:
        cluster.initdb()
        with cluster.running(settings.tuned(_LOAD_MEMORY_BYTES, binaries.major)):
            load(cluster, PgbenchSpec(scale=key.scale, fillfactor=key.fillfactor), progress)
    finally:
        cluster.close()


def _bytes_needed(scale: int, fillfactor: int) -> int:
    return scale * BYTES_PER_SCALE * 100 // fillfactor + _BESIDE_DATA_BYTES


def _require_room(experiment: Experiment, one: ResolvedArm) -> None:
    workload, spec = one.arm.workload, one.arm.world.placement["data"]
    needed, size_bytes = _bytes_needed(workload.scale, workload.fillfactor), int(one.volumes["data"]["size_bytes"])
    if size_bytes < needed:
        raise experiment.error(
            one.arm,
            ("workload", "scale"),
            f"{spec} holds {size_bytes / 2**30:.1f} GiB, and scale {workload.scale} needs {needed / 2**30:.1f} GiB",
            f"ask for a smaller scale or a larger volume, as {spec.split(':')[0]}:size=100GiB",
        )
