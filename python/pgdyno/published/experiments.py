"""Results of a document's experiments: found in a folder of runs, or in small files with the figures that verdicts need.

Run directories are too large for a repository; such a file is not, and the same verdicts follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.binding.rules import TITLES
from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.analysis.finding import why_invalid
from pgdyno.analysis.loads import LOAD_METRICS, LoadFigures, loads_of
from pgdyno.experiment import Experiment
from pgdyno.experiment.origin import dotted
from pgdyno.flow.resume import recorded

from ..analysis.compare import differences
from ..analysis.ratio import Block, NamedFigure, by_block, figures_by_name
from ..base.errors import InputError
from ..report.schema import DocumentPart
from ..results import StoredExperiment as Recorded
from ..results import list_experiments, open_experiment
from ..results.names import EXPERIMENT_FILE
from .library import arm_of


class RunFigureSet(DocumentPart):
    """One replicate of an arm."""

    block: Block
    """The experiment that it was a run of, and its block there."""
    invalid: tuple[str, ...]
    """Why its numbers must not be used; empty for a valid run."""
    figures: dict[str, float]
    """By their names in tables, CSV and JSON. Runs of an arm whose load was repeated have the figures of one load each, in their order."""


class ArmFigureSet(DocumentPart):
    """One arm."""

    label: str
    levels: tuple[int, ...]
    """The place of its level in each factor."""
    bound: str
    """The limit that bound, as a title."""
    runs: tuple[RunFigureSet, ...]

    @property
    def invalid(self) -> list[str]:
        """Why runs of it must not be used."""
        return [reason for run in self.runs for reason in run.invalid]

    def by_block(self, metric: str) -> dict[Block, float]:
        """A figure of each replicate that has it."""
        return {run.block: run.figures[metric] for run in self.runs if metric in run.figures}


class ExperimentFigures(DocumentPart):
    """One experiment."""

    schema_version: Literal[1] = 1
    name: str
    """The experiment file, without its ending."""
    day: str
    """The day on which it started, UTC: ``2026-11-25``."""
    versions: dict[str, str]
    factors: dict[str, tuple[str, ...]]
    """Factor -> its levels, in the order of the experiment file."""
    identity: dict[str, Any]
    """All that can change a result, as it was asked for."""
    arms: tuple[ArmFigureSet, ...]


def extract_figures(
    name: str, comparison: Comparison, experiment: Experiment, metrics: Iterable[str]
) -> ExperimentFigures:
    """Figures of an experiment's results that verdicts need. ``experiment`` is the experiment as requested."""
    record = comparison.experiment
    return ExperimentFigures(
        name=name,
        day=datetime.fromtimestamp(record.created_unix_ns / 1e9, UTC).date().isoformat(),
        versions=record.versions,
        factors={factor.name: factor.levels for factor in comparison.factors},
        identity=experiment.identity(),
        arms=tuple(arms_of(comparison, metrics)),
    )


def arms_of(comparison: Comparison, metrics: Iterable[str]) -> Iterator[ArmFigureSet]:
    """Its arms with these figures."""
    metrics = sorted(metrics)
    named = figures_by_name()
    for arm in comparison.arms:
        figures = {metric: by_block(arm, named[metric].of) for metric in metrics if metric in named}
        figures |= {
            metric: _of_loads(comparison, arm, LOAD_METRICS[metric]) for metric in metrics if metric in LOAD_METRICS
        }
        yield ArmFigureSet(
            label=arm.label,
            levels=arm.levels,
            bound=_bound(comparison, arm.index),
            runs=tuple(
                RunFigureSet(
                    block=replicate.block,
                    invalid=why_invalid(replicate.findings),
                    figures={metric: of[replicate.block] for metric, of in figures.items() if replicate.block in of},
                )
                for replicate in arm.replicates
            ),
        )


def _of_loads(comparison: Comparison, arm: ArmSummary, metric: NamedFigure[LoadFigures]) -> dict[Block, float]:
    """A figure of the loads of an arm's data set: the first beside the first replicate, so that those of one round are compared."""
    results = [metric.of(load) for load in loads_of(comparison.loads, arm.volume)]
    blocks = sorted(replicate.block for replicate in arm.replicates)
    return {block: value for block, value in zip(blocks, results, strict=False) if value}


def metric_title(metric: str) -> tuple[str, str]:
    """Title and unit of a figure of runs or of loads; KeyError of any other."""
    figure = LOAD_METRICS.get(metric) or figures_by_name()[metric]
    return figure.title, figure.unit


def _bound(comparison: Comparison, index: int) -> str:
    limit = comparison.bindings[index].verdict.limit
    return "none stands out" if limit is None else TITLES[limit]


def merge_figures(before: ExperimentFigures, new: ExperimentFigures) -> ExperimentFigures:
    """One experiment that was recorded in two parts: the arms of both, each with the runs of all its blocks.

    :class:`InputError` where the parts differ in what can change a result.
    """
    if differing := differences(before.identity, new.identity):
        place = dotted(differing[0].place)
        raise InputError(
            f"{new.name} was recorded with another {place}", remedy="leave out --add to replace the stored figures"
        )
    arms = {arm.levels: arm for arm in before.arms}
    for arm in new.arms:
        there = arms.get(arm.levels)
        runs = {run.block: run for kept_arm in (there, arm) if kept_arm is not None for run in kept_arm.runs}
        arms[arm.levels] = arm.model_copy(update={"runs": tuple(runs.values())})
    return new.model_copy(update={"arms": tuple(arms.values())})


def read_figures(path: Path) -> ExperimentFigures:
    """A file that :func:`keep` made. :class:`InputError` for any other."""
    try:
        return ExperimentFigures.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{path} is not a file of stored results: {place}: {first['msg']}", remedy="make it again from the results"
        ) from None


CHANGES_MAX = 4
"""Differences from the experiment file that are listed."""


@dataclass(frozen=True)
class ExperimentResult:
    """Results of one experiment file."""

    name: str
    path: Path | None = None
    """The directory of its runs, or the file with what was kept of them; None where there are none."""
    why: str = ""
    """Why there are none: a clause."""
    changed: tuple[str, ...] = ()
    """In what the recorded experiment differs from the file."""
    kept: ExperimentFigures | None = None
    """What was kept of its runs, where there is no directory of them."""
    refused: tuple[tuple[dict[str, str], str], ...] = ()
    """Arms that this machine cannot run: their levels, and why."""

    @cached_property
    def comparison(self) -> Comparison | None:
        """Its runs; None where there is no directory of them."""
        return None if self.path is None or self.kept is not None else summarise(self.path)

    def arms(self, metrics: Iterable[str]) -> tuple[ArmFigureSet, ...]:
        """Its arms with these figures of each replicate; none where it has no runs."""
        if self.kept is not None:
            return self.kept.arms
        return () if self.comparison is None else tuple(arms_of(self.comparison, metrics))

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


def find_results(root: Path, experiments: Iterable[Experiment]) -> dict[str, ExperimentResult]:
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
    kept = read_figures(file)
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
