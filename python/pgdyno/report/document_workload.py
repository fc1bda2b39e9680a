"""Parts of the JSON document that only some experiments have: events, fills, power cuts, queries, replays, TPC-C, loads."""

from __future__ import annotations

from typing import Literal

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.loads import LoadFigures
from pgdyno.analysis.queries import queries_of
from pgdyno.analysis.reading import remarks
from pgdyno.analysis.replay import replay_of, trust_of
from pgdyno.analysis.tpcc import tpcc_of

from ..analysis.binding.rules import Limit
from ..analysis.durability import cuts_of, excluded
from ..analysis.loads import agrees, load_of, request_kib
from ..analysis.replay import unlike
from ..analysis.series import around
from ..analysis.statistics import Estimate
from .schema import DocumentPart, Share


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


class LoadedVolumeOf(DocumentPart):
    """Work of one volume during a load."""

    iops: float | None
    write_mib_per_s: float | None
    write_bytes: float | None
    """From the beginning of the load to its end, the checkpoint's too."""
    read_ms_mean: float | None
    """Mean latency of its reads; null where there were none."""
    write_ms_mean: float | None
    time_above_limit: dict[str, Share]
    """Limit -> share of the load in which requests waited for it; empty for volumes without limits."""
    course_mib_per_s: list[tuple[float, float]]
    """(seconds since filling began, MiB/s written)."""


class LoadOf(DocumentPart):
    """One load: a data set, made once and cloned for each run."""

    title: str
    loader: Literal["native", "pgbench", "restore"]
    sessions: int
    """How many worked at a time, at most."""
    limited: bool
    """Whether it was done on an arm's own volumes with their limits on; otherwise it says nothing of a volume."""
    specs: dict[str, str]
    """Role -> volume of a limited load."""
    dilation: int
    """How many times slower than the host its time went; every figure is in its own time."""
    rows: int
    seconds: float
    """With keys, indexes and the checkpoint at its end."""
    rows_per_s: float | None
    row_mib_per_s: float | None
    """Rows as COPY sends them, while any were copied; null where the loader does not tell it."""
    steps_s: dict[str, float]
    """Step -> seconds in which at least one session was at it."""
    volumes: dict[str, LoadedVolumeOf]
    """By role; those that were sampled."""


def load_document(figures: LoadFigures) -> LoadOf:
    """The document of a load."""
    record = figures.record
    return LoadOf(
        title=record.title,
        loader=record.loader,
        sessions=record.sessions,
        limited=record.limited,
        specs=dict(record.volumes),
        dilation=record.dilation,
        rows=figures.rows,
        seconds=figures.seconds,
        rows_per_s=figures.rows_per_s,
        row_mib_per_s=figures.row_mib_per_s,
        steps_s=dict(record.seconds),
        volumes={volume.role: LoadedVolumeOf.model_validate(volume) for volume in figures.volumes},
    )


class FailedCutOf(DocumentPart):
    """A power cut that a database did not survive."""

    id: str
    """Its name for `pgdyno crashtest --replay`."""
    stratum: str
    """What the server did at its instant."""
    failures: dict[str, str]
    """Check that found something -> what it said."""


class PowerCutsOf(DocumentPart):
    """The power cuts of an arm in one reading, all replicates together."""

    reading: str
    """What was left of a write that was not durable."""
    cuts: int
    failed: int
    by_check: dict[str, int]
    """Check -> cuts in which it found something."""
    excluded_1_in: float | None
    """Fewer than one in this number fail, with 95 %; null where one failed or none was made."""
    first_failed: list[FailedCutOf]
    """The first that failed in each replicate; their recordings are kept."""
    audit: list[dict[str, int]]
    """How the pages of 8 KiB that the server wrote reached the device, for each replicate."""
    verdict: str


def power_cuts_document(arm: ArmSummary) -> list[PowerCutsOf]:
    """Empty of experiments without power cuts."""
    return [
        PowerCutsOf(
            reading=cut.reading,
            cuts=cut.cuts,
            failed=cut.failed,
            by_check=cut.by_check,
            excluded_1_in=None if cut.failed or not cut.cuts else excluded(cut.cuts),
            first_failed=[
                FailedCutOf(id=failed.id, stratum=failed.stratum, failures=failed.failures)
                for failed in cut.first_failed
            ],
            audit=[run.audit for run in cut.runs],
            verdict=cut.verdict,
        )
        for cut in cuts_of(arm)
    ]


class QueriesOf(DocumentPart):
    """The queries of an arm, of workload kind `tpch`, derived from TPC-H: no TPC result."""

    query_s: dict[str, Estimate]
    """Number of a query -> its seconds in a run, the geometric mean over streams and sets; with the interval over replicates."""
    ratios: dict[str, Estimate]
    """Number of a query -> ratio of its seconds to those of the first arm, paired by replicate; empty for the first."""
    slowest_stream_s: float
    """Seconds of a run's slowest stream, mean of the replicates."""
    temp_bytes: dict[str, float] | None
    """Number of a query -> bytes of temporary files of a run, all of its executions together; null where not counted."""
    refresh_s: dict[str, float]
    """Refresh function (`insert`, `delete`) -> its seconds, mean of sets and replicates; empty without. No other figure has them."""


def queries_document(arm: ArmSummary, first: ArmSummary) -> QueriesOf | None:
    """The document of an arm's queries."""
    queries, base = queries_of(arm), queries_of(first)
    if queries is None:
        return None
    ratios = {} if base is None or arm is first else queries.ratios(base)
    temp = queries.temp_bytes
    return QueriesOf(
        query_s={str(query): estimate for query, estimate in queries.query_s.items()},
        ratios={str(query): ratio for query, ratio in ratios.items()},
        slowest_stream_s=queries.slowest_stream_s,
        temp_bytes=None if temp is None else {str(query): count for query, count in temp.items()},
        refresh_s=queries.refresh_s,
    )


class AccountOf(DocumentPart):
    """The statements of one run: each is in one count."""

    replicate: int
    executed: int
    failed_as_recorded: int
    newly_failed: int
    no_longer_failed: int
    """Failed in production and not here."""
    left_out: dict[str, int]
    """Reason -> statements that were not sent for it."""
    copies_made: int
    """COPYs among the executed statements whose rows were made by the statistics of their columns."""
    not_begun: int
    not_captured: dict[str, int] | None
    """Reason -> statements of the log, and records that may have had one, that the capture does not have; null in older records."""
    capture_remarks: list[str]
    """What else the capture lacks, in words: the recording was killed, sessions that were not recorded to their end, lines."""


class StatementOf(DocumentPart):
    """Statements of one shape: the text with `?` in place of each literal."""

    statement: str
    calls: float
    """In a run."""
    response_ms: Estimate
    """Mean time from when it was due until its answer; with the interval over replicates."""
    recorded_ms: float | None
    """Mean duration in production; null where it was not recorded."""
    ratio: Estimate | None
    """Ratio of its response time to that of the first arm, paired by replicate; null for the first."""


class UnlikeOf(DocumentPart):
    """A statement that did other work than in production, in the first replicate."""

    statement: str
    calls: int
    """In production."""
    ratios: dict[str, float]
    """`calls`, `rows`, `WAL records` or `blocks` -> the multiple of production's, of those beyond their limit."""


class TrustOf(DocumentPart):
    """Service times on production's own volume (`workload.recorded_on`), as multiples of production's."""

    median: Estimate | None
    """Median of all statements; null where nothing was timed, as below."""
    p99: Estimate | None
    statements_min: float | None
    """The lowest mean of a statement, of those that together have 90 % of production's time."""
    statements_max: float | None
    """The highest."""


class ReplayOf(DocumentPart):
    """The replays of an arm, of workload kind `replay`."""

    kept_up: bool
    """Whether every replicate ended in its time, to a second."""
    due_s: float
    """How long the capture takes at the speed that was asked for."""
    late_s: Estimate
    """How much longer it took."""
    behind_s_max: float
    """The latest statement of all replicates."""
    trust: TrustOf | None
    """How far to trust the other arms; null but for the one with production's own volume."""
    accounts: list[AccountOf]
    unlike: list[UnlikeOf] | None
    """Statements with other work than in production; null where production's counters were not given."""
    statements: list[StatementOf]
    """Those first that took the most time."""


def replay_document(arm: ArmSummary, first: ArmSummary) -> ReplayOf | None:
    """The document of an arm's replays."""
    replay, base = replay_of(arm), replay_of(first)
    if replay is None:
        return None
    ratios = {} if base is None or arm is first else replay.ratios(base)
    names = AccountOf.model_fields.keys() - {"replicate", "not_captured", "capture_remarks"}
    return ReplayOf(
        kept_up=replay.kept_up,
        due_s=replay.runs[0].due_s,
        late_s=replay.late_s,
        behind_s_max=replay.behind_s_max,
        accounts=[
            AccountOf(
                replicate=block,
                **{name: getattr(run, name) for name in names},
                not_captured=None if run.reading is None else run.reading.statements,
                capture_remarks=[] if run.reading is None else list(remarks(run.reading)),
            )
            for (_, block), run in replay.by_block.items()
        ],
        trust=_trust(arm),
        unlike=None
        if (likeness := replay.runs[0].likeness) is None
        else [
            UnlikeOf(statement=other.statement, calls=other.calls, ratios=dict(other.ratios))
            for other in unlike(likeness)
        ],
        statements=[
            StatementOf(
                statement=shape,
                calls=statement.calls,
                response_ms=statement.response_ms,
                recorded_ms=statement.recorded_ms,
                ratio=ratios.get(shape),
            )
            for shape, statement in replay.statements.items()
        ],
    )


def _trust(arm: ArmSummary) -> TrustOf | None:
    trust = trust_of([arm])
    if trust is None or trust.arm is None:
        return None
    least, most = trust.statements or (None, None)
    return TrustOf(median=trust.median, p99=trust.p99, statements_min=least, statements_max=most)


class TpccOf(DocumentPart):
    """An arm over its replicates; no result of TPC-C."""

    nopm: float
    """New-Orders per minute, counted at the client."""
    tpm: float
    """Transactions per minute, counted at the client."""
    tpm_of_server: float | None
    """Commits and rollbacks of all databases of the server per minute, as HammerDB counts; null where they were not sampled."""
    other_share: Share | None
    """Share of these that the clients did not make."""
    tpm_printed: float | None
    """The same as HammerDB printed it; null where it did not drive."""
    tpm_per_nopm: float | None
    tpm_per_nopm_error: float | None
    """Its standard error, by the number of transactions."""
    tpm_per_nopm_by_mix: float | None
    """What the mix gives; null where no check of it was made."""
    nopm_per_warehouse: float
    paced: bool
    """Whether it is at most what users with the specification's keying and think times ask for: 12.86."""
    warehouses: int
    warehouses_used: float | None
    """Warehouses with a New-Order, by the tables; mean of the replicates. Null where they were not asked."""
    time_share: dict[str, Share]
    """Type of transaction -> its share of the time that clients waited for transactions."""


def tpcc_document(arm: ArmSummary) -> TpccOf | None:
    """Null of other workloads."""
    tpcc = tpcc_of(arm)
    return None if tpcc is None else TpccOf.model_validate(tpcc)


class BulkLoadOf(DocumentPart):
    """The loads of an arm, of workload kind `load`; means of the replicates."""

    rows: int
    """Rows of a run."""
    seconds: float
    """From the first COPY to the end of the final checkpoint."""
    seconds_low: float | None
    """Lower end of the 95 % interval; null for one replicate."""
    seconds_high: float | None
    input_bytes: int
    """Size of all files, uncompressed."""
    input_mib_per_s: float | None
    connections: int
    """Sessions that copied at a time."""
    steps_s: dict[str, float]
    """`transfer`, `put_back`, `vacuum`, `checkpoint` -> seconds."""
    written_per_input_byte: float | None
    """Bytes that reached the volumes for each byte of the files."""
    request_kib: float | None
    """Mean size of the requests to the data's volume."""
    limits: dict[str, Share]
    """What the loader said that bound while it copied -> share of those seconds."""
    agrees: bool | None
    """Whether that means the limit of `binding`; null where either says nothing."""


def bulk_load_of(arm: ArmSummary, limit: Limit | None) -> BulkLoadOf | None:
    """The document of an arm's loads; ``limit`` is the one of its verdict."""
    load = load_of(arm)
    if load is None:
        return None
    return BulkLoadOf(
        rows=load.rows,
        seconds=load.seconds.mean,
        seconds_low=load.seconds.low,
        seconds_high=load.seconds.high,
        input_bytes=load.runs[0].input_bytes,
        input_mib_per_s=load.input_mib_per_s,
        connections=load.connections,
        steps_s=load.steps_s,
        written_per_input_byte=load.written_per_input_byte,
        request_kib=request_kib(arm.data.iops, arm.data.mib_per_s),
        limits={name: min(1.0, share) for name, share in load.limits.items()},
        agrees=agrees(load.limit, limit),
    )
