"""The JSON of ``pgdyno diagnose DIR --json``. ``schema/diagnose-calendar.schema.json`` is made from it."""

from __future__ import annotations

from typing import Literal

from pgdyno.analysis.binding.limits import Confidence, Limit
from pgdyno.analysis.binding.uses import What

from ...report.schema import DocumentPart, Share
from .calendar import Calendar
from .document import RemedyDocument, remedies


class HourUse(DocumentPart):
    """The largest use of the volume that binds."""

    what: What
    share: Share


class HourDocument(DocumentPart):
    """The watches that began in one hour, taken together."""

    begin: str
    """ISO 8601, with the offset of the time zone in which the hours are."""
    watches: int
    missed: list[str]
    """Why watches of this hour came to nothing, or that the server did not answer in them; each with its time."""
    limit: Limit | None
    """Null where none stands out, or there was no watch."""
    role: str | None
    confidence: Confidence
    share: Share
    """The part of the seconds watched in which it bound."""
    shares: dict[Limit, Share]
    consumer: HourUse | None
    directories: list[str]
    """Where the watches are."""


class CalendarDocument(DocumentPart):
    """The answer of `pgdyno diagnose DIR`."""

    schema_version: Literal[1] = 1
    command: Literal["diagnose"] = "diagnose"
    directory: str
    server: str
    """Its connection string, without a password."""
    hours: list[HourDocument]
    """Those with a watch, or without one that should have been; in their order."""
    counted: dict[Limit, int]
    """Limit -> hours in which it bound, the most frequent first."""
    remedies: list[RemedyDocument]
    """For the limit that bound most often; of the watch in which it bound most of the time."""
    unreadable: dict[str, str]
    """Directory -> why it could not be read."""


def calendar_document(calendar: Calendar) -> CalendarDocument:
    """The document of a calendar."""
    return CalendarDocument(
        directory=str(calendar.path),
        server=calendar.server,
        hours=[
            HourDocument(
                begin=hour.begin.isoformat(),
                watches=len(hour.watches),
                missed=list(hour.missed),
                limit=hour.verdict.limit,
                role=hour.verdict.role,
                confidence=hour.verdict.confidence,
                share=hour.verdict.share,
                shares=dict(hour.verdict.shares),
                consumer=None
                if hour.consumer is None
                else HourUse(what=hour.consumer[0], share=min(1.0, hour.consumer[1])),
                directories=[str(watch.found.run.path) for watch in hour.watches],
            )
            for hour in calendar.hours
        ],
        counted=calendar.counted,
        remedies=remedies(calendar.worst),
        unreadable={str(path): why for path, why in calendar.unreadable.items()},
    )
