"""Replays, in the JSON that ``run`` and ``report`` print: a part of :mod:`pgdyno.report.document`."""

from __future__ import annotations

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.reading import remarks
from pgdyno.analysis.replay import replay_of, trust_of
from pgdyno.report.part import DocumentPart

from ..analysis.replay import unlike
from ..analysis.statistics import Estimate


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
