"""Replays: whether a run was the captured load and kept up, and the time and work of each statement beside production's."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.finding import CheckResult

from ..base.text import percent
from ..results.work_record import (
    ComparedStatement,
    LikenessRecord,
    ReplayedKeys,
    ReplayedStatement,
    ReplayRecord,
    SequenceFit,
    StatementWork,
    TimeDistribution,
)
from . import reading
from .run import RunFigures
from .statistics import Estimate, ratio_interval, t_interval

LIMITS: Mapping[str, float] = {"calls": 0.05, "rows": 0.05, "WAL records": 0.05, "blocks": 0.20}
"""How far a figure may be from production's: what a statement was asked for and wrote is known to 5 %, and 20 % of the blocks is what
bloat and another order of rows make (issue 21, point 10)."""
READ_WAL_LIMIT = 0.50
"""The same for WAL records of a SELECT. It prunes pages that others have changed, and how many depends on which snapshots are open meanwhile, so
on how fast the server is: replays on a volume without limits had 1.11 times production's, and 0.74 times where the machine was busy, of a SELECT
that writes nothing itself."""
PLAN_TIMES = 2.0
"""Twice the blocks, or half of them, are those of another plan, or of another database: what bloat makes is less."""
COUNT_MIN = 20
"""A figure is compared where one side counted 20: of fewer, one is more than 5 %."""
WRITES_MIN = 0.5
"""WAL records of a call, from which on a statement writes. What reads leave in the WAL follows from vacuum and checkpoints."""
NOISE_TIMES = 4.0
"""Multiple of the square root of the counts: WAL records and blocks also count pages that were split or pruned meanwhile, as chance
has it."""
_LETTERS = 60


@dataclass(frozen=True)
class Unlike:
    """A statement that did other work than in production."""

    statement: str
    calls: int
    """In production."""
    exec_ms: float
    """In production, together."""
    ratios: Mapping[str, float]
    """Figure -> its multiple of production's, of those that are beyond their limits; rows, WAL records and blocks by call."""

    @property
    def is_other(self) -> bool:
        """Whether bloat cannot be why."""
        blocks = self.ratios.get("blocks", 1.0)
        return len(self.ratios) > ("blocks" in self.ratios) or not 1 / PLAN_TIMES <= blocks <= PLAN_TIMES

    @property
    def words(self) -> str:
        """Its begin, with the figures."""
        short = self.statement if len(self.statement) <= _LETTERS else f"{self.statement[: _LETTERS - 1]}…"
        return f"{short} ({', '.join(f'{ratio:.2f} times the {name}' for name, ratio in self.ratios.items())})"


def unlike(record: LikenessRecord) -> list[Unlike]:
    """Statements beyond a limit, the one with the most time in production first."""
    each = [(statement, dict(_beyond(statement, whole=record.whole))) for statement in record.statements]
    return [
        Unlike(item.statement, item.production.calls, item.production.exec_ms, ratios)
        for item, ratios in each
        if ratios
    ]


def likeness_reasons(record: LikenessRecord) -> Iterator[str]:
    """Why it was not production's work; nothing if it was."""
    others = [other for other in unlike(record) if other.is_other]
    calls, exec_ms = (
        sum(getattr(unlike, name) for unlike in others)
        / max(1e-9, sum(getattr(statement.production, name) for statement in record.statements))
        for name in ("calls", "exec_ms")
    )
    if max(calls, exec_ms) > SHARE_MOST:
        named = "; ".join(unlike.words for unlike in others[:NAMED_MOST])
        more = f"; and {len(others) - NAMED_MOST} others" if len(others) > NAMED_MOST else ""
        yield f"statements with {calls:.1%} of the calls and {exec_ms:.1%} of the time did other work than in production: {named}{more}"


def _beyond(statement: ComparedStatement, *, whole: bool) -> Iterator[tuple[str, float]]:
    there, here = statement.production, statement.here
    if whole and max(there.calls, here.calls) >= COUNT_MIN and _is_beyond(LIMITS["calls"], here.calls, there.calls):
        yield "calls", here.calls / max(1, there.calls)
    if not here.calls:
        return
    # By call: production's counters were read a little before the capture and a little after it.
    expected = here.calls / there.calls
    for name, own, theirs, is_noisy in _by_call(there, here):
        wanted = theirs * expected
        limit = READ_WAL_LIMIT if name == "WAL records" and _reads(statement.statement) else LIMITS[name]
        if max(own, wanted) < COUNT_MIN or not _is_beyond(limit, own, wanted):
            continue
        if is_noisy and abs(own - wanted) <= NOISE_TIMES * math.sqrt(own + wanted):
            continue
        yield name, own / max(1.0, wanted)


def _by_call(there: StatementWork, here: StatementWork) -> Iterator[tuple[str, int, int, bool]]:
    yield "rows", here.rows, there.rows, False
    if max(here.wal_records / here.calls, there.wal_records / there.calls) >= WRITES_MIN:
        yield "WAL records", here.wal_records, there.wal_records, True
    yield "blocks", here.blocks, there.blocks, True


def _is_beyond(limit: float, here: float, production: float) -> bool:
    return abs(here - production) > limit * max(production, 1.0)


def _reads(statement: str) -> bool:
    return statement[:6].upper() == "SELECT"


SHARE_MOST = 0.01
"""Of statements or of recorded time: a replay that loses more is not the captured load (issue 21, point 10)."""
LOST_LINES_MOST = 0.0005
"""A share of the log's lines: a server loses none, and a file that is cut at its end lacks one. A statement has two or three."""
NO_ROWS = "rows of COPY are in no log"
"""Why the engine leaves a COPY out, as it says it."""
MOST_SHARE = 0.9
"""Of production's time: the statements beyond it are many, and each says little."""
NAMED_MOST = 3
"""Places of keys that a reason names."""
STATEMENT_LETTERS = 120
"""Letters of a statement that a reason names."""
AHEAD = 32
"""A sequence that was recovered from a crash or a base backup skips 32 values (PostgreSQL, SEQ_LOG_VALS in sequence.c)."""
KEPT_UP_S = 1.0
"""A replay that ends at most so much after its time kept up: a second is what a user notices, and a checkpoint may cost it."""


def reasons(record: ReplayRecord) -> Iterator[str]:
    """Why it was not the captured load; nothing if it was."""
    statements, recorded_s = max(1, record.statements), max(1e-6, record.recorded_s)
    if record.ended_by:
        yield f"it did not reach its end: {record.ended_by}"
    if record.not_begun:
        yield f"{record.not_begun:,} statements were not begun"
    if (share := record.newly_failed / statements) > SHARE_MOST:
        yield f"{share:.1%} of the statements failed that had not failed so in production"
    if (share := record.no_longer_failed / statements) > SHARE_MOST:
        yield f"{share:.1%} of the statements did not fail as they had in production"
    if (share := sum(record.left_out.values()) / statements) > SHARE_MOST:
        yield f"{share:.1%} of the statements were left out"
    if (share := record.left_out_s / recorded_s) > SHARE_MOST:
        yield f"statements with {share:.1%} of the recorded time were left out"
    if record.reading is not None:
        yield from reading.reasons(record.reading)
    if record.log_lost > LOST_LINES_MOST * record.log_entries and not (record.reading and record.reading.accepted):
        yield f"{record.log_lost:,} of {record.log_entries:,} lines of the log are missing or not whole"
    for sequence in () if record.keys is None else record.keys.sequences:
        if is_older(sequence):
            yield f"the database is {sequence.missing:,} values of {sequence.column} older than the capture"
        if is_newer(sequence):
            yield f"the database is newer than the capture: it has {sequence.already:,} of {sequence.returned:,} keys of {sequence.column} already"
    if record.keys is not None:
        yield from _doubtful(record.keys)
    if record.likeness is not None:
        yield from likeness_reasons(record.likeness)


def _doubtful(keys: ReplayedKeys) -> Iterator[str]:
    """Why keys were not exchanged well enough: too many values may have been keys, and were sent as captured."""
    if keys.doubtful <= SHARE_MOST * (keys.exchanged + keys.doubtful):
        return
    named = "; ".join(
        f"{doubtful_place.place} of {textwrap.shorten(doubtful_place.statement, STATEMENT_LETTERS, placeholder=' …')} ({doubtful_place.count:,} times: {doubtful_place.why})"
        for doubtful_place in keys.doubtful_places[:NAMED_MOST]
    )
    more = len(keys.doubtful_places) - NAMED_MOST
    others = f"; and {more:,} more places" if more > 0 else ""
    total = keys.exchanged + keys.doubtful
    yield f"{keys.doubtful:,} of {total:,} values may be keys and could not be proven to be: {named}{others}"


def is_older(fit: SequenceFit) -> bool:
    """Whether the database lacks rows that production had made when the capture began."""
    return fit.missing > max(AHEAD, SHARE_MOST * fit.given)


def is_newer(fit: SequenceFit) -> bool:
    """Whether the database has rows already that production made during the capture."""
    return fit.already > max(AHEAD, SHARE_MOST * fit.returned)


def kept_up(record: ReplayRecord) -> bool:
    """Whether it ended in its time."""
    return not record.ended_by and record.took_s - record.due_s <= KEPT_UP_S


def replayed(run: RunFigures) -> Iterator[CheckResult]:
    """The check of a replay; nothing of other workloads."""
    record = run.record.replay
    if record is None:
        return
    wrong = list(reasons(record))
    for reason in wrong:
        yield CheckResult("captured load", "invalid", reason)
    if record.reading is not None:
        yield from (CheckResult("capture", "warn", remark) for remark in reading.remarks(record.reading))
    if record.likeness is not None:
        yield _likeness(record.likeness)
    if not wrong:
        left_out = sum(record.left_out.values())
        figure = f"of {record.statements:,} statements {record.newly_failed:,} failed newly, {left_out:,} were left out"
        yield CheckResult(
            "captured load", "ok", f"{figure} ({percent(record.left_out_s / max(1e-6, record.recorded_s))} of the time)"
        )


def _likeness(record: LikenessRecord) -> CheckResult:
    """Statements that did other work than in production; those of which there are too many are a reason beside it."""
    beyond, many = unlike(record), len(record.statements)
    if not beyond:
        return CheckResult("likeness", "ok", f"each of {many:,} statements did the work that it did in production")
    named = "; ".join(unlike_of.words for unlike_of in beyond[:NAMED_MOST])
    return CheckResult(
        "likeness", "warn", f"{len(beyond):,} of {many:,} statements did other work than in production: {named}"
    )


@dataclass(frozen=True)
class ReplayStatement:
    """One shape of statement of an arm."""

    calls: float
    """In a run."""
    response_ms: Estimate
    recorded_ms: float | None
    """Mean in production; None where it was not recorded."""


@dataclass(frozen=True)
class ArmReplay:
    """The replays of an arm over its replicates."""

    by_block: Mapping[tuple[str, int], ReplayRecord]

    @property
    def runs(self) -> tuple[ReplayRecord, ...]:
        """The replicates, in their order."""
        return tuple(self.by_block.values())

    @property
    def late_s(self) -> Estimate:
        """How much longer it took than its time."""
        return t_interval([max(0.0, run.took_s - run.due_s) for run in self.runs])

    @property
    def kept_up(self) -> bool:
        """Whether every replicate ended in its time."""
        return all(kept_up(run) for run in self.runs)

    @property
    def behind_s_max(self) -> float:
        """The latest statement of all replicates."""
        return max(run.behind.max_ms for run in self.runs) / 1e3

    @property
    def statements(self) -> dict[str, ReplayStatement]:
        """Shape -> what it took, those first that took the most time in production or here."""
        statements: dict[str, list[ReplayedStatement]] = {}
        for run in self.runs:
            for statement in run.by_statement:
                statements.setdefault(statement.statement, []).append(statement)
        return {
            shape: ReplayStatement(
                calls=sum(statement.calls for statement in each) / len(each),
                response_ms=t_interval([statement.response_ms for statement in each]),
                recorded_ms=each[0].recorded_ms,
            )
            for shape, each in statements.items()
        }

    def ratios(self, base: ArmReplay) -> dict[str, Estimate]:
        """Shape -> the ratio of its response time to that of another arm, paired by replicate."""
        ratios = {}
        own, other = ({block: _response_ms(run) for block, run in replay.by_block.items()} for replay in (self, base))
        for shape in self.statements:
            pairs = [
                (times[shape], other[block][shape])
                for block, times in own.items()
                if shape in times and shape in other.get(block, {})
            ]
            if pairs:
                ratios[shape] = ratio_interval(pairs)
        return ratios


@dataclass(frozen=True)
class Trust:
    """What an arm that emulates production's own volume says of how far to trust the others: its times beside the recorded ones."""

    spec: str
    """Production's volume."""
    arm: ArmSummary | None
    """None where no arm has it."""
    median: Estimate | None = None
    """Ratio of its median service time to production's, over replicates; None where nothing was timed."""
    p99: Estimate | None = None
    statements: tuple[float, float] | None = None
    """The lowest and the highest ratio of the mean times of statements, of those that together have most of production's time."""
    counted: int = 0
    """How many those are."""


def trust_of(arms: Sequence[ArmSummary]) -> Trust | None:
    """None where it is not known what production has."""
    for arm in arms:
        spec = arm.replicates[0].figures.record.workload.get("recorded_on")
        if spec is None:
            continue
        summary = next((arm for arm in arms if arm.data.resolved.get("spec") == spec), None)
        replay = None if summary is None else replay_of(summary)
        if replay is None:
            return Trust(spec, None)
        ratios = [statement.service_ms / statement.recorded_ms for statement in _most(replay)]
        return Trust(
            spec,
            summary,
            median=_against_production(replay, lambda times: times.p50_ms),
            p99=_against_production(replay, lambda times: times.p99_ms),
            statements=(min(ratios), max(ratios)) if ratios else None,
            counted=len(ratios),
        )
    return None


def _against_production(replay: ArmReplay, of: Callable[[TimeDistribution], float]) -> Estimate | None:
    pairs = [(of(run.service), of(run.recorded)) for run in replay.runs]
    return ratio_interval(pairs) if all(min(pair) > 0 for pair in pairs) else None


@dataclass(frozen=True)
class _ShapeTimes:
    """Mean times of one shape, here and in production."""

    service_ms: float
    recorded_ms: float
    total_ms: float
    """In production, of all its calls."""


def _most(replay: ArmReplay) -> list[_ShapeTimes]:
    """The shapes that together have :data:`MOST_SHARE` of production's time, those with the most time first."""
    statements: dict[str, list[ReplayedStatement]] = {}
    for run in replay.runs:
        for statement in run.by_statement:
            if statement.service_ms and statement.recorded_ms:
                statements.setdefault(statement.statement, []).append(statement)
    timed = sorted(
        (
            _ShapeTimes(
                service_ms=sum(statement.service_ms or 0.0 for statement in each) / len(each),
                recorded_ms=(recorded := each[0].recorded_ms or 0.0),
                total_ms=recorded * each[0].timed,
            )
            for each in statements.values()
        ),
        key=lambda times: -times.total_ms,
    )
    most: list[_ShapeTimes] = []
    total, so_far = sum(times.total_ms for times in timed), 0.0
    for times in timed:
        if so_far >= MOST_SHARE * total:
            break
        most.append(times)
        so_far += times.total_ms
    return most


def _response_ms(run: ReplayRecord) -> dict[str, float]:
    return {statement.statement: statement.response_ms for statement in run.by_statement if statement.response_ms > 0}


def replay_of(arm: ArmSummary) -> ArmReplay | None:
    """The replays of an arm; None of other workloads."""
    document = {
        replicate.block: replay
        for replicate in arm.replicates
        if (replay := replicate.figures.record.replay) is not None
    }
    return ArmReplay(document) if document else None
