"""Parts of the JSON document for one arm: figures, volumes, and the limit that binds."""

from __future__ import annotations

from typing import Literal

from pgdyno.analysis.arm import ArmSummary, Replicate, VolumeSummary
from pgdyno.analysis.binding.arm import ArmBinding
from pgdyno.analysis.binding.verdict import RunBinding
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.cost import ArmCost
from pgdyno.analysis.credit import Regime
from pgdyno.analysis.distribution import PERCENTILES, ValueCounts

from ..analysis.binding.rules import TITLES, Confidence, Limit
from ..analysis.figures import DATA
from ..analysis.run import TPS
from ..analysis.statistics import Estimate, SeriesMean
from .document_workload import (
    BulkLoadOf,
    EventOf,
    PowerCutsOf,
    QueriesOf,
    ReplayOf,
    TpccOf,
    bulk_load_of,
    events_document,
    power_cuts_document,
    queries_document,
    replay_document,
    tpcc_document,
)
from .schema import DocumentPart, Share


class BoundFor(DocumentPart):
    """Neighbouring seconds with the same limit."""

    begin_s: int
    """Since measuring began."""
    end_s: int
    """One after the last second."""
    limit: Limit | None
    """Null where nothing that was seen explains them."""


class RunBindingDocument(DocumentPart):
    """The limit that bound in one run."""

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


class LatencyMs(DocumentPart):
    """Percentiles of the response time, from the merged histograms of all replicates, milliseconds."""

    p50: float | None
    p95: float | None
    p99: float | None


class FigureDocument(DocumentPart):
    """A figure of the arm, and of its single runs."""

    value: float
    """The figure of all replicates: a percentile of their merged histograms, else the mean."""
    of_runs: Estimate


class LatencyOfRuns(DocumentPart):
    """Percentiles of the response time of single runs, milliseconds; null without transactions."""

    p50: Estimate | None
    p95: Estimate | None
    p99: Estimate | None


class SteadyState(DocumentPart):
    """Steady state of one run, by its seconds; where its credits ran out, by those of its longest regime."""

    replicate: int
    state: Literal["steady", "not steady", "too short"]
    begin_s: int
    """When it begins, seconds since measuring began."""
    end_s: int
    warm_up_s: int
    """Seconds of warm-up in the measure phase."""
    cycles: int
    """Whole checkpoint cycles; 0 where no checkpoint began."""
    tps: SeriesMean | None
    why: str
    regimes: list[Regime]
    """The run divided where credits went or came back; a single one where nothing changed."""


class StatementMs(LatencyMs):
    """Percentiles of the time of one statement, milliseconds."""

    number: int
    """In the order of the scripts."""
    statement: str


class Driver(DocumentPart):
    """The driver of the workload and its own needs, from the first replicate that records them."""

    engine: Literal["native", "pgbench", "hammerdb", "sysbench", "loader", "streams", "replay"]
    connect_ms: float | None
    """Until all clients were connected."""
    cpu_us_per_transaction: float | None
    wake_ms_p99: float | None
    """How late the driver itself was where it waited for nothing but the time."""
    retries: int | None
    errors: dict[str, int]
    """Failed transactions by class."""


class Disk(DocumentPart):
    """Work of the data's volume during the measure phase, means of the replicates."""

    iops: float | None
    mib_per_s: float | None
    queue_length: float | None
    read_ms_p50: float | None
    write_ms_p50: float | None


_OF_VOLUME = (*Disk.model_fields, "read_ms_mean", "write_ms_mean", "read_ms_p99", "write_ms_p99")


class Member(DocumentPart):
    """One member of an array, means of the replicates. Its requests are the pieces that it was given of the array's."""

    iops: float | None
    read_ms_mean: float | None
    write_ms_mean: float | None
    time_above_limit: dict[str, Share]


class VolumeDocument(Disk):
    """One of an arm's volumes."""

    spec: str | None
    """The specification in full; null for a device that was there."""
    read_ms_mean: float | None
    write_ms_mean: float | None
    read_ms_p99: float | None
    write_ms_p99: float | None
    time_above_limit: dict[str, Share]
    usd_per_month: float | None
    members: list[Member]
    """The members of an array, in their order; empty for a single volume."""


class InstanceDocument(DocumentPart):
    """The limit of the instance to all its volumes together, means of the replicates."""

    type: str
    iops: float | None
    mib_per_s: float | None
    time_above_limit: dict[str, Share]
    """Limit -> share of the time in which requests waited for it."""
    reserve: dict[str, Share]
    """Limit whose maximum is above its baseline -> what a run left of the reserve."""


class WaitEventDocument(DocumentPart):
    """A wait in which sessions were seen, or the CPU."""

    type: str
    event: str
    sessions: float
    """Mean number of the clients' sessions in this state."""


class UnobservedDocument(DocumentPart):
    """Something that could not be observed."""

    what: str
    why: str


class ArmDocument(DocumentPart):
    """One volume, or one combination of the factors' levels."""

    volume: str
    """The arm as it was written: for ``compare`` the volume, else the levels of the factors, joined."""
    label: str
    """A short name."""
    factors: dict[str, str]
    """Factor -> this arm's level."""
    metric: str
    """Name of the figure by which it is compared: `tps`, `nopm` of workload kind `tpcc`, `geomean_s` of `tpch`, `response_ms` of `replay`, or `seconds` of `load`."""
    headline: Estimate
    """That figure."""
    figures: dict[str, FigureDocument]
    """Every metric of `metrics` that it has; of a volume other than the data's with its role before it."""
    tps: Estimate | None
    """Null of workloads whose headline is another."""
    qps: Estimate | None
    """Statements per second as sysbench counts them, BEGIN and COMMIT among them; null of other workloads."""
    latency_ms: LatencyMs
    latency_ms_of_runs: LatencyOfRuns
    """The same percentiles of single runs: how far those of the next run may be off."""
    service_ms: LatencyMs | None
    """From the actual start; null in a closed loop, where it is the response time, and where the driver does not tell it."""
    scripts_ms: dict[str, LatencyMs]
    """Response time by script; empty with a single one."""
    statements_ms: list[StatementMs]
    """Empty where the driver does not tell them."""
    driver: Driver | None
    """Null in records from before it was kept."""
    disk: Disk
    time_above_limit: dict[str, Share]
    """Limit of the data's volume -> share of the time in which requests waited for it."""
    volumes: dict[str, VolumeDocument]
    """Role -> volume; empty where none was seen."""
    instance: InstanceDocument | None
    """Null where it has no limits to its volumes."""
    steady: list[SteadyState]
    """One for each replicate, in their order."""
    postgres: str
    """The server's version."""
    clock_shift_s: float | None
    """How far its clock was ahead of the host's in the first replicate, negative in the past; null where it was the host's."""
    given_up: list[str]
    """Settings that were off although durability rests on them; empty but where an experiment asked for it."""
    server: dict[str, float]
    """What PostgreSQL counted itself; the unit is the last word of a name."""
    wait_events: list[WaitEventDocument]
    """The most frequent first; empty when waits were not sampled."""
    cpu_share: dict[str, Share]
    """Role -> share of the host's CPU time."""
    storage_only: bool
    """Whether the instance has more vCPUs than the host has cores, so that only the storage was the instance's."""
    dilation: int
    """How many times slower than the host the arm's time went; its figures are in its own time."""
    client_rtt_ms: float | None
    """Emulated round trip between driver and server, 0 on one machine; null where nothing was chosen."""
    unseen: list[UnobservedDocument]
    """What could not be observed; empty where everything was."""
    usd_per_month: float | None
    """The price of all its volumes; null where one has none."""
    cost: ArmCost
    binding: BindingDocument
    """The limit that binds, its evidence, and the remedy."""
    bulk_load: BulkLoadOf | None
    """Of workload kind `load`: what it took, and what the loader said bound; null of other workloads."""
    tpcc: TpccOf | None
    """Of workload kind `tpcc`: figures derived from TPC-C; null of other workloads."""
    events: list[EventOf]
    """What happened to volumes and server during its runs."""
    power_cuts: list[PowerCutsOf]
    """Power cuts after its runs, an entry for each reading; empty where none were asked for."""
    queries: QueriesOf | None
    """Of workload kind `tpch`: what each query took; null of other workloads."""
    replay: ReplayOf | None
    """Of workload kind `replay`: whether it kept up, and what each statement took beside production; null of other workloads."""
    valid: bool
    why_invalid: list[str]
    warnings: list[str]


def arm_of(comparison: Comparison, place: int) -> ArmDocument:
    """The document of the arm at that place."""
    arm = comparison.arms[place]
    factors = comparison.factors
    return ArmDocument(
        volume=arm.volume,
        label=arm.label,
        factors={factor.name: factor.levels[level] for factor, level in zip(factors, arm.levels, strict=True)},
        metric=arm.metric.name,
        headline=arm.headline,
        tps=arm.headline if arm.metric is TPS else None,
        figures={
            name: FigureDocument.model_validate(document)
            for name, line in comparison.figures.items()
            if (document := line.of_arms[place]) is not None
        },
        qps=_single(comparison, "qps", place),
        latency_ms=_latency_ms(comparison, "latency", place),
        latency_ms_of_runs=LatencyOfRuns(
            **{f"p{item}": _single(comparison, f"latency_ms_p{item}", place) for item in PERCENTILES}
        ),
        service_ms=_latency_ms(comparison, "service", place)
        if "service_ms_p50" in comparison.figures and _value(comparison, "service_ms_p50", place) is not None
        else None,
        scripts_ms={name: LatencyMs(**_percentiles(counts)) for name, counts in arm.scripts_ms.items()},
        statements_ms=[
            StatementMs(number=statement.number, statement=statement.text, **_percentiles(counts))
            for statement, counts in arm.statements_ms.items()
        ],
        driver=_driver(arm),
        disk=Disk(**{name: _value(comparison, name, place) for name in Disk.model_fields}),
        time_above_limit=arm.data.time_above_limit,
        volumes={
            role: _volume(comparison, place, volume)
            for role, volume in arm.volumes.items()
            if volume.resolved or volume.iops is not None
        },
        instance=None if arm.instance is None else InstanceDocument.model_validate(arm.instance),
        steady=[_steady(replicate) for replicate in arm.replicates],
        postgres=arm.replicates[0].figures.record.postgres.version,
        clock_shift_s=arm.replicates[0].figures.record.postgres.clock_shift_s,
        given_up=list(arm.given_up),
        server=arm.server,
        wait_events=[
            WaitEventDocument(type=w.type, event=w.event, sessions=sessions) for w, sessions in arm.waits.items()
        ],
        cpu_share={role: min(1.0, max(0.0, share)) for role, share in arm.cpu_share.items()},
        storage_only=arm.storage_only,
        dilation=arm.dilation,
        client_rtt_ms=arm.replicates[0].figures.record.client.rtt_ms,
        unseen=[UnobservedDocument(what=row.what, why=row.why) for row in arm.visibility if not row.seen],
        usd_per_month=arm.usd_per_month,
        cost=comparison.costs[arm.index],
        binding=binding_of(comparison.bindings[arm.index]),
        bulk_load=bulk_load_of(arm, comparison.bindings[arm.index].verdict.limit),
        tpcc=tpcc_document(arm),
        events=events_document(arm),
        power_cuts=power_cuts_document(arm),
        queries=queries_document(arm, comparison.arms[0]),
        replay=replay_document(arm, comparison.arms[0]),
        valid=arm.valid,
        why_invalid=list(arm.why_invalid),
        warnings=list(arm.warnings),
    )


def _single(comparison: Comparison, name: str, place: int) -> Estimate | None:
    """A metric of single runs of an arm."""
    figure_document = comparison.figures[name].of_arms[place] if name in comparison.figures else None
    return None if figure_document is None else figure_document.of_runs


def _latency_ms(comparison: Comparison, name: str, place: int) -> LatencyMs:
    return LatencyMs(**{f"p{item}": _value(comparison, f"{name}_ms_p{item}", place) for item in PERCENTILES})


def _steady(replicate: Replicate) -> SteadyState:
    steady, credit = replicate.figures.steady, replicate.figures.credit
    return SteadyState(
        replicate=replicate.figures.record.block,
        **{name: getattr(steady, name) for name in SteadyState.model_fields.keys() - {"replicate", "regimes"}},
        regimes=list(credit.regimes),
    )


def _percentiles(distribution: ValueCounts) -> dict[str, float | None]:
    return {f"p{percent}": distribution.percentile(percent) for percent in PERCENTILES}


def _driver(arm: ArmSummary) -> Driver | None:
    results = [record for replicate in arm.replicates if (record := replicate.figures.record).driver is not None]
    if not results or (first := results[0].driver) is None:
        return None
    wakes = [driver.wake.p99_us for driver in results[0].drivers.values() or [first] if driver.wake is not None]
    cpu_ns, transactions = first.cpu_ns, first.transactions
    return Driver(
        engine=first.engine,
        connect_ms=first.connect_ms,
        cpu_us_per_transaction=cpu_ns / transactions / 1e3 if cpu_ns is not None and transactions else None,
        wake_ms_p99=max(wakes) / 1e3 if wakes else None,
        retries=first.retries,
        errors=dict(first.errors),
    )


def _volume(comparison: Comparison, place: int, volume: VolumeSummary) -> VolumeDocument:
    prefix = "" if volume.role == DATA else f"{volume.role}."
    return VolumeDocument(
        **{name: _value(comparison, prefix + name, place) for name in _OF_VOLUME},
        spec=volume.resolved.get("spec"),
        time_above_limit=volume.time_above_limit,
        usd_per_month=volume.usd_per_month,
        members=[Member.model_validate(member) for member in volume.members],
    )


def _value(comparison: Comparison, name: str, place: int) -> float | None:
    """A metric of an arm, over all replicates."""
    figure_document = comparison.figures[name].of_arms[place] if name in comparison.figures else None
    return None if figure_document is None else figure_document.value
