"""What limits an arm, as a part of the JSON document."""

from __future__ import annotations

from pgdyno.analysis.binding.arm import ArmBinding
from pgdyno.analysis.binding.verdict import RunBinding
from pgdyno.report.part import DocumentPart, Share

from ..analysis.binding.rules import TITLES, Confidence, Limit


class BoundFor(DocumentPart):
    """Neighbouring seconds with the same limit."""

    begin_s: int
    """Since measuring began."""
    end_s: int
    """One after the last second."""
    limit: Limit | None
    """Null where nothing that was seen explains them."""


class RunBindingDocument(DocumentPart):
    """What bound in one run."""

    replicate: int
    limit: Limit | None
    confidence: Confidence
    seconds: list[BoundFor]


class BindingRemedyDocument(DocumentPart):
    """The cheapest thing that helps."""

    action: str
    spec: str | None
    """The volume, or the type of the instance, to buy instead; null where nothing is bought."""
    usd_per_month: float | None
    usd_more_per_month: float | None
    """Than what there is; negative where it costs less, 0 where nothing is bought."""
    tps_ratio_max: float | None
    """Times the transactions at most, by every other limit that the run came near to."""
    then: Limit | None
    """The limit that is met there."""


class BindingDocument(DocumentPart):
    """The limit that binds, by what a user of a real host sees too."""

    limit: Limit | None
    """Null where none stands out."""
    title: str | None
    """Its name for people."""
    volume: str | None
    """Role of the volume that it is a limit of."""
    confidence: Confidence
    """`high`: independent sources agree in most seconds. `low`: one speaks for it. `unknown`: nothing is said."""
    shares: dict[Limit, Share]
    """Limit -> share of all measured seconds in which it bound; what is left to 1 is not explained."""
    evidence: list[str]
    """The figures that speak for it, from the replicate with the median TPS; where no limit stands out, what was seen instead."""
    not_seen: list[str]
    """What was not observed, so that nothing could follow from it; of an invalid arm, that nothing is concluded."""
    remedy: BindingRemedyDocument | None
    """What would help this arm by itself; for the whole set `recommendation.steps` has one ladder."""
    runs: list[RunBindingDocument]


def binding_of(binding: ArmBinding) -> BindingDocument:
    """The part of an arm."""
    verdict = binding.verdict
    return BindingDocument(
        limit=verdict.limit,
        title=None if verdict.limit is None else TITLES[verdict.limit],
        volume=verdict.role,
        confidence=verdict.confidence,
        shares=dict(verdict.shares),
        evidence=list(binding.evidence),
        not_seen=list(binding.missing),
        remedy=None if binding.remedy is None else BindingRemedyDocument.model_validate(binding.remedy),
        runs=[_run(replicate, run) for replicate, run in binding.runs],
    )


def _run(replicate: int, binding: RunBinding) -> RunBindingDocument:
    return RunBindingDocument(
        replicate=replicate,
        limit=binding.verdict.limit,
        confidence=binding.verdict.confidence,
        seconds=[BoundFor(begin_s=begin, end_s=end, limit=limit) for begin, end, limit in binding.spans],
    )
