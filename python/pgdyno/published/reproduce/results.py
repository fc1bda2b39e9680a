"""Recorded results that answer published comparisons: which directory, and in what it differs from the experiment file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.experiment import Experiment
from pgdyno.flow.resume import recorded

from ...analysis.compare import differences
from ...base.errors import InputError
from ...experiment.origin import dotted
from ...results import StoredExperiment as Recorded
from ...results import list_experiments, open_experiment
from ...results.names import EXPERIMENT_FILE
from .kept import KeptArm, KeptExperiment, kept_arms, read_kept
from .library import arm_of

CHANGES_MAX = 4
"""Differences from the experiment file that are listed."""


@dataclass(frozen=True)
class ExperimentResult:
    """What there is of one experiment file."""

    name: str
    path: Path | None = None
    """The directory of its runs, or the file with what was kept of them; None where there are none."""
    why: str = ""
    """Why there are none: a clause."""
    changed: tuple[str, ...] = ()
    """In what the recorded experiment differs from the file."""
    kept: KeptExperiment | None = None
    """What was kept of its runs, where there is no directory of them."""
    refused: tuple[tuple[dict[str, str], str], ...] = ()
    """Arms that this machine cannot run: their levels, and why."""

    @cached_property
    def comparison(self) -> Comparison | None:
        """Its runs; None where there is no directory of them."""
        return None if self.path is None or self.kept is not None else summarise(self.path)

    def arms(self, metrics: Iterable[str]) -> tuple[KeptArm, ...]:
        """Its arms with these figures of each replicate; none where it has no runs."""
        if self.kept is not None:
            return self.kept.arms
        return () if self.comparison is None else tuple(kept_arms(self.comparison, metrics))

    def places(self, wanted: Mapping[str, str]) -> tuple[int, ...] | None:
        """The levels of the arm that is asked for, as places in each factor; None where it has no such arm."""
        factors = self._factors()
        levels = arm_of(factors, wanted)
        return None if levels is None else tuple(of.index(levels[name]) for name, of in factors.items())

    def why_not(self, wanted: Mapping[str, str]) -> str:
        """Why an arm has no run: a clause; empty where that is not known."""
        levels = arm_of(self._factors(), wanted)
        return next((why for of, why in self.refused if of == levels), "")

    def _factors(self) -> Mapping[str, tuple[str, ...]]:
        if self.kept is not None:
            return self.kept.factors
        return {} if self.comparison is None else {factor.name: factor.levels for factor in self.comparison.factors}


def recorded_in(root: Path, experiments: Iterable[Experiment]) -> dict[str, ExperimentResult]:
    """The result of each experiment file in a folder of results, in one result, or in a folder of what was kept of some.

    Where there are several, one that equals the file is taken, then the one with the most runs, then the newest.
    """
    if (root / EXPERIMENT_FILE).is_file():
        there = [open_experiment(root)]
    elif root.is_dir():
        there = list_experiments(root, {})
    else:
        raise InputError(f"{root} is not a folder of results", remedy="name one, or the directory of an experiment")
    return {experiment.name: _best(root, there, experiment) for experiment in experiments}


def _best(root: Path, there: Iterable[Recorded], experiment: Experiment) -> ExperimentResult:
    name = experiment.name
    recordeds = [recorded for recorded in there if recorded.record.name == name and recorded.runs]
    if not recordeds:
        file = root / f"{name}.json"
        return (
            _of_kept(file, experiment)
            if file.is_file()
            else ExperimentResult(name, why=f"{root} has no runs of {name}.toml")
        )
    changed = {recorded.path: _changed(recorded, experiment) for recorded in recordeds}
    best = max(
        recordeds,
        key=lambda recorded: (not changed[recorded.path], len(recorded.runs), recorded.record.created_unix_ns),
    )
    return ExperimentResult(name, best.path, changed=changed[best.path])


def _of_kept(file: Path, experiment: Experiment) -> ExperimentResult:
    kept = read_kept(file)
    return ExperimentResult(experiment.name, file, changed=_differing(experiment, kept.identity), kept=kept)


def _changed(one: Recorded, experiment: Experiment) -> tuple[str, ...]:
    try:
        return _differing(experiment, recorded(one.path).identity())
    except InputError:  # recorded before experiments could be resumed
        return ("settings that cannot be compared with the file",)


def _differing(experiment: Experiment, there: Mapping[str, Any]) -> tuple[str, ...]:
    """``workload.duration 5s instead of 20s``; what cannot change a result, and the number of runs, is left out."""
    result = differences(experiment.identity(), there)
    words = [f"{dotted(each.place)} {each.new!r} instead of {each.old!r}" for each in result[:CHANGES_MAX]]
    return (*words, *([f"{len(result) - CHANGES_MAX} more"] if len(result) > CHANGES_MAX else []))
