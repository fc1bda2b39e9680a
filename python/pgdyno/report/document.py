"""The JSON that ``compare``, ``run`` and ``report`` print with ``--json``. ``schema/compare.schema.json`` is made from it.

A field is added, never renamed or given another meaning. A figure that was not recorded is null.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.factors import Factor
from pgdyno.analysis.ratio import Ratio
from pgdyno.report.document_arm import ArmDocument, arm_of

from ..analysis.factors import Effect
from ..analysis.run import Better
from ..analysis.statistics import Estimate
from .document_comparison import (
    RecommendationOf,
    SpreadHostOf,
    SweepOf,
    UndilatedOf,
    UnpairedOf,
    WarmingOf,
    hosts_of,
    recommendation_of,
    sweep_of,
    undilated_of,
    unpaired_of,
    warmings_of,
)
from .document_workload import LoadOf, load_document
from .schema import DocumentPart


class ArmRatio(DocumentPart):
    """One volume against another."""

    volume: str
    to: str
    metric: str
    ratio: float
    low: float | None
    high: float | None
    distinguishable: bool
    """Whether the 95 % interval excludes 1; false for one replicate, which has none and tells nothing apart."""
    equivalent_within: float | None
    """Relative difference that is ruled out at 95 %, either way (0.02 is 2 %); null for one replicate."""
    detectable_difference: float | None
    """Relative difference that replicates like these find in four experiments of five."""
    replicates_needed: int | None
    """Replicates that would find a difference of 3 % as often."""


class EffectAt(DocumentPart):
    """An effect at one level of another factor."""

    factor: str
    level: str
    ratio: float
    low: float | None
    high: float | None


class EffectOf(DocumentPart):
    """A level of a factor against its first level, over all other factors and all replicates."""

    factor: str
    level: str
    to: str
    metric: str
    ratio: float
    low: float | None
    high: float | None
    pairs: int
    """Pairs of runs that differ in this alone."""
    distinguishable: bool
    """Whether the 95 % interval excludes 1."""
    depends_on: list[EffectAt]
    """The effect at each level of a factor on which it was seen to depend; empty where no such evidence was found."""


class MetricOf(DocumentPart):
    """A figure of a run, and which way is better."""

    name: str
    title: str
    unit: str
    better: Better | None
    """Null where neither way is better by itself."""


class CompareDocument(DocumentPart):
    """A comparison of volumes, or of any other arms."""

    recommendation: RecommendationOf
    """The one arm to take, or why none is recommended."""
    experiment: str
    """Its id."""

    command: str
    """The command line that repeats the experiment."""
    seed: int
    metric: MetricOf
    """The figure by which arms are compared."""
    metrics: dict[str, MetricOf]
    """The further figures that any arm has, by the names of `figures`."""
    verdict: str
    factors: list[Factor]
    arms: list[ArmDocument]
    absent: list[str]
    """Arms that were planned and have no finished run."""
    ratios: list[ArmRatio]
    """Each arm after the first against the first."""
    pairs: list[ArmRatio]
    """Each arm against each one before it; empty of more than 48 arms."""
    effects: list[EffectOf]
    """What each factor did; empty for a single factor, whose effects are the ratios."""
    sweep: SweepOf | None
    """Its axes and laws; null where no factor has three numbers as levels."""
    warmings: list[WarmingOf]
    """Arms whose volumes were made from snapshots; empty without a warm one beside them."""
    undilated: list[UndilatedOf]
    """What arms at two or more dilations come to at dilation 1; empty without them."""
    hosts: list[SpreadHostOf]
    """Over which the runs were spread; empty where they were made on the machine that was asked."""
    unpaired: list[UnpairedOf]
    """Runs on those that are not compared, because their replicate is not whole."""
    loads: list[LoadOf]
    """In the order in which they were made; empty where none was watched."""
    noise_floor: float | None
    """Relative difference below which 19 of 20 pairs of runs of one arm lie; null where runs are too few."""
    report: str | None
    """Path of the HTML page; null when none was written."""


def document(comparison: Comparison, report: Path | None = None) -> CompareDocument:
    """The document of a comparison; ``report`` is the page that was written."""
    by_index = {arm.index: arm for arm in comparison.arms}
    ratios, pairs = (
        [arm_ratio for ratio in each if (arm_ratio := _ratio(ratio, by_index)) is not None]
        for each in (comparison.ratios, comparison.pairs)
    )
    return CompareDocument(
        recommendation=recommendation_of(comparison),
        experiment=comparison.experiment.experiment_id,
        command=command_line(comparison),
        seed=comparison.experiment.seed,
        metric=MetricOf.model_validate(comparison.metric),
        verdict=comparison.verdict,
        factors=list(comparison.factors),
        metrics={name: MetricOf.model_validate(line.metric) for name, line in comparison.figures.items()},
        arms=[arm_of(comparison, place) for place in range(len(comparison.arms))],
        absent=list(comparison.absent),
        ratios=ratios,
        pairs=pairs,
        effects=[
            effect_of
            for effect in comparison.effects
            if (effect_of := _effect(effect, comparison.factors, comparison.metric.name)) is not None
        ],
        sweep=sweep_of(comparison),
        warmings=warmings_of(comparison),
        undilated=undilated_of(comparison),
        hosts=hosts_of(comparison),
        unpaired=unpaired_of(comparison),
        loads=[load_document(load) for load in comparison.loads],
        noise_floor=None if comparison.noise_floor is None else comparison.noise_floor.difference,
        report=None if report is None else str(report),
    )


def command_line(comparison: Comparison) -> str:
    """The command that repeats the experiment, quoted for a shell."""
    return shlex.join(comparison.experiment.command)


def _ends(estimate: Estimate) -> dict[str, Any]:
    return {"ratio": estimate.mean, "low": estimate.low, "high": estimate.high}


def _effect(effect: Effect, factors: Sequence[Factor], metric: str) -> EffectOf | None:
    if effect.estimate is None:
        return None
    factor = factors[effect.factor]
    return EffectOf(
        factor=factor.name,
        level=factor.levels[effect.level],
        to=factor.levels[0],
        metric=metric,
        **_ends(effect.estimate),
        pairs=effect.estimate.n,
        distinguishable=effect.distinguishable,
        depends_on=[
            EffectAt(
                factor=factors[within.factor].name,
                level=factors[within.factor].levels[within.level],
                **_ends(within.estimate),
            )
            for within in effect.within
        ],
    )


def _ratio(ratio: Ratio, by_index: dict[int, ArmSummary]) -> ArmRatio | None:
    if ratio.estimate is None:
        return None
    return ArmRatio(
        volume=by_index[ratio.index].volume,
        to=by_index[ratio.to_index].volume,
        metric=by_index[ratio.index].metric.name,
        **_ends(ratio.estimate),
        distinguishable=ratio.distinguishable,
        equivalent_within=ratio.equivalent_within,
        detectable_difference=ratio.detectable,
        replicates_needed=ratio.replicates_needed,
    )
