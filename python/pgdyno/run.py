"""The flow: an experiment becomes a data set, its cells become run directories, and those become the report."""

from __future__ import annotations

import platform
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno import __version__, _engine
from pgdyno.cell import Context, run_cell, server_settings
from pgdyno.dataset import loaded, volume_bytes
from pgdyno.postgres import settings
from pgdyno.postgres.binaries import PgBinaries, find_binaries
from pgdyno.store import names, record
from pgdyno.store.writer import RunWriter, write_experiment
from pgdyno.world import preflight
from pgdyno.world.dirty_limits import current_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pgdyno.experiment import Cell, CompareExperiment

OVERHEAD_S = 6.0
"""Attaching, starting, checking and stopping of one run, as measured; it only feeds the estimate of what is left."""


@dataclass(frozen=True)
class Step:
    """Where an experiment is: for a progress bar."""

    title: str
    text: str
    share: float
    """Of this step, 0 to 1."""


def compare(
    experiment: CompareExperiment,
    *,
    root: Path,
    command: tuple[str, ...],
    pg_bin: Path | None = None,
    on_step: Callable[[Step], None] = lambda _step: None,
    on_run: Callable[[Cell, Path], None] = lambda _cell, _path: None,
) -> Path:
    """Run ``experiment`` in the emulated world and return its directory below ``root``.

    Raises before anything is changed when the machine or the experiment is not fit for it.
    """
    binaries = require(experiment, pg_bin)
    written = _record(experiment, binaries, command)
    directory = write_experiment(root, written)
    with _quiet(directory), loaded(experiment, binaries, _reporter(on_step, "load")) as dataset:
        context = Context(experiment, written.experiment_id, written.experiment_hash, command, binaries, dataset, root)
        for cell in experiment.cells():
            name = names.run_name(cell.position, cell.arm, cell.block)
            writer = RunWriter(root, written.experiment_id, name)
            title = f"{cell.arm}, replicate {cell.block} of {experiment.replicates}"
            on_run(cell, run_cell(context, cell, writer, _reporter(on_step, title)))
    return directory


def require(experiment: CompareExperiment, pg_bin: Path | None) -> PgBinaries:
    """Everything that can be refused before the first change: volumes, sizes, settings, root, devices, binaries."""
    volume_bytes(experiment)
    settings.render(server_settings(experiment))
    preflight.require_root("attaching a volume")
    preflight.require_fuse()
    preflight.require_loop()
    preflight.require_programs("mkfs.ext4", "mount", "umount", "taskset")
    current_limits()
    return find_binaries(pg_bin)


def _record(experiment: CompareExperiment, binaries: PgBinaries, command: tuple[str, ...]) -> record.ExperimentRecord:
    engine = _engine.facts()
    identity = experiment.identity() | {"postgres": binaries.version, "engine": engine.build_hash}
    experiment_hash = names.identity_hash(identity)
    created_unix_ns = time.time_ns()
    return record.ExperimentRecord(
        experiment_id=names.experiment_id("compare", experiment_hash, created_unix_ns),
        experiment_hash=experiment_hash,
        kind="compare",
        created_unix_ns=created_unix_ns,
        command=command,
        seed=experiment.seed,
        arms=experiment.arms,
        replicates=experiment.replicates,
        order=tuple((cell.block, cell.arm_index) for cell in experiment.cells()),
        settings=experiment.model_dump(exclude={"arms", "seed", "replicates"}),
        versions={"pgdyno": __version__, "engine": engine.build_hash, "python": platform.python_version()},
    )


def _reporter(on_step: Callable[[Step], None], title: str) -> Callable[[float, str], None]:
    return lambda share, text: on_step(Step(title, text, share))


@contextmanager
def _quiet(directory: Path) -> Iterator[None]:
    """An experiment that ends before its first run leaves no directory behind."""
    try:
        yield
    except BaseException:
        if not any((directory / "runs").glob("*/run.json")):
            (directory / "experiment.json").unlink(missing_ok=True)
            for folder in (directory / "runs", directory):
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()
        raise
