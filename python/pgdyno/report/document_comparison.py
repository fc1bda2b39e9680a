"""Parts of the JSON document that compare arms: recommendation, hosts, sweep, dilation, warming."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.recommendation import Action
from pgdyno.analysis.sweep import Axis, Sweep, SweepGroup

from ..analysis.binding.rules import Limit
from ..analysis.choice import StepResult
from ..analysis.statistics import Estimate
from ..analysis.sweep import Scaling
from .schema import DocumentPart, Share


class FigureEstimate(DocumentPart):
    """A figure with its 95 % interval."""

    mean: float
    low: float | None
    """Null for one replicate."""
    high: float | None


class UndilatedOf(DocumentPart):
    """One combination of the other factors, extrapolated to dilation 1 from two or more above it."""

    label: str
    """The levels of the other factors; `all` where there is no other."""
    dilations: list[int]
    at_one: FigureEstimate | None
    """The headline at dilation 1; null where it is refused."""
    because: str
    """Why it is refused: a clause; empty where it is not."""
    noise: float | None
    """How many times the noise of a run the noise of that figure is."""
    measured: float | None
    """The mean headline of the arm at dilation 1; null without one."""
    ratio: FigureEstimate | None
    """Against the first combination; null for the first itself, and where either is refused."""


def undilated_of(comparison: Comparison) -> list[UndilatedOf]:
    """Every combination that has two dilations above 1."""
    undilateds = comparison.undilated
    return [
        UndilatedOf(
            label=undilated.label,
            dilations=[arm.dilation for arm in undilated.arms],
            at_one=_figure_estimate(undilated.estimate),
            because=undilated.because,
            noise=undilated.noise,
            measured=None if undilated.measured is None else undilated.measured.headline.mean,
            ratio=None if undilated is undilateds[0] else _figure_estimate(undilated.ratio_to(undilateds[0])),
        )
        for undilated in undilateds
    ]


def _figure_estimate(estimate: Estimate | None) -> FigureEstimate | None:
    return None if estimate is None else FigureEstimate.model_validate(estimate)


class SpreadHostOf(DocumentPart):
    """One host."""

    name: str
    cores: int
    memory_bytes: int
    cpu: str
    """Model; empty where the kernel does not say it."""
    kernel: str
    replicates: int
    """That it made whole."""
    ratio: FigureEstimate | None
    """Its headline over that of the first host, over all arms; null for the first itself."""


class UnpairedOf(DocumentPart):
    """Runs that are not compared, because their replicate is not whole."""

    host: str
    replicate: int
    runs: int


def hosts_of(comparison: Comparison) -> list[SpreadHostOf]:
    """Every host; none where the runs were made on the machine that was asked."""
    return [
        SpreadHostOf(
            name=host.name,
            cores=host.record.cores,
            memory_bytes=host.record.memory_bytes,
            cpu=host.record.cpu or "",
            kernel=host.record.kernel,
            replicates=host.blocks,
            ratio=None if host.ratio is None else FigureEstimate.model_validate(host.ratio),
        )
        for host in comparison.hosts
    ]


def unpaired_of(comparison: Comparison) -> list[UnpairedOf]:
    """Those that were left out, by their replicate."""
    return [
        UnpairedOf(host=unpaired.host, replicate=unpaired.block, runs=unpaired.runs) for unpaired in comparison.unpaired
    ]


class SweepAxis(DocumentPart):
    """A factor whose levels are numbers, in the order of their values."""

    factor: str
    title: str
    levels: list[str]
    """As written."""
    values: list[float]
    """The same as numbers: sizes in bytes, durations in seconds, else as written."""


class ScalingLaw(DocumentPart):
    """The universal scalability law, fitted to a variant's runs.

    TPS of n clients = rate n / (1 + contention (n - 1) + coherence n (n - 1)).
    """

    rate_tps: float
    """Transactions per second of one client by itself."""
    contention: Share
    """Share of the work for which clients queue."""
    coherence: Annotated[float, Field(ge=0)]
    """What each pair of clients costs."""
    peak_clients: float | None
    """Clients beyond which more of them do less; null where the curve never falls."""
    clients_min: float
    """The numbers of clients that it was fitted to."""
    clients_max: float
    deviation: float
    """How far runs lie from the curve: root mean square of the difference of logarithms."""
    follows: bool
    """Whether runs lie close enough to speak of its constants."""


class SweepCell(DocumentPart):
    """An arm's place on the axes."""

    at: list[int]
    """Place on each axis, from 0."""
    arm: int
    """Its place in `arms`."""


class SweepVariant(DocumentPart):
    """Arms that differ in the axes alone."""

    label: str
    """Their other levels; empty where there is no other factor."""
    cells: list[SweepCell]
    law: ScalingLaw | None
    """Null where the first axis is not the clients, or has fewer than four numbers of them."""


class SweepOf(DocumentPart):
    """An experiment along factors that are numbers."""

    axes: list[SweepAxis]
    """One or two; the clients come first."""
    variants: list[SweepVariant]


def sweep_of(comparison: Comparison) -> SweepOf | None:
    """The part of a comparison; None where it does not sweep anything."""
    sweep = comparison.sweep
    if sweep is None:
        return None
    place = {arm.index: number for number, arm in enumerate(comparison.arms)}
    return SweepOf(
        axes=[_axis(axis) for axis in sweep.axes],
        variants=[
            _variant(sweep, variant, law, place) for variant, law in zip(sweep.variants, sweep.laws, strict=True)
        ],
    )


def _axis(axis: Axis) -> SweepAxis:
    return SweepAxis(factor=axis.name, title=axis.title, levels=list(axis.texts), values=list(axis.values))


def _variant(sweep: Sweep, variant: SweepGroup, law: Scaling | None, place: Mapping[int, int]) -> SweepVariant:
    axes = len(sweep.axes)
    return SweepVariant(
        label=variant.label,
        cells=[SweepCell(at=list(at[:axes]), arm=place[arm.index]) for at, arm in sorted(variant.arms.items())],
        law=None if law is None else _law(law),
    )


def _law(law: Scaling) -> ScalingLaw:
    low, high = law.clients
    kept = ScalingLaw.model_fields.keys() - {"clients_min", "clients_max"}
    return ScalingLaw(**{name: getattr(law, name) for name in kept}, clients_min=low, clients_max=high)


class MetOf(DocumentPart):
    """One condition of the goal, for the recommended arm; where none is recommended for the one that comes nearest."""

    condition: str
    value: float | None
    """In the unit of that figure: milliseconds of latencies. Null where it was not measured."""
    low: float | None
    high: float | None
    met: bool
    sure: bool
    """Whether the whole 95 % interval meets it; false for one replicate."""


class StepOf(DocumentPart):
    """An arm that is faster than those that cost less, or what to do beyond the measured arms."""

    action: str
    """The arm, or what to do."""
    measured: bool
    volume: str | None
    """The arm as it was written; null of what was not measured."""
    spec: str | None
    """Of what was not measured: the volume, or the type of the instance, to buy instead."""
    usd_per_month: float | None
    value: float | None
    """The figure by which arms are compared; null of what was not measured."""
    ratio: float | None
    """Times as fast as the step before; of what was not measured at most. Null of the first step."""
    limit: Limit | None
    """What holds it back; of what was not measured the limit that is met next."""


class RecommendationOf(DocumentPart):
    """A purchase or a change of use."""

    sentence: str
    """All of it in words; the first sentence is the answer."""
    action: Action
    """`buy` where arms differ in what is bought, `use` where they do not, `none` without a recommendation."""
    volume: str | None
    """The recommended arm as it was written; null without a recommendation."""
    usd_per_month: float | None
    alike: list[str]
    """Arms that cannot be told apart from it."""
    goal: list[MetOf]
    """Empty without a goal."""
    steps: list[StepOf]
    """One ladder for the whole set, from the cheapest arm upwards."""


def recommendation_of(comparison: Comparison) -> RecommendationOf:
    """The part of a comparison."""
    recommendation = comparison.recommendation
    written = {arm.index: arm.volume for arm in comparison.arms}
    return RecommendationOf(
        sentence=recommendation.sentence,
        action=recommendation.action,
        volume=None if recommendation.arm is None else written[recommendation.arm],
        usd_per_month=recommendation.usd_per_month,
        alike=[written[index] for index in recommendation.alike],
        goal=[MetOf.model_validate(met) for met in recommendation.goal],
        steps=[_step(step, written) for step in recommendation.steps],
    )


def _step(step: StepResult, written: dict[int, str]) -> StepOf:
    return StepOf(
        action=step.label,
        measured=step.arm is not None,
        volume=None if step.arm is None else written[step.arm],
        spec=step.spec,
        usd_per_month=step.usd_per_month,
        value=step.value,
        ratio=step.ratio,
        limit=step.limit,
    )


class WarmingOf(DocumentPart):
    """An arm whose volumes were made from snapshots, beside its warm one."""

    cold: str
    """The label of the arm."""
    warm: str
    """The label of the warm one."""
    seconds: list[float | None]
    """For each block, from when measuring begins until TPS is within 10 % of warm for good; null where it did not come to it."""
    measured_s: float
    """How long was measured."""


def warmings_of(comparison: Comparison) -> list[WarmingOf]:
    """Every cold arm that has a warm one."""
    return [
        WarmingOf(
            cold=warming.cold.label,
            warm=warming.warm.label,
            seconds=list(warming.seconds),
            measured_s=warming.measured_s,
        )
        for warming in comparison.warmings
    ]
