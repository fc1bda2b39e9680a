"""The JSON of ``pgdyno diagnose --json``. ``schema/diagnose.schema.json`` is made from it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pgdyno.advise.diagnose.calendar import Calendar
from pgdyno.report.schema import schema_text, write_or_check

from ...analysis.binding.consumers import What
from ...analysis.binding.rules import Confidence, Limit
from ...report.schema import DocumentPart, Share
from .diagnosis import Diagnosis

if TYPE_CHECKING:
    from pydantic import BaseModel


class TargetDocument(DocumentPart):
    """The server."""

    version: str
    host: str | None
    port: int | None
    role: str | None
    """As which it was watched."""
    standby: bool | None
    pooler: bool | None
    """Whether a connection pooler was between."""


class WatchPeriod(DocumentPart):
    """When, and how long."""

    begin_unix_ns: int
    seconds: float
    unanswered_s: float | None
    """For how long the server did not answer; null where none was watched."""
    sources: list[str]
    """Files that were read beside the server, or instead of one."""


class VerdictDocument(DocumentPart):
    """Which limit binds."""

    limit: Limit | None
    """Null where none stands out. `client` of a server that was watched: nothing binds."""
    title: str
    role: str | None
    """The volume that it is a limit of."""
    confidence: Confidence
    share: Share
    """Share of the seconds in which it bound."""
    shares: dict[Limit, Share]


class ConsumerDocument(DocumentPart):
    """One use of a volume."""

    role: str
    what: What
    share: Share
    iops: float
    mib_per_s: float


class SettingDocument(DocumentPart):
    """A setting that is proposed."""

    name: str
    now: str
    proposed: str


class RemedyDocument(DocumentPart):
    """Something to do."""

    kind: Literal["setting", "purchase", "other"]
    action: str
    spec: str | None
    """The volume, or the type of the instance, to buy instead; null where nothing is bought."""
    usd_per_month: float | None
    usd_more_per_month: float | None
    ratio_max: float | None
    """Times the work at most; null where it cannot be bounded."""
    then: Limit | None
    """The limit that is met there."""
    settings: list[SettingDocument]


class StatementDocument(DocumentPart):
    """One statement, in all databases, during the watch."""

    queryid: int
    calls: int
    ms_mean: float
    read_bytes: int
    """Blocks that were not in shared_buffers."""
    wal_bytes: int
    temp_bytes: int
    query: str | None
    """The first 200 characters; null without `--statements`."""


class FindingDocument(DocumentPart):
    """A published rule, applied to what was seen."""

    rule: str
    """As its document names it."""
    source: str
    figure: str
    agrees: bool
    """Whether it leads to the verdict's limit, or like it to none."""
    why: str


class BlockerDocument(DocumentPart):
    """A session that held a lock for long while others waited, as it was seen last."""

    pid: int
    """0: a transaction that was prepared and has no session."""
    application: str | None
    user: str | None
    database: str | None
    client: str | None
    state: str | None
    """`idle in transaction`, `active`, ...; null where it may not be seen."""
    transaction_s: float | None
    """Age of its transaction."""
    lock: str
    waiting: int
    """Sessions that waited for locks."""
    longest_wait_s: float
    statement: str
    """What ends it, if its work may be lost."""


class WatchCostDocument(DocumentPart):
    """What the watch itself took."""

    server_cpu_share: float | None
    """CPU time of its sessions over the time, of one core; null where it was not seen."""
    samples: int
    lost: int
    interval_ms: float | None


class DiagnoseDocument(DocumentPart):
    """The answer of `pgdyno diagnose`."""

    schema_version: Literal[1] = 1
    command: Literal["diagnose"] = "diagnose"
    directory: str | None
    """Where what was seen is kept; null without `--keep`."""
    target: TargetDocument | None
    """Null where files alone were read."""
    watched: WatchPeriod
    verdict: VerdictDocument
    evidence: list[str]
    missing: list[str]
    notes: list[str]
    """What is worth knowing beside the verdict: open transactions, sessions that hold locks, `--bought` that is wrong."""
    blockers: list[BlockerDocument]
    consumers: list[ConsumerDocument]
    bought: dict[str, str]
    """Volume's role -> what was said to be bought."""
    remedies: list[RemedyDocument]
    statements: list[StatementDocument]
    """Those that read, log or spill most; empty without pg_stat_statements."""
    findings: list[FindingDocument]
    cost: WatchCostDocument | None


def document(diagnosis: Diagnosis, directory: str | None) -> DiagnoseDocument:
    """The document of a diagnosis."""
    from .words import limit_title

    record, verdict = diagnosis.run.record, diagnosis.binding.verdict
    server, workload, phase = record.world.server, record.workload, record.measure
    return DiagnoseDocument(
        directory=directory,
        target=None
        if server is None and diagnosis.sources
        else TargetDocument(
            version=record.postgres.version,
            host=None if server is None else server.host,
            port=None if server is None else server.port,
            role=workload.get("role"),
            standby=workload.get("standby"),
            pooler=workload.get("pooler"),
        ),
        watched=WatchPeriod(
            begin_unix_ns=record.anchor.to_unix_ns(phase.begin_ns),
            seconds=round(phase.seconds, 3),
            unanswered_s=None if diagnosis.silence is None else round(diagnosis.silence.seconds, 3),
            sources=[source.path for source in diagnosis.sources],
        ),
        verdict=VerdictDocument(
            limit=verdict.limit,
            title=limit_title(diagnosis),
            role=verdict.role,
            confidence=verdict.confidence,
            share=verdict.share,
            shares=dict(verdict.shares),
        ),
        evidence=list(diagnosis.evidence),
        missing=list(diagnosis.missing),
        notes=list(diagnosis.notes),
        blockers=[BlockerDocument.model_validate(blocker) for blocker in diagnosis.blockers],
        consumers=[
            ConsumerDocument(
                role=diagnosis.consumers_role,
                what=consumer.what,
                share=min(1.0, consumer.share),
                iops=consumer.iops,
                mib_per_s=consumer.mib_per_s,
            )
            for consumer in diagnosis.consumers
        ],
        bought={role: volume.spec["spec"] for role, volume in record.world.volumes.items() if volume.spec},
        remedies=remedies(diagnosis),
        statements=[StatementDocument.model_validate(statement) for statement in diagnosis.statements],
        findings=[FindingDocument.model_validate(finding) for finding in diagnosis.findings],
        cost=None if diagnosis.cost is None else WatchCostDocument.model_validate(diagnosis.cost),
    )


def remedies(diagnosis: Diagnosis) -> list[RemedyDocument]:
    """What costs nothing first, then what the limit asks for."""
    made = [
        RemedyDocument(
            kind=free.kind,
            action=free.action,
            spec=None,
            usd_per_month=None,
            usd_more_per_month=0.0,
            ratio_max=free.ratio_max,
            then=None,
            settings=[SettingDocument.model_validate(setting) for setting in free.settings],
        )
        for free in diagnosis.free
    ]
    if (document := diagnosis.remedy) is not None:
        made.append(
            RemedyDocument(
                kind="purchase" if document.spec is not None else "other",
                action=document.action,
                spec=document.spec,
                usd_per_month=document.usd_per_month,
                usd_more_per_month=document.usd_more_per_month,
                ratio_max=document.tps_ratio_max,
                then=document.then,
                settings=[],
            )
        )
    return made


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


FOLDER = Path(__file__).resolve().parents[4] / "schema"
"""Where the schemas lie in a clone; an installed package has none."""
DOCUMENTS: dict[str, tuple[type[BaseModel], str]] = {
    "diagnose.schema.json": (DiagnoseDocument, "pgdyno diagnose --json"),
    "diagnose-calendar.schema.json": (CalendarDocument, "pgdyno diagnose DIR --json"),
}
"""File -> its model and its title."""


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit code."""
    codes = [
        write_or_check(FOLDER / name, schema_text(*document), "pgdyno.advise.diagnose.document", arguments)
        for name, document in DOCUMENTS.items()
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
