"""The verdict of an arm: its replicates together, the evidence in words, and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.binding.remedy import MARGIN, OF_VOLUMES, RATIO_MAX, Remedy, remedy_of
from pgdyno.analysis.binding.verdict import BindingVerdict, RunBinding, bind_run, total
from pgdyno.analysis.binding.words import evidence_words, unexplained_words

from ..figures import DATA, volume_spec
from ..run import RunFigures
from .evidence import circumstances_of

OF_INVALID = "its numbers are invalid, so no limit and no remedy are named"


@dataclass(frozen=True)
class ArmBinding:
    """What limits one arm."""

    runs: tuple[tuple[int, RunBinding], ...]
    """(replicate, its verdict), in their order."""
    verdict: BindingVerdict
    """The verdict over all replicates together."""
    representative: RunBinding
    """The replicate with the median TPS: evidence and remedy are its."""
    evidence: tuple[str, ...]
    """The figures that speak for it, in words; where no limit stands out, what was seen instead."""
    missing: tuple[str, ...]
    """What was not seen."""
    remedy: Remedy | None
    """None where no limit stands out."""


def bind_arm(arm: ArmSummary) -> ArmBinding:
    """Judge every replicate, and all of them together. Nothing is concluded from the numbers of an invalid arm."""
    runs = tuple((replicate.figures.record.block, bind_run(replicate.figures)) for replicate in arm.replicates)
    median = arm.representative
    if not arm.valid:
        runs = tuple((block, run.unjudged()) for block, run in runs)
    verdict = total([run.seconds for _, run in runs])
    place = next(place for place, replicate in enumerate(arm.replicates) if replicate is median)
    representative, figures = runs[place][1], median.figures
    around = circumstances_of(figures)
    return ArmBinding(
        runs=runs,
        verdict=verdict,
        representative=representative,
        evidence=tuple(
            unexplained_words(representative)
            if verdict.limit is None and arm.valid
            else evidence_words(representative, verdict, around)
        ),
        missing=(*representative.evidence.missing, *_not_timed(verdict, figures)) if arm.valid else (OF_INVALID,),
        remedy=remedy_of(representative, verdict.remediable, around),
    )


def bind_arms(arms: Sequence[ArmSummary]) -> dict[int, ArmBinding]:
    """Index of an arm -> what limits it. Where another arm was measured to do what a remedy only promises, for no more money, the remedy
    is that arm's volume.
    """
    bindings = {arm.index: bind_arm(arm) for arm in arms}
    return {arm.index: replace(bindings[arm.index], remedy=_measured_remedy(arm, arms, bindings)) for arm in arms}


def _measured_remedy(arm: ArmSummary, arms: Sequence[ArmSummary], bindings: Mapping[int, ArmBinding]) -> Remedy | None:
    """The cheapest volume of another arm that helped, if it costs no more than the remedy; else the remedy."""
    remedy, verdict = bindings[arm.index].remedy, bindings[arm.index].verdict
    if remedy is None or verdict.limit not in OF_VOLUMES:
        return remedy
    role = verdict.role or DATA
    now = _price(arm, role)
    options = []
    for other in arms:
        usd, ratio = _price(other, role), _times(arm, other)
        if usd is None or ratio < MARGIN or not other.valid or not _differs_in_volume_alone(arm, other, role):
            continue
        if remedy.usd_per_month is None or usd <= remedy.usd_per_month:
            options.append((usd, -ratio, other))
    if not options:
        return remedy
    usd, ratio, other = min(options, key=lambda option: option[:2])
    spec = str(volume_spec(other.representative.figures.run, role)["spec"])
    what = "" if role == DATA else f" for its {role} volume"
    return Remedy(
        action=f"buy {spec}{what}, which was measured here too",
        spec=spec,
        usd_per_month=usd,
        usd_more_per_month=None if now is None else round(usd - now, 2),
        tps_ratio_max=min(-ratio, RATIO_MAX),
        then=bindings[other.index].verdict.limit,
    )


def _price(arm: ArmSummary, role: str) -> float | None:
    usd = volume_spec(arm.representative.figures.run, role).get("usd_per_month")
    return None if usd is None else float(usd)


def _times(arm: ArmSummary, other: ArmSummary) -> float:
    """How many times as much, or as fast, the other arm was measured to be."""
    own, its = arm.headline.mean, other.headline.mean
    if own <= 0 or its <= 0 or other.metric != arm.metric:
        return 0.0
    return its / own if arm.metric.better == "more" else own / its


def _differs_in_volume_alone(arm: ArmSummary, other: ArmSummary, role: str) -> bool:
    result, two = (each.representative.figures.run for each in (arm, other))
    levels = sum(left != right for left, right in zip(arm.levels, other.levels, strict=True))
    roles = {*result.record.world.volumes, *two.record.world.volumes, role}
    changed = [name for name in roles if volume_spec(result, name).get("spec") != volume_spec(two, name).get("spec")]
    return levels <= 1 and changed == [role]


def _not_timed(verdict: BindingVerdict, figures: RunFigures) -> list[str]:
    """What the server could have told of waiting for a volume, where that is the answer or there is none."""
    if figures.server.io_timing is not False or verdict.limit not in (None, "volume_latency", "commit_latency"):
        return []
    existed = figures.record.world.existed
    way = "ALTER SYSTEM SET track_io_timing = on" if existed else 'postgres.parameters.track_io_timing = "on"'
    return [f"how long reads took, because track_io_timing is off: `{way}`"]
