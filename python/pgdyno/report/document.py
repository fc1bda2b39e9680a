"""The JSON that ``compare``, ``run`` and ``report`` print with ``--json``. ``schema/compare.schema.json`` is made from it.

A field is added, never renamed or given another meaning. A figure that was not recorded is null.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from pgdyno.analysis.distribution import PERCENTILES
from pgdyno.report.document_binding import Binding, binding_of
from pgdyno.report.document_bulk_load import BulkLoadOf, bulk_load_of
from pgdyno.report.document_loads import LoadOf, load_of
from pgdyno.report.document_sweep import SweepOf, sweep_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pgdyno.analysis.arm import ArmSummary, InstanceSummary, Replicate, VolumeSummary
    from pgdyno.analysis.compare import Comparison, Ratio
    from pgdyno.analysis.cost import ArmCost
    from pgdyno.analysis.distribution import Distribution
    from pgdyno.analysis.effects import Effect
    from pgdyno.analysis.factors import Factor
    from pgdyno.analysis.interval import Estimate

Share = Annotated[float, Field(ge=0, le=1)]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Tps(_Document):
    """Transactions per second over the replicates; of workload kind `load` rows per second."""

    mean: float
    low: float | None
    """Lower end of the 95 % interval; null for one replicate."""
    high: float | None
    n: int
    """Replicates."""


class LatencyMs(_Document):
    """Percentiles of the response time, from the merged histograms of all replicates, milliseconds."""

    p50: float | None
    p95: float | None
    p99: float | None


class OfRuns(_Document):
    """A figure of a run: mean of the replicates, and its 95 % interval."""

    mean: float
    low: float | None
    high: float | None
    n: int


class LatencyOfRuns(_Document):
    """Percentiles of the response time of single runs, milliseconds; null without transactions."""

    p50: OfRuns | None
    p95: OfRuns | None
    p99: OfRuns | None


class SteadyTps(_Document):
    """Transactions per second of a run's steady seconds."""

    mean: float
    low: float
    """Lower end of the 95 % interval within this run, which knows nothing of other runs."""
    high: float
    n_effective: float
    """Independent seconds, or checkpoint cycles, that would tell the mean as well."""


class CreditRegime(_Document):
    """Neighbouring seconds of a run with the same limits."""

    begin_s: int
    """Since measuring began."""
    end_s: int
    gone: list[str]
    """Credits of a volume, and reserves of the instance, that were gone; empty while all were there."""
    tps: float


class SteadyState(_Document):
    """Whether one run came to a steady state, by its seconds; where its credits went, by those of its longest regime."""

    replicate: int
    state: Literal["steady", "not steady", "too short"]
    begin_s: int
    """When it begins, seconds since measuring began."""
    end_s: int
    warm_up_s: int
    """Seconds of warm-up in the measure phase."""
    cycles: int
    """Whole checkpoint cycles; 0 where no checkpoint began."""
    tps: SteadyTps | None
    why: str
    regimes: list[CreditRegime]
    """The run divided where credits went or came back; a single one where nothing changed."""


class StatementMs(LatencyMs):
    """Percentiles of the time of one statement, milliseconds."""

    number: int
    """In the order of the scripts."""
    statement: str


class Driver(_Document):
    """What drove the workload, and what it needed itself, from the first replicate that tells it."""

    engine: Literal["native", "pgbench", "sysbench", "loader"]
    connect_ms: float | None
    """Until all clients were connected."""
    cpu_us_per_transaction: float | None
    wake_ms_p99: float | None
    """How late the driver itself was where it waited for nothing but the time."""
    retries: int | None
    errors: dict[str, int]
    """Failed transactions by class."""


class Disk(_Document):
    """What the data's volume did during the measure phase, means of the replicates."""

    iops: float | None
    mib_per_s: float | None
    queue_length: float | None
    read_ms_p50: float | None
    write_ms_p50: float | None


class Volume(Disk):
    """One of an arm's volumes."""

    spec: str | None
    """The specification in full; null for a device that was there."""
    read_ms_p99: float | None
    write_ms_p99: float | None
    time_above_limit: dict[str, Share]
    usd_per_month: float | None


class Instance(_Document):
    """The limit of the instance to all its volumes together, means of the replicates."""

    type: str
    iops: float | None
    mib_per_s: float | None
    time_above_limit: dict[str, Share]
    """Limit -> share of the time in which requests waited for it."""
    reserve: dict[str, Share]
    """Limit whose maximum is above its baseline -> what a run left of the reserve."""


class WaitEvent(_Document):
    """What sessions were seen waiting for, or that they were on a CPU."""

    type: str
    event: str
    sessions: float
    """Mean number of the clients' sessions in this state."""


class Unseen(_Document):
    """Something that could not be observed."""

    what: str
    why: str


class Loss(_Document):
    """Probability of losing an arm's data within a year, by both ends of the published failure rates."""

    low: Share
    high: Share


class Cost(_Document):
    """What an arm costs, by the list prices of its volumes, and how long it lasts."""

    usd_per_month: float | None
    size_bytes: int | None
    """Capacity of all its volumes."""
    equal_size_bytes: int | None
    """Capacity of the largest arm."""
    usd_per_month_at_equal_size: float | None
    limits_follow_size: bool
    """Whether it would have higher limits at the equal size than were measured."""
    usd_per_million_transactions: float | None
    """At the measured rate, all month; null of loads."""
    usd_per_million_transactions_at_equal_size: float | None
    loss_per_year: Loss | None
    ends_with_its_instance: bool
    """Whether a volume that the database needs keeps nothing when its instance stops."""
    front: dict[str, bool]
    """``tps`` and ``latency_ms_p99`` -> whether no other arm costs less without being slower beyond doubt; empty without a
    price."""


class Arm(_Document):
    """One volume, or one combination of the factors' levels."""

    volume: str
    """The arm as it was written: for ``compare`` the volume, else the levels of the factors, joined."""
    label: str
    """A short name."""
    factors: dict[str, str]
    """Factor -> this arm's level."""
    tps: Tps
    qps: OfRuns | None
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
    volumes: dict[str, Volume]
    """Role -> volume; empty where none was seen."""
    instance: Instance | None
    """Null where it has no limits to its volumes."""
    steady: list[SteadyState]
    """Of each replicate, in their order."""
    postgres: str
    """The server's version."""
    server: dict[str, float]
    """What PostgreSQL counted itself; the unit is the last word of a name."""
    wait_events: list[WaitEvent]
    """The most frequent first; empty when nobody looked."""
    cpu_share: dict[str, Share]
    """Role -> share of the host's CPU time."""
    storage_only: bool
    """Whether the instance has more vCPUs than the host has cores, so that only the storage was the instance's."""
    dilation: int
    """How many times slower than the host the arm's time went; its figures are in its own time."""
    client_rtt_ms: float | None
    """Emulated round trip between driver and server, 0 on one machine; null where nothing was chosen."""
    unseen: list[Unseen]
    """What could not be observed; empty where everything was."""
    usd_per_month: float | None
    """Of all its volumes; null where one has no price."""
    cost: Cost
    binding: Binding
    """The limit that binds, its evidence, and the remedy."""
    bulk_load: BulkLoadOf | None
    """Of workload kind `load`: what it took, and what the loader said bound; null of other workloads."""
    valid: bool
    why_invalid: list[str]
    warnings: list[str]


class RatioOf(_Document):
    """One volume against the first."""

    volume: str
    to: str
    metric: Literal["tps"]
    ratio: float
    low: float | None
    high: float | None
    distinguishable: bool
    """Whether the 95 % interval excludes 1."""
    equivalent_within: float | None
    """Relative difference that is ruled out at 95 %, either way (0.02 is 2 %); null for one replicate."""
    detectable_difference: float | None
    """Relative difference that replicates like these find in four experiments of five."""
    replicates_needed: int | None
    """Replicates that would find a difference of 3 % as often."""


class FactorOf(_Document):
    """What the arms differ in."""

    name: str
    """Its path in the experiment file."""
    title: str
    levels: list[str]
    """The first is what the others are compared to."""


class EffectAt(_Document):
    """An effect at one level of another factor."""

    factor: str
    level: str
    ratio: float
    low: float | None
    high: float | None


class EffectOf(_Document):
    """A level of a factor against its first level, over all other factors and all replicates."""

    factor: str
    level: str
    to: str
    metric: Literal["tps"]
    ratio: float
    low: float | None
    high: float | None
    pairs: int
    """Pairs of runs that differ in this alone."""
    distinguishable: bool
    """Whether the 95 % interval excludes 1."""
    depends_on: list[EffectAt]
    """The effect at each level of a factor on which it was seen to depend; empty where no such evidence was found."""


class CompareDocument(_Document):
    """A comparison of volumes, or of any other arms."""

    experiment: str
    """Its id."""

    command: str
    """The command line that repeats the experiment."""
    seed: int
    verdict: str
    factors: list[FactorOf]
    arms: list[Arm]
    absent: list[str]
    """Arms that were planned and have no finished run."""
    ratios: list[RatioOf]
    """Each arm after the first against the first."""
    effects: list[EffectOf]
    """What each factor did; empty for a single factor, whose effects are the ratios."""
    sweep: SweepOf | None
    """Its axes and laws; null where no factor has three numbers as levels."""
    loads: list[LoadOf]
    """In the order in which they were made; empty where none was watched."""
    noise_floor: float | None
    """Relative difference below which 19 of 20 pairs of runs of one arm lie; null where runs are too few."""
    report: str | None
    """Path of the HTML page; null when none was written."""


def document(comparison: Comparison, report: Path | None = None) -> CompareDocument:
    """The document of a comparison; ``report`` is the page that was written."""
    by_index = {arm.index: arm for arm in comparison.arms}
    ratios = [_ratio(ratio, by_index) for ratio in comparison.ratios]
    return CompareDocument(
        experiment=comparison.experiment.experiment_id,
        command=command_line(comparison),
        seed=comparison.experiment.seed,
        verdict=comparison.verdict,
        factors=[FactorOf(name=f.name, title=f.title, levels=list(f.levels)) for f in comparison.factors],
        arms=[_arm(arm, comparison) for arm in comparison.arms],
        absent=list(comparison.absent),
        ratios=[ratio for ratio in ratios if ratio is not None],
        effects=[found for effect in comparison.effects if (found := _effect(effect, comparison.factors)) is not None],
        sweep=sweep_of(comparison),
        loads=[load_of(one) for one in comparison.loads],
        noise_floor=None if comparison.noise_floor is None else comparison.noise_floor.difference,
        report=None if report is None else str(report),
    )


def command_line(comparison: Comparison) -> str:
    """The command that repeats the experiment, quoted for a shell."""
    return shlex.join(comparison.experiment.command)


def _arm(arm: ArmSummary, comparison: Comparison) -> Arm:
    factors = comparison.factors
    return Arm(
        volume=arm.volume,
        label=arm.label,
        factors={factor.name: factor.levels[level] for factor, level in zip(factors, arm.levels, strict=True)},
        tps=Tps(mean=arm.tps.mean, low=arm.tps.low, high=arm.tps.high, n=arm.tps.n),
        qps=_of_runs(arm.qps),
        latency_ms=LatencyMs(**_percentiles(arm.latency_ms)),
        latency_ms_of_runs=LatencyOfRuns(
            **{f"p{percentile}": _of_runs(arm.of_runs_ms.get(percentile)) for percentile in PERCENTILES}
        ),
        service_ms=LatencyMs(**_percentiles(arm.service_ms)) if arm.service_ms.total else None,
        scripts_ms={name: LatencyMs(**_percentiles(found)) for name, found in arm.scripts_ms.items()},
        statements_ms=[
            StatementMs(number=one.number, statement=one.text, **_percentiles(found))
            for one, found in arm.statements_ms.items()
        ],
        driver=_driver(arm),
        disk=Disk(**_disk(arm.data)),
        time_above_limit=arm.data.time_above_limit,
        volumes={
            role: _volume(volume) for role, volume in arm.volumes.items() if volume.resolved or volume.iops is not None
        },
        instance=None if arm.instance is None else _instance(arm.instance),
        steady=[_steady(replicate) for replicate in arm.replicates],
        postgres=arm.replicates[0].figures.record.postgres.version,
        server=arm.server,
        wait_events=[WaitEvent(type=w.type, event=w.event, sessions=sessions) for w, sessions in arm.waits.items()],
        cpu_share={role: min(1.0, max(0.0, share)) for role, share in arm.cpu_share.items()},
        storage_only=arm.storage_only,
        dilation=arm.dilation,
        client_rtt_ms=arm.replicates[0].figures.record.client.rtt_ms,
        unseen=[Unseen(what=row.what, why=row.why) for row in arm.visibility if not row.seen],
        usd_per_month=arm.usd_per_month,
        cost=_cost(comparison.costs[arm.index]),
        binding=binding_of(comparison.bindings[arm.index]),
        bulk_load=bulk_load_of(arm, comparison.bindings[arm.index].verdict.limit),
        valid=arm.valid,
        why_invalid=list(arm.why_invalid),
        warnings=list(arm.warnings),
    )


def _of_runs(estimate: Estimate | None) -> OfRuns | None:
    if estimate is None:
        return None
    return OfRuns(mean=estimate.mean, low=estimate.low, high=estimate.high, n=estimate.n)


def _steady(replicate: Replicate) -> SteadyState:
    found = replicate.figures.steady
    tps = found.tps
    return SteadyState(
        replicate=replicate.figures.record.block,
        state=found.state,
        begin_s=found.begin_s,
        end_s=found.end_s,
        warm_up_s=found.warm_up_s,
        cycles=found.cycles,
        tps=None if tps is None else SteadyTps(mean=tps.mean, low=tps.low, high=tps.high, n_effective=tps.n_effective),
        why=found.why,
        regimes=[
            CreditRegime(begin_s=one.begin_s, end_s=one.end_s, gone=list(one.gone), tps=one.tps)
            for one in replicate.figures.credit.regimes
        ],
    )


def _cost(cost: ArmCost) -> Cost:
    return Cost(
        usd_per_month=cost.usd_per_month,
        size_bytes=cost.size_bytes,
        equal_size_bytes=cost.equal_size_bytes,
        usd_per_month_at_equal_size=cost.usd_per_month_at_equal_size,
        limits_follow_size=cost.limits_follow_size,
        usd_per_million_transactions=cost.usd_per_million_transactions,
        usd_per_million_transactions_at_equal_size=cost.usd_per_million_transactions_at_equal_size,
        loss_per_year=None if cost.loss is None else Loss(low=cost.loss.low, high=cost.loss.high),
        ends_with_its_instance=cost.ends_with_its_instance,
        front=dict(cost.front),
    )


def _percentiles(distribution: Distribution) -> dict[str, float | None]:
    return {f"p{percent}": distribution.percentile(percent) for percent in PERCENTILES}


def _driver(arm: ArmSummary) -> Driver | None:
    told = [one for replicate in arm.replicates if (one := replicate.figures.record.driver) is not None]
    if not told:
        return None
    first = told[0]
    cpu_ns, transactions = first.cpu_ns, first.transactions
    return Driver(
        engine=first.engine,
        connect_ms=first.connect_ms,
        cpu_us_per_transaction=cpu_ns / transactions / 1e3 if cpu_ns is not None and transactions else None,
        wake_ms_p99=None if first.wake is None else first.wake.p99_us / 1e3,
        retries=first.retries,
        errors=dict(first.errors),
    )


def _disk(volume: VolumeSummary) -> dict[str, float | None]:
    return {
        "iops": volume.iops,
        "mib_per_s": volume.mib_per_s,
        "queue_length": volume.queue_length,
        "read_ms_p50": volume.read_ms.percentile(50),
        "write_ms_p50": volume.write_ms.percentile(50),
    }


def _volume(volume: VolumeSummary) -> Volume:
    return Volume(
        **_disk(volume),
        spec=volume.resolved.get("spec"),
        read_ms_p99=volume.read_ms.percentile(99),
        write_ms_p99=volume.write_ms.percentile(99),
        time_above_limit=volume.time_above_limit,
        usd_per_month=volume.usd_per_month,
    )


def _instance(instance: InstanceSummary) -> Instance:
    return Instance(
        type=instance.type,
        iops=instance.iops,
        mib_per_s=instance.mib_per_s,
        time_above_limit=instance.time_above_limit,
        reserve=instance.reserve,
    )


def _effect(effect: Effect, factors: Sequence[Factor]) -> EffectOf | None:
    if effect.estimate is None:
        return None
    factor = factors[effect.factor]
    return EffectOf(
        factor=factor.name,
        level=factor.levels[effect.level],
        to=factor.levels[0],
        metric="tps",
        ratio=effect.estimate.mean,
        low=effect.estimate.low,
        high=effect.estimate.high,
        pairs=effect.estimate.n,
        distinguishable=effect.distinguishable,
        depends_on=[
            EffectAt(
                factor=factors[within.factor].name,
                level=factors[within.factor].levels[within.level],
                ratio=within.estimate.mean,
                low=within.estimate.low,
                high=within.estimate.high,
            )
            for within in effect.within
        ],
    )


def _ratio(ratio: Ratio, by_index: dict[int, ArmSummary]) -> RatioOf | None:
    if ratio.estimate is None:
        return None
    return RatioOf(
        volume=by_index[ratio.index].volume,
        to=by_index[ratio.to_index].volume,
        metric="tps",
        ratio=ratio.estimate.mean,
        low=ratio.estimate.low,
        high=ratio.estimate.high,
        distinguishable=ratio.distinguishable,
        equivalent_within=ratio.equivalent_within,
        detectable_difference=ratio.detectable,
        replicates_needed=ratio.replicates_needed,
    )
