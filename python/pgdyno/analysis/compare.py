"""The comparison of an experiment's arms, from its run directories alone; and of several experiments with each other.

Nothing is selected after the fact: every finished run enters the figures, and an arm is valid when each of its runs is. Of runs
spread over hosts only whole blocks enter. A verdict is derived here each time and stored nowhere, so a later pgdyno may judge an old
run better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pgdyno.analysis import verdict
from pgdyno.analysis.arm import ArmSummary, Replicate
from pgdyno.analysis.binding.arm import ArmBinding, bind_arms
from pgdyno.analysis.cost import ArmCost, costs
from pgdyno.analysis.factors import Factor, arm_label, factors_of, levels_of
from pgdyno.analysis.loads import LoadFigures
from pgdyno.analysis.metric import MetricLine, lines_of
from pgdyno.analysis.queries import agreement
from pgdyno.analysis.ratio import Ratio, every_pair, ratio_of
from pgdyno.analysis.recommendation import Recommendation, recommend
from pgdyno.analysis.sweep import Sweep, sweep_of
from pgdyno.analysis.validity import findings
from pgdyno.analysis.warming import WarmingEffect, warmings

from ..base.errors import InputError
from ..base.goal import Goal, parse_goal
from ..results import StoredExperiment, open_experiment, open_loads
from ..results.record import ExperimentRecord
from .extrapolation import FACTOR, Undilated, undilated
from .factors import Effect, main_effects
from .ratio import (
    NoiseFloor,
    SpreadHost,
    UnpairedRuns,
    by_block,
    figures_by_name,
    hosts_of,
    noise_floor,
    paired,
    whole_blocks,
)
from .run import Headline, RunFigures, figures_of
from .statistics import Estimate, distinguishable, unpaired_ratio

Place = tuple[str | int, ...]
"""Keys and positions that lead to a value."""


@dataclass(frozen=True)
class Difference:
    """A value that two documents do not share; None where one has none."""

    place: Place
    old: Any
    new: Any


def differences(old: Any, new: Any) -> list[Difference]:
    """Every place at which two documents of tables, lists and values differ, in the order in which they come."""
    before, after = flat(old), flat(new)
    return list(_differences(before, after))


def flat(value: Any, place: Place = ()) -> dict[Place, Any]:
    """Place -> value of whatever has nothing below it."""
    if isinstance(value, dict) and value:
        return {key: inner for name, part in value.items() for key, inner in flat(part, (*place, name)).items()}
    if isinstance(value, list | tuple) and value:
        return {key: inner for at, part in enumerate(value) for key, inner in flat(part, (*place, at)).items()}
    return {place: value}


def _differences(old: Mapping[Place, Any], new: Mapping[Place, Any]) -> Iterator[Difference]:
    for place in dict.fromkeys((*old, *new)):
        if old.get(place) != new.get(place):
            yield Difference(place, old.get(place), new.get(place))


def same_order(factors: Iterable[str], others: Iterable[str]) -> bool:
    """Whether two experiments number their arms alike: by the order of their factors, which their hash does not know."""
    return list(factors) == list(others)


@dataclass(frozen=True)
class Comparison:
    """Everything that a table, a document and a page say about an experiment."""

    experiment: ExperimentRecord
    paths: tuple[Path, ...]
    """The experiment's directory, or those of several equal experiments that were pooled."""
    arms: tuple[ArmSummary, ...]
    ratios: tuple[Ratio, ...]
    """Each arm after the first against the first."""
    factors: tuple[Factor, ...] = ()
    effects: tuple[Effect, ...] = ()
    """What each factor did over all others; empty for a single factor, whose effects are the ratios."""
    absent: tuple[str, ...] = ()
    """Arms that were planned and have no finished run at all."""
    unreadable: tuple[str, ...] = ()
    """Run directories that could not be read, and why."""
    unpaired: tuple[UnpairedRuns, ...] = ()
    """Runs that were spread over hosts and are left out, because their block is not whole."""
    goal: Goal | None = None
    """What an arm must do to be recommended; None: be about as fast as the fastest."""

    @cached_property
    def recommendation(self) -> Recommendation:
        """The one arm of the set to take, or why none is recommended."""
        return recommend(self.arms, self.factors, self.goal, self.bindings, self.costs, self.absent)

    @cached_property
    def pairs(self) -> tuple[Ratio, ...]:
        """Each arm against each one before it; empty of a sweep of very many arms."""
        return every_pair(self.arms)

    @property
    def metric(self) -> Headline:
        """The headline by which its arms are compared."""
        return self.arms[0].metric

    @property
    def verdict(self) -> str:
        """What was found, in sentences: of each factor where there are several, else of each arm after the first.

        What happened on purpose while measuring is said first, and of replays whether they kept up.
        """
        return verdict.with_events(self.arms) + verdict.of_replays(self.arms) + self._verdict

    @property
    def _verdict(self) -> str:
        if self.sweep is not None and len(self.arms) > verdict.SENTENCES_MAX + 1:
            return verdict.of_sweep(self.arms, self.factors, self.effects, self.sweep)
        if self.effects:
            return verdict.of_effects(self.arms, self.factors, self.effects)
        return verdict.sentence(self.arms, self.ratios, self.pairs)

    @cached_property
    def figures(self) -> dict[str, MetricLine]:
        """Name of each metric that any arm has -> that of every arm."""
        return lines_of(self.arms)

    @cached_property
    def warmings(self) -> tuple[WarmingEffect, ...]:
        """Arms whose volumes were made from snapshots, each beside its warm one."""
        return warmings(self.factors, self.arms)

    @cached_property
    def sweep(self) -> Sweep | None:
        """Its arms along the factors that are numbers; None where none has three levels."""
        return sweep_of(self.factors, self.arms)

    @property
    def one_at_a_time(self) -> bool:
        """Whether every arm but the first differs from it in one factor alone."""
        return self.experiment.settings.get("design") == "one-at-a-time"

    @cached_property
    def costs(self) -> dict[int, ArmCost]:
        """Index of an arm -> what it costs and how long it lasts."""
        return costs(self.arms, self.factors)

    @cached_property
    def bindings(self) -> dict[int, ArmBinding]:
        """Index of an arm -> the limit that binds, its evidence, and the remedy."""
        return bind_arms(self.arms)

    @cached_property
    def undilated(self) -> tuple[Undilated, ...]:
        """What its arms come to at dilation 1; empty without two dilations above it."""
        if all(factor.name != FACTOR for factor in self.factors):
            return ()
        return undilated(
            self.factors, self.arms, {index: binding.verdict.limit for index, binding in self.bindings.items()}
        )

    @cached_property
    def loads(self) -> tuple[LoadFigures, ...]:
        """The loads of its data sets, in the order in which they were made; empty where none was watched."""
        return tuple(LoadFigures(load) for path in self.paths for load in open_loads(path))

    @cached_property
    def hosts(self) -> tuple[SpreadHost, ...]:
        """The hosts over which its runs were spread; empty where they were made on one machine."""
        return hosts_of(self.arms)

    @cached_property
    def noise_floor(self) -> NoiseFloor | None:
        """How far apart two runs of one arm lie; None where there are too few runs."""
        return noise_floor(self.arms)

    @property
    def valid(self) -> bool:
        """Whether every arm is."""
        return all(arm.valid for arm in self.arms)


def summarise(*directories: Path, goal: Goal | None = None) -> Comparison:
    """Compare the arms of an experiment; several directories are pooled when the experiments were equal.

    ``goal`` goes before the one of the experiment file. Raises :class:`InputError` when a directory is not an experiment, has no finished run, is there twice, or differs from
    the first in anything that can change a result.
    """
    experiments = [open_experiment(directory) for directory in directories]
    first = experiments[0].record
    _require_poolable(experiments)
    figures = [figures_of(run) for experiment in experiments for run in experiment.runs]
    if not figures:
        raise InputError(f"{experiments[0].path} has no finished run", remedy="repeat the experiment")
    unreadable = tuple(f"{path}: {why}" for experiment in experiments for path, why in experiment.unreadable.items())
    planned = sum(experiment.record.replicates for experiment in experiments)
    return compared(first, figures, directories, unreadable, planned=planned, goal=goal)


def _require_poolable(experiments: Sequence[StoredExperiment]) -> None:
    """Refuse results that are not repetitions of the first: other experiments, and one that is there already."""
    seen: dict[str, Path] = {}
    for experiment in experiments:
        if experiment.record.experiment_hash != experiments[0].record.experiment_hash:
            raise InputError(
                f"{experiment.path} is another experiment than {experiments[0].path}",
                remedy="make one report for each; only repetitions of the same experiment are pooled",
            )
        if not same_order(experiment.record.factors, experiments[0].record.factors):
            raise InputError(
                f"{experiment.path} has the factors of {experiments[0].path} in another order, so its arms have other numbers",
                remedy="make one report for each; written in one order, the two could have been pooled",
            )
        # Its runs would count twice, and every interval would be too narrow.
        there = seen.get(experiment.record.experiment_id)
        if there is not None:
            raise InputError(f"{experiment.path} and {there} are one result", remedy="name each result once")
        seen[experiment.record.experiment_id] = experiment.path


def compared(
    first: ExperimentRecord,
    figures: Sequence[RunFigures],
    paths: Sequence[Path],
    unreadable: tuple[str, ...] = (),
    *,
    planned: int | None = None,
    goal: Goal | None = None,
) -> Comparison:
    """The comparison of runs whose figures are known; ``paths`` are the directories that they are from.

    ``planned`` is how many replicates there should be of each arm; without it, those of ``first`` in each directory.
    """
    figures, unpaired = whole_blocks(figures, len(first.arms))
    if not figures:
        raise InputError(f"{paths[0]}: no replicate is whole", remedy="resume the experiment")
    factors = factors_of(first, [run.record for run in figures])
    arms = _arms(figures, factors, first.replicates * len(paths) if planned is None else planned)
    present = {arm.index for arm in arms}
    return Comparison(
        experiment=first,
        paths=tuple(paths),
        arms=arms,
        ratios=tuple(ratio_of(arm, arms[0]) for arm in arms[1:]),
        factors=factors,
        effects=main_effects(factors, arms),
        absent=tuple(arm for index, arm in enumerate(first.arms) if index not in present),
        unreadable=unreadable,
        unpaired=unpaired,
        goal=goal if goal is not None else _recorded_goal(first),
    )


def _recorded_goal(experiment: ExperimentRecord) -> Goal | None:
    """The goal of the experiment file; None without one."""
    text = experiment.settings.get("goal")
    return parse_goal(text, "goal") if isinstance(text, str) else None


def _arms(figures: Sequence[RunFigures], factors: Sequence[Factor], planned: int) -> tuple[ArmSummary, ...]:
    by_arm: dict[int, list[RunFigures]] = {}
    for run in figures:
        by_arm.setdefault(run.record.arm_index, []).append(run)
    runs_of = [runs for _, runs in sorted(by_arm.items())]
    levels = [levels_of(factors, runs[0].record) for runs in runs_of]
    labels = _numbered([arm_label(factors, each) for each in levels])
    agreed = agreement(figures)
    return tuple(
        ArmSummary(
            index=runs[0].record.arm_index,
            volume=runs[0].record.arm,
            label=label,
            replicates=tuple(
                Replicate(run, (*findings(run), *agreed.get(str(run.run.path), ())))
                for run in sorted(runs, key=lambda run: (run.record.experiment_id, run.record.block))
            ),
            missing=max(0, planned - len(runs)),
            levels=each,
        )
        for runs, label, each in zip(runs_of, labels, levels, strict=True)
    )


def _numbered(labels: Sequence[str]) -> list[str]:
    """Names that tell arms apart: the same volume twice is numbered."""
    seen = [labels[: place + 1].count(label) for place, label in enumerate(labels)]
    return [label if count == 1 else f"{label} ({count})" for label, count in zip(labels, seen, strict=True)]


@dataclass(frozen=True)
class Pair:
    """An arm of one result and what answers to it in the other."""

    arm: ArmSummary
    other: ArmSummary
    ratio: Estimate | None
    """The headline of ``arm`` over that of ``other``; None where either did nothing."""

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 1."""
        return self.ratio is not None and distinguishable(self.ratio)


@dataclass(frozen=True)
class Against:
    """One result against another."""

    one: Comparison
    other: Comparison
    pairs: tuple[Pair, ...]
    """Arms that both have, in the order of the first."""
    alone: tuple[ArmSummary, ...]
    """Arms that only the first has."""
    alone_of_other: tuple[ArmSummary, ...]
    configuration: tuple[Difference, ...]
    """What was asked for; old is the other's."""
    programs: tuple[Difference, ...]
    """pgdyno, its engine, PostgreSQL, the host."""
    settings: tuple[Difference, ...]
    """PostgreSQL's settings of the first runs."""


def against(comparison: Comparison, other: Comparison) -> Against:
    """Match arms by their levels as they were written; where each has a single arm, those two whatever they are called.

    An arm has no answer among arms that have another headline.
    """
    waiting: dict[tuple[str, str], list[ArmSummary]] = {}
    for arm in other.arms:
        waiting.setdefault((arm.volume, arm.metric.name), []).append(arm)
    # The same level twice is two arms: the first answers to the first.
    matched = [(arm, same.pop(0)) for arm in comparison.arms if (same := waiting.get((arm.volume, arm.metric.name)))]
    if not matched and len(comparison.arms) == len(other.arms) == 1 and comparison.metric == other.metric:
        matched = [(comparison.arms[0], other.arms[0])]
    mine, theirs = {arm.index for arm, _ in matched}, {arm.index for _, arm in matched}
    return Against(
        one=comparison,
        other=other,
        pairs=tuple(Pair(arm, answer, _ratio(arm, answer)) for arm, answer in matched),
        alone=tuple(arm for arm in comparison.arms if arm.index not in mine),
        alone_of_other=tuple(arm for arm in other.arms if arm.index not in theirs),
        configuration=tuple(differences(_asked(other), _asked(comparison))),
        programs=tuple(differences(_programs(other), _programs(comparison))),
        settings=tuple(differences(_settings(other), _settings(comparison))),
    )


def _ratio(arm: ArmSummary, other: ArmSummary) -> Estimate | None:
    over, under = (list(summary.by_block.values()) for summary in (arm, other))
    return unpaired_ratio(over, under) if over and under else None


def _asked(comparison: Comparison) -> dict[str, Any]:
    """What was asked for, without what cannot change a result."""
    experiment = comparison.experiment
    kept = {name: value for name, value in experiment.settings.items() if name not in ("factors", "budget")}
    return {**kept, "factors": {name: ", ".join(levels) for name, levels in experiment.factors.items()}}


def _programs(comparison: Comparison) -> dict[str, Any]:
    host = comparison.arms[0].replicates[0].figures.record.world.host
    return {**comparison.experiment.versions, "host": host.model_dump()}


def _settings(comparison: Comparison) -> dict[str, Any]:
    """Setting -> value of the first run; where its files lay and what it was called say nothing about how it was set."""
    run = comparison.arms[0].replicates[0].figures.run
    return {
        str(row["name"]): f"{row['setting']} {row['unit'] or ''}".strip()
        for row in run.table("postgres/settings").to_pylist()
        if not str(row["name"]).endswith(("_file", "_directory", "_directories", "_path"))
    }


TIMES = ("latency_ms_p99", "read_ms_mean", "write_ms_mean")
"""Figures beside the one by which an experiment's arms are compared; less is better in each."""
MAIN = "main figure"
"""What that one is called where experiments have different ones: transactions in one, queries in another."""


@dataclass(frozen=True)
class ArmRow:
    """One figure of one arm against the first arm."""

    arm: str
    figure: str
    gains: tuple[Estimate | None, ...]
    """How many times better in each experiment; None where it has no such figure, or runs of either arm are invalid."""

    @property
    def mean(self) -> float | None:
        """The geometric mean over the experiments that have it; None where none does."""
        known = [math.log(gain.mean) for gain in self.gains if gain is not None]
        return math.exp(math.fsum(known) / len(known)) if known else None


@dataclass(frozen=True)
class Several:
    """The experiments beside each other."""

    first: str
    """The arm that the others are compared with."""
    names: tuple[str, ...]
    """The experiments."""
    rows: tuple[ArmRow, ...]
    invalid: tuple[str, ...]
    """Arms with runs that must not be used, each with its experiment."""


def several(comparisons: Sequence[Comparison]) -> Several:
    """Put experiments beside each other. :class:`InputError` where they have not two arms in common."""
    arms = [{arm.volume: arm for arm in comparison.arms} for comparison in comparisons]
    common = [name for name in arms[0] if all(name in arm for arm in arms)]
    if len(common) < 2:
        raise InputError(
            "these experiments have no two arms in common, so there is nothing to sum up",
            remedy="name experiments with the same levels; `pgdyno runs` lists them",
        )
    first, *others = common
    titles = {of[first].metric.title for of in arms}
    main = titles.pop() if len(titles) == 1 else MAIN
    rows = [
        row
        for name in others
        for row in (
            ArmRow(name, main, tuple(_main(arm[name], arm[first]) for arm in arms)),
            *(
                ArmRow(name, title, tuple(_time(arm[name], arm[first], time) for arm in arms))
                for time, title in _titles()
            ),
        )
        if row.mean is not None
    ]
    invalid = [
        f"{name} of {each.experiment.name}"
        for each, of in zip(comparisons, arms, strict=True)
        for name in common
        if not of[name].valid
    ]
    return Several(first, tuple(comparison.experiment.name for comparison in comparisons), tuple(rows), tuple(invalid))


def _titles() -> list[tuple[str, str]]:
    known = figures_by_name()
    return [(name, known[name].title.removesuffix(", ms")) for name in TIMES]


def _main(arm: ArmSummary, first: ArmSummary) -> Estimate | None:
    over, under = (arm, first) if arm.metric.better == "more" else (first, arm)
    return paired(over.by_block, under.by_block).ratio if arm.valid and first.valid else None


def _time(arm: ArmSummary, first: ArmSummary, name: str) -> Estimate | None:
    of = figures_by_name()[name].of
    return paired(by_block(first, of), by_block(arm, of)).ratio if arm.valid and first.valid else None
