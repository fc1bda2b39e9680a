"""The verdict of an arm: its replicates together, the evidence in words, and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.analysis.binding.circumstances import circumstances_of
from pgdyno.analysis.binding.remedy import Remedy, remedy_of
from pgdyno.analysis.binding.verdict import RunBinding, Verdict, bind_run, total
from pgdyno.analysis.binding.words import evidence_words, unexplained_words

if TYPE_CHECKING:
    from pgdyno.analysis.arm import ArmSummary
    from pgdyno.analysis.run_figures import RunFigures

OF_INVALID = "its numbers are invalid, so no limit and no remedy are named"


@dataclass(frozen=True)
class ArmBinding:
    """What limits one arm."""

    runs: tuple[tuple[int, RunBinding], ...]
    """(replicate, its verdict), in their order."""
    verdict: Verdict
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
    runs = tuple((one.figures.record.block, bind_run(one.figures)) for one in arm.replicates)
    median = arm.representative
    if not arm.valid:
        runs = tuple((block, run.unjudged()) for block, run in runs)
    verdict = total([run.seconds for _, run in runs])
    place = next(place for place, one in enumerate(arm.replicates) if one is median)
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


def _not_timed(verdict: Verdict, figures: RunFigures) -> list[str]:
    """What the server could have told of waiting for a volume, where that is the answer or there is none."""
    if figures.server.io_timing is not False or verdict.limit not in (None, "volume_latency", "commit_latency"):
        return []
    existed = figures.record.world.existed
    way = "ALTER SYSTEM SET track_io_timing = on" if existed else 'postgres.parameters.track_io_timing = "on"'
    return [f"how long reads took, because track_io_timing is off: `{way}`"]
