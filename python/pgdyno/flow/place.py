"""Where the runs of an experiment are made: here, or on other hosts; never partly here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pgdyno.world import World

from ..base.errors import InputError
from ..results import open_experiment


def require_divisible(world: World, only: Sequence[int]) -> None:
    """Refuse what cannot be divided among hosts by whole blocks."""
    if world.resumed_by_file:
        raise InputError(
            "--spread: the runs of several hosts would disturb each other on one existing server",
            remedy="omit --spread; with --drivers other hosts can drive the load of its runs",
        )
    if world.experiment.file.budget_s is not None:
        raise InputError(
            "--spread: a budget chooses further runs by those before them, and hosts make whole replicates",
            remedy="remove the budget from the file, and say how many with --replicates",
        )
    if world.experiment.file.crash.cuts:
        raise InputError(
            "--spread: the recording of a power cut that failed would stay on the host that made it",
            remedy="remove [crash] from the file, or omit --spread",
        )
    if only:
        raise InputError("--spread: hosts make whole replicates, not single arms", remedy="omit --only")


def require_same_place(directory: Path, world: World) -> None:
    """Refuse to continue here what was made on other hosts, and there what was made here: the runs of a block are of one host."""
    labels = {run.record.world.host.label for run in open_experiment(directory).runs}
    if None in labels and world.spread is not None:
        raise InputError(f"the runs of {directory} were made without --spread", remedy="resume it without --spread")
    if labels - {None} and world.spread is None:
        there = ", ".join(sorted(label for label in labels if label))
        raise InputError(
            f"the runs of {directory} were made on other hosts: {there}",
            remedy="resume it with --spread and --keys, as it was started",
        )
