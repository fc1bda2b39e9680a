"""The recommendation as the first part of the JSON document."""

from __future__ import annotations

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.recommendation import Action
from pgdyno.report.part import DocumentPart

from ..analysis.binding.rules import Limit
from ..analysis.choice import StepResult


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
    """What to buy or to use."""

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
