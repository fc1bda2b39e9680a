"""Recorded results that answer published comparisons: which directory, and in what it differs from the experiment file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.difference import differences
from pgdyno.errors import InputError
from pgdyno.experiment.origin import dotted
from pgdyno.flow.resume import recorded
from pgdyno.reproduce.library import arm_of
from pgdyno.store import list_experiments, open_experiment
from pgdyno.store.names import EXPERIMENT_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pgdyno.analysis.arm import ArmSummary
    from pgdyno.analysis.compare import Comparison
    from pgdyno.experiment import Experiment
    from pgdyno.store import Experiment as Recorded

CHANGES_MAX = 4
"""Differences from the experiment file that are listed."""


@dataclass(frozen=True)
class Result:
    """What there is of one experiment file."""

    name: str
    path: Path | None = None
    """The directory of its runs; None where there are none."""
    why: str = ""
    """Why there are none: a clause."""
    changed: tuple[str, ...] = ()
    """In what the recorded experiment differs from the file."""

    @cached_property
    def comparison(self) -> Comparison | None:
        """Its arms; None where it has no runs."""
        return None if self.path is None else summarise(self.path)

    def arm(self, wanted: Mapping[str, str]) -> ArmSummary | None:
        """The arm with these levels; None where no run of it is finished."""
        found = self.comparison
        if found is None:
            return None
        levels = arm_of({factor.name: factor.levels for factor in found.factors}, wanted)
        if levels is None:
            return None
        places = tuple(factor.levels.index(levels[factor.name]) for factor in found.factors)
        return next((arm for arm in found.arms if arm.levels == places), None)


def recorded_in(root: Path, experiments: Iterable[Experiment]) -> dict[str, Result]:
    """The result of each experiment file in a folder of results, or in one result.

    Where there are several, one that equals the file is taken, then the one with the most runs, then the newest.
    """
    if (root / EXPERIMENT_FILE).is_file():
        there = [open_experiment(root)]
    elif root.is_dir():
        there = list_experiments(root, {})
    else:
        raise InputError(f"{root} is not a folder of results", remedy="name one, or the directory of an experiment")
    return {experiment.name: _best(root, there, experiment) for experiment in experiments}


def _best(root: Path, there: Iterable[Recorded], experiment: Experiment) -> Result:
    name = experiment.name
    found = [one for one in there if one.record.name == name and one.runs]
    if not found:
        return Result(name, why=f"{root} has no runs of {name}.toml")
    changed = {one.path: _changed(one, experiment) for one in found}
    best = max(found, key=lambda one: (not changed[one.path], len(one.runs), one.record.created_unix_ns))
    return Result(name, best.path, changed=changed[best.path])


def _changed(one: Recorded, experiment: Experiment) -> tuple[str, ...]:
    """``workload.duration 5s instead of 20s``; what cannot change a result, and the number of runs, is left out."""
    try:
        there = recorded(one.path).identity()
    except InputError:  # recorded before experiments could be resumed
        return ("settings that cannot be compared with the file",)
    found = differences(experiment.identity(), there)
    words = [f"{dotted(each.place)} {each.new!r} instead of {each.old!r}" for each in found[:CHANGES_MAX]]
    return (*words, *([f"{len(found) - CHANGES_MAX} more"] if len(found) > CHANGES_MAX else []))
