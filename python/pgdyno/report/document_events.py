"""Events of runs in the JSON that ``compare``, ``run`` and ``report`` print: a part of :mod:`pgdyno.report.document`."""

from __future__ import annotations

from pgdyno.analysis.arm import ArmSummary
from pgdyno.report.part import DocumentPart

from ..analysis.series import around


class EventOf(DocumentPart):
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
    before_per_s: list[float | None]
    """Transactions per second in each replicate since the event before it, or since measuring began; null where that is less than a second."""
    after_per_s: list[float | None]
    """Until the next event, or until measuring ended."""
    usd_per_month: float | None
    """Price of the volume after its modification; null of other events, and in older results."""


def events_document(arm: ArmSummary) -> list[EventOf]:
    """Empty of runs without events."""
    return [
        EventOf(
            planned_s=same[0].event.planned_s,
            kind=same[0].event.kind,
            target=same[0].event.target,
            words=same[0].event.words,
            begin_s=[item.event.begin_s for item in same],
            seconds=[item.event.seconds for item in same],
            results=[item.event.result for item in same],
            before_per_s=[item.before_per_s for item in same],
            after_per_s=[item.after_per_s for item in same],
            usd_per_month=same[0].event.usd_per_month,
        )
        for same in zip(*(around(replicate.figures.run) for replicate in arm.replicates), strict=False)
    ]
