"""Compares the arms of an experiment, from its run directories alone.

Nothing is selected after the fact: every finished run enters the figures, and an arm is valid when each of its runs is.
A verdict is derived here each time and stored nowhere, so a later pgdyno may judge an old run better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pgdyno.analysis import verdict
from pgdyno.analysis.distribution import Distribution, merge
from pgdyno.analysis.interval import Estimate, distinguishable, ratio_interval, t_interval
from pgdyno.analysis.run_figures import RunFigures, figures_of
from pgdyno.analysis.validity import Finding, findings, worst
from pgdyno.errors import InputError
from pgdyno.store import open_experiment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pgdyno.store.record import ExperimentRecord


@dataclass(frozen=True)
class Replicate:
    """One run with what was found about it."""

    figures: RunFigures
    findings: tuple[Finding, ...]

    @property
    def valid(self) -> bool:
        """Whether no finding makes the run invalid."""
        return worst([finding.level for finding in self.findings]) != "invalid"


@dataclass(frozen=True)
class ArmSummary:
    """One arm (a volume) over its replicates."""

    index: int
    volume: str
    """The volume as the user wrote it."""
    label: str
    """A short name for a figure and a sentence: the volume's type where that is unique, else the specification."""
    replicates: tuple[Replicate, ...]
    missing: int = 0
    """Replicates that were planned and have no finished run."""

    @cached_property
    def tps(self) -> Estimate:
        """Transactions per second: the mean of the replicates, with its interval."""
        return t_interval([replicate.figures.tps for replicate in self.replicates])

    @cached_property
    def latency_ms(self) -> Distribution:
        """Response times of all replicates together."""
        return merge(replicate.figures.latency_ms for replicate in self.replicates)

    @cached_property
    def read_ms(self) -> Distribution:
        """Latency of the volume's reads, all replicates together."""
        return merge(replicate.figures.read_ms for replicate in self.replicates)

    @cached_property
    def write_ms(self) -> Distribution:
        """Latency of the volume's writes, all replicates together."""
        return merge(replicate.figures.write_ms for replicate in self.replicates)

    @property
    def iops(self) -> float | None:
        """Requests per second, mean of the replicates."""
        return mean_known([replicate.figures.iops for replicate in self.replicates])

    @property
    def mib_per_s(self) -> float | None:
        """Throughput of the volume, mean of the replicates."""
        return mean_known([replicate.figures.mib_per_s for replicate in self.replicates])

    @property
    def queue_length(self) -> float | None:
        """Mean queue length, mean of the replicates."""
        return mean_known([replicate.figures.queue_length for replicate in self.replicates])

    @property
    def time_above_limit(self) -> dict[str, float]:
        """Limit -> share of the time in which requests waited for it, mean of the replicates."""
        return _mean_by_name([dict(replicate.figures.time_above_limit) for replicate in self.replicates])

    @property
    def cpu_share(self) -> dict[str, float]:
        """Role -> share of the machine, mean of the replicates."""
        return _mean_by_name([dict(replicate.figures.cpu_share) for replicate in self.replicates])

    @property
    def resolved(self) -> dict[str, Any]:
        """The volume's resolved specification, from the first replicate."""
        return self.replicates[0].figures.record.world.volume

    @property
    def attach(self) -> dict[str, Any]:
        """What the volume's daemon said when it was ready, from the first replicate."""
        return self.replicates[0].figures.record.world.attach

    @property
    def usd_per_month(self) -> float | None:
        """List price of the volume; None where it has none."""
        price = self.resolved.get("usd_per_month")
        return None if price is None else float(price)

    @property
    def why_invalid(self) -> tuple[str, ...]:
        """Reasons, each with the replicate and the figure; empty for a valid arm."""
        return self._reasons("invalid")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to keep in mind, in the same form; a missing replicate is one."""
        lost = (f"{self.missing} of the planned replicates have no finished run",) if self.missing else ()
        return lost + self._reasons("warn")

    @property
    def valid(self) -> bool:
        """Whether every replicate is valid."""
        return all(replicate.valid for replicate in self.replicates)

    @property
    def representative(self) -> Replicate:
        """The replicate with the median TPS (the lower of the two middle ones), for lines over time."""
        ordered = sorted(self.replicates, key=lambda replicate: replicate.figures.tps)
        return ordered[(len(ordered) - 1) // 2]

    def _reasons(self, level: str) -> tuple[str, ...]:
        return tuple(
            f"replicate {replicate.figures.record.block}: {finding.check}: {finding.figure}"
            for replicate in self.replicates
            for finding in replicate.findings
            if finding.level == level
        )


@dataclass(frozen=True)
class Ratio:
    """TPS of one arm over that of another, paired by block."""

    index: int
    to_index: int
    estimate: Estimate | None
    """None when no block has a run of both."""

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 1."""
        return self.estimate is not None and distinguishable(self.estimate)


@dataclass(frozen=True)
class Comparison:
    """Everything that a table, a document and a page say about an experiment."""

    experiment: ExperimentRecord
    paths: tuple[Path, ...]
    """The experiment's directory, or those of several equal experiments that were pooled."""
    arms: tuple[ArmSummary, ...]
    ratios: tuple[Ratio, ...]
    unreadable: tuple[str, ...] = ()
    """Run directories that could not be read, and why."""

    @property
    def verdict(self) -> str:
        """One sentence for each arm after the first."""
        return verdict.sentence(self.arms, self.ratios)

    @property
    def valid(self) -> bool:
        """Whether every arm is."""
        return all(arm.valid for arm in self.arms)


def summarise(*directories: Path) -> Comparison:
    """Compare the arms of an experiment; several directories are pooled when the experiments were equal.

    Raises :class:`InputError` when a directory is no experiment, has no finished run, or differs from the first in
    anything that can change a result.
    """
    experiments = [open_experiment(directory) for directory in directories]
    first = experiments[0].record
    for other in experiments[1:]:
        if other.record.experiment_hash != first.experiment_hash:
            raise InputError(
                f"{other.path} is another experiment than {experiments[0].path}",
                remedy="make one report for each; only repetitions of the same experiment are pooled",
            )
    figures = [figures_of(run) for experiment in experiments for run in experiment.runs]
    if not figures:
        raise InputError(f"{experiments[0].path} has no finished run", remedy="repeat the experiment")
    arms = _arms(figures, planned=first.replicates * len(experiments))
    ratios = tuple(_ratio(arm, arms[0]) for arm in arms[1:])
    unreadable = tuple(f"{path}: {why}" for one in experiments for path, why in one.unreadable.items())
    return Comparison(first, tuple(directories), arms, ratios, unreadable)


def mean_known(values: Sequence[float | None]) -> float | None:
    """Mean of the values that are known; None when none is."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _mean_by_name(parts: Sequence[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: mean_known([part.get(name) for part in parts]) or 0.0 for name in names}


def _arms(figures: Sequence[RunFigures], planned: int) -> tuple[ArmSummary, ...]:
    by_arm: dict[int, list[RunFigures]] = {}
    for run in figures:
        by_arm.setdefault(run.record.arm_index, []).append(run)
    runs_of = [runs for _, runs in sorted(by_arm.items())]
    labels = _labels([(runs[0].record.arm, runs[0].record.world.volume.get("type")) for runs in runs_of])
    return tuple(
        ArmSummary(
            index=runs[0].record.arm_index,
            volume=runs[0].record.arm,
            label=label,
            replicates=tuple(
                Replicate(run, tuple(findings(run)))
                for run in sorted(runs, key=lambda run: (run.record.experiment_id, run.record.block))
            ),
            missing=max(0, planned - len(runs)),
        )
        for runs, label in zip(runs_of, labels, strict=True)
    )


def _labels(arms: Sequence[tuple[str, str | None]]) -> list[str]:
    """Names that tell arms, given as (volume, type), apart; the same volume twice is numbered."""
    types = [kind for _, kind in arms]
    names = [kind if kind and types.count(kind) == 1 else volume for volume, kind in arms]
    seen = [names[: place + 1].count(name) for place, name in enumerate(names)]
    return [name if count == 1 else f"{name} ({count})" for name, count in zip(names, seen, strict=True)]


def _ratio(arm: ArmSummary, base: ArmSummary) -> Ratio:
    under = {_block(replicate): replicate.figures.tps for replicate in base.replicates}
    pairs = [
        (replicate.figures.tps, under[_block(replicate)])
        for replicate in arm.replicates
        if under.get(_block(replicate), 0.0) > 0 and replicate.figures.tps > 0
    ]
    return Ratio(arm.index, base.index, ratio_interval(pairs) if pairs else None)


def _block(replicate: Replicate) -> tuple[str, int]:
    return replicate.figures.record.experiment_id, replicate.figures.record.block
