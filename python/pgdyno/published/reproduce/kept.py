"""What verdicts need of an experiment, in one small file: of each arm the figures of each replicate, and why runs are invalid.

Run directories are too large for a repository; such a file is not, and the same verdicts follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.finding import why_invalid
from pgdyno.analysis.loads import LOAD_METRICS, LoadFigures, loads_of
from pgdyno.experiment import Experiment
from pgdyno.report.part import DocumentPart

from ...analysis.binding.rules import TITLES
from ...analysis.compare import differences
from ...analysis.ratio import Block, NamedFigure, by_block, figures_by_name
from ...base.errors import InputError
from ...experiment.origin import dotted


class KeptRun(DocumentPart):
    """One replicate of an arm."""

    block: Block
    """The experiment that it was a run of, and its block there."""
    invalid: tuple[str, ...]
    """Why its numbers must not be used; empty for a valid run."""
    figures: dict[str, float]
    """By their names in tables, CSV and JSON. Runs of an arm whose load was repeated have the figures of one load each, in their order."""


class KeptArm(DocumentPart):
    """One arm."""

    label: str
    levels: tuple[int, ...]
    """The place of its level in each factor."""
    bound: str
    """The limit that bound, as a title."""
    runs: tuple[KeptRun, ...]

    @property
    def invalid(self) -> list[str]:
        """Why runs of it must not be used."""
        return [reason for run in self.runs for reason in run.invalid]

    def by_block(self, metric: str) -> dict[Block, float]:
        """A figure of each replicate that has it."""
        return {run.block: run.figures[metric] for run in self.runs if metric in run.figures}


class KeptExperiment(DocumentPart):
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
    arms: tuple[KeptArm, ...]


def keep(name: str, comparison: Comparison, experiment: Experiment, metrics: Iterable[str]) -> KeptExperiment:
    """What there is to keep of an experiment's results. ``experiment`` is what was asked for."""
    record = comparison.experiment
    return KeptExperiment(
        name=name,
        day=datetime.fromtimestamp(record.created_unix_ns / 1e9, UTC).date().isoformat(),
        versions=record.versions,
        factors={factor.name: factor.levels for factor in comparison.factors},
        identity=experiment.identity(),
        arms=tuple(kept_arms(comparison, metrics)),
    )


def kept_arms(comparison: Comparison, metrics: Iterable[str]) -> Iterator[KeptArm]:
    """Its arms with these figures."""
    metrics = sorted(metrics)
    named = figures_by_name()
    for arm in comparison.arms:
        figures = {metric: by_block(arm, named[metric].of) for metric in metrics if metric in named}
        figures |= {
            metric: _of_loads(comparison, arm, LOAD_METRICS[metric]) for metric in metrics if metric in LOAD_METRICS
        }
        yield KeptArm(
            label=arm.label,
            levels=arm.levels,
            bound=_bound(comparison, arm.index),
            runs=tuple(
                KeptRun(
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


def asked(metric: str) -> tuple[str, str]:
    """Title and unit of a figure of runs or of loads; KeyError of any other."""
    figure = LOAD_METRICS.get(metric) or figures_by_name()[metric]
    return figure.title, figure.unit


def _bound(comparison: Comparison, index: int) -> str:
    limit = comparison.bindings[index].verdict.limit
    return "none stands out" if limit is None else TITLES[limit]


def together(before: KeptExperiment, new: KeptExperiment) -> KeptExperiment:
    """One experiment that was recorded in two parts: the arms of both, each with the runs of all its blocks.

    :class:`InputError` where the parts differ in what can change a result.
    """
    if differing := differences(before.identity, new.identity):
        place = dotted(differing[0].place)
        raise InputError(
            f"{new.name} was kept with another {place}", remedy="keep it without --add, which replaces what was kept"
        )
    arms = {arm.levels: arm for arm in before.arms}
    for arm in new.arms:
        there = arms.get(arm.levels)
        runs = {run.block: run for kept_arm in (there, arm) if kept_arm is not None for run in kept_arm.runs}
        arms[arm.levels] = arm.model_copy(update={"runs": tuple(runs.values())})
    return new.model_copy(update={"arms": tuple(arms.values())})


def read_kept(path: Path) -> KeptExperiment:
    """A file that :func:`keep` made. :class:`InputError` for any other."""
    try:
        return KeptExperiment.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{path} is not a file of kept results: {place}: {first['msg']}", remedy="make it again from the results"
        ) from None
