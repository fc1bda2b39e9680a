"""Events of runs in the JSON that ``compare``, ``run`` and ``report`` print: a part of :mod:`pgdyno.report.document`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.events import events_by_place
from pgdyno.report.part import Part

if TYPE_CHECKING:
    from pgdyno.analysis.arm import ArmSummary


class EventOf(Part):
    """Something that happened during each run of an arm."""

    planned_s: float
    """Seconds since measuring began."""
    kind: str
    """`modify`, `fail`, `heal`, `snapshot`, `kill` or `cut`."""
    target: str
    """Role of the volume, `all` volumes, or `server`."""
    words: str
    begin_s: list[float]
    """When it began in each replicate."""
    seconds: list[float]
    """How long it took in each replicate; of a server that was ended, until it took connections again."""
    results: list[str]


def events_document(arm: ArmSummary) -> list[EventOf]:
    """Empty of runs without events."""
    return [
        EventOf(
            planned_s=same[0].planned_s,
            kind=same[0].kind,
            target=same[0].target,
            words=same[0].words,
            begin_s=[event.begin_s for event in same],
            seconds=[event.seconds for event in same],
            results=[event.result for event in same],
        )
        for same in events_by_place([one.figures.run for one in arm.replicates])
    ]
