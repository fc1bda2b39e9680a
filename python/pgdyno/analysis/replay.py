"""Replays: whether a run was the captured load, whether it kept up, and what each statement took beside production."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.analysis import likeness, reading
from pgdyno.analysis.finding import Finding
from pgdyno.analysis.interval import Estimate, ratio_interval, t_interval
from pgdyno.text import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pgdyno.analysis.arm import ArmSummary
    from pgdyno.analysis.run_figures import RunFigures
    from pgdyno.store.work_record import (
        LikenessRecord,
        ReplayedKeys,
        ReplayedStatement,
        ReplayRecord,
        SequenceFit,
        Times,
    )

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


def reasons(found: ReplayRecord) -> Iterator[str]:
    """Why it was not the captured load; nothing if it was."""
    statements, recorded_s = max(1, found.statements), max(1e-6, found.recorded_s)
    if found.ended_by:
        yield f"it did not reach its end: {found.ended_by}"
    if found.not_begun:
        yield f"{found.not_begun:,} statements were not begun"
    if (share := found.newly_failed / statements) > SHARE_MOST:
        yield f"{share:.1%} of the statements failed that had not failed so in production"
    if (share := found.no_longer_failed / statements) > SHARE_MOST:
        yield f"{share:.1%} of the statements did not fail as they had in production"
    if (share := sum(found.left_out.values()) / statements) > SHARE_MOST:
        yield f"{share:.1%} of the statements were left out"
    if (share := found.left_out_s / recorded_s) > SHARE_MOST:
        yield f"statements with {share:.1%} of the recorded time were left out"
    if found.reading is not None:
        yield from reading.reasons(found.reading)
    if found.log_lost > LOST_LINES_MOST * found.log_entries and not (found.reading and found.reading.accepted):
        yield f"{found.log_lost:,} of {found.log_entries:,} lines of the log are missing or not whole"
    for one in () if found.keys is None else found.keys.sequences:
        if is_older(one):
            yield f"the database is {one.missing:,} values of {one.column} older than the capture"
        if is_newer(one):
            yield f"the database is newer than the capture: it has {one.already:,} of {one.returned:,} keys of {one.column} already"
    if found.keys is not None:
        yield from _doubtful(found.keys)
    if found.likeness is not None:
        yield from likeness.reasons(found.likeness)


def _doubtful(keys: ReplayedKeys) -> Iterator[str]:
    """Why keys were not exchanged well enough: too many values may have been keys, and were sent as captured."""
    if keys.doubtful <= SHARE_MOST * (keys.exchanged + keys.doubtful):
        return
    named = "; ".join(
        f"{one.place} of {textwrap.shorten(one.statement, STATEMENT_LETTERS, placeholder=' …')} ({one.count:,} times: {one.why})"
        for one in keys.doubtful_places[:NAMED_MOST]
    )
    more = len(keys.doubtful_places) - NAMED_MOST
    others = f"; and {more:,} more places" if more > 0 else ""
    total = keys.exchanged + keys.doubtful
    yield f"{keys.doubtful:,} of {total:,} values may be keys and could not be proven to be: {named}{others}"


def is_older(one: SequenceFit) -> bool:
    """Whether the database lacks rows that production had made when the capture began."""
    return one.missing > max(AHEAD, SHARE_MOST * one.given)


def is_newer(one: SequenceFit) -> bool:
    """Whether the database has rows already that production made during the capture."""
    return one.already > max(AHEAD, SHARE_MOST * one.returned)


def kept_up(found: ReplayRecord) -> bool:
    """Whether it ended in its time."""
    return not found.ended_by and found.took_s - found.due_s <= KEPT_UP_S


def replayed(run: RunFigures) -> Iterator[Finding]:
    """The check of a replay; nothing of other workloads."""
    found = run.record.replay
    if found is None:
        return
    wrong = list(reasons(found))
    for reason in wrong:
        yield Finding("captured load", "invalid", reason)
    if found.reading is not None:
        yield from (Finding("capture", "warn", remark) for remark in reading.remarks(found.reading))
    if found.likeness is not None:
        yield _likeness(found.likeness)
    if not wrong:
        left_out = sum(found.left_out.values())
        figure = f"of {found.statements:,} statements {found.newly_failed:,} failed newly, {left_out:,} were left out"
        yield Finding(
            "captured load", "ok", f"{figure} ({percent(found.left_out_s / max(1e-6, found.recorded_s))} of the time)"
        )


def _likeness(found: LikenessRecord) -> Finding:
    """Statements that did other work than in production; those of which there are too many are a reason beside it."""
    beyond, many = likeness.unlike(found), len(found.statements)
    if not beyond:
        return Finding("likeness", "ok", f"each of {many:,} statements did the work that it did in production")
    named = "; ".join(one.words for one in beyond[: likeness.NAMED_MOST])
    return Finding(
        "likeness", "warn", f"{len(beyond):,} of {many:,} statements did other work than in production: {named}"
    )


@dataclass(frozen=True)
class Statement:
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
    def statements(self) -> dict[str, Statement]:
        """Shape -> what it took, those first that took the most time in production or here."""
        found: dict[str, list[ReplayedStatement]] = {}
        for run in self.runs:
            for one in run.by_statement:
                found.setdefault(one.statement, []).append(one)
        return {
            shape: Statement(
                calls=sum(one.calls for one in each) / len(each),
                response_ms=t_interval([one.response_ms for one in each]),
                recorded_ms=each[0].recorded_ms,
            )
            for shape, each in found.items()
        }

    def ratios(self, base: ArmReplay) -> dict[str, Estimate]:
        """Shape -> the ratio of its response time to that of another arm, paired by replicate."""
        found = {}
        own, other = ({block: _response_ms(run) for block, run in one.by_block.items()} for one in (self, base))
        for shape in self.statements:
            pairs = [
                (times[shape], other[block][shape])
                for block, times in own.items()
                if shape in times and shape in other.get(block, {})
            ]
            if pairs:
                found[shape] = ratio_interval(pairs)
        return found


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
        found = next((one for one in arms if one.data.resolved.get("spec") == spec), None)
        replay = None if found is None else replay_of(found)
        if replay is None:
            return Trust(spec, None)
        ratios = [statement.service_ms / statement.recorded_ms for statement in _most(replay)]
        return Trust(
            spec,
            found,
            median=_against_production(replay, lambda times: times.p50_ms),
            p99=_against_production(replay, lambda times: times.p99_ms),
            statements=(min(ratios), max(ratios)) if ratios else None,
            counted=len(ratios),
        )
    return None


def _against_production(replay: ArmReplay, of: Callable[[Times], float]) -> Estimate | None:
    pairs = [(of(run.service), of(run.recorded)) for run in replay.runs]
    return ratio_interval(pairs) if all(min(pair) > 0 for pair in pairs) else None


@dataclass(frozen=True)
class _Timed:
    """Mean times of one shape, here and in production."""

    service_ms: float
    recorded_ms: float
    total_ms: float
    """In production, of all its calls."""


def _most(replay: ArmReplay) -> list[_Timed]:
    """The shapes that together have :data:`MOST_SHARE` of production's time, those with the most time first."""
    found: dict[str, list[ReplayedStatement]] = {}
    for run in replay.runs:
        for statement in run.by_statement:
            if statement.service_ms and statement.recorded_ms:
                found.setdefault(statement.statement, []).append(statement)
    timed = sorted(
        (
            _Timed(
                service_ms=sum(one.service_ms or 0.0 for one in each) / len(each),
                recorded_ms=(recorded := each[0].recorded_ms or 0.0),
                total_ms=recorded * each[0].timed,
            )
            for each in found.values()
        ),
        key=lambda one: -one.total_ms,
    )
    most: list[_Timed] = []
    total, so_far = sum(one.total_ms for one in timed), 0.0
    for one in timed:
        if so_far >= MOST_SHARE * total:
            break
        most.append(one)
        so_far += one.total_ms
    return most


def _response_ms(run: ReplayRecord) -> dict[str, float]:
    return {one.statement: one.response_ms for one in run.by_statement if one.response_ms > 0}


def replay_of(arm: ArmSummary) -> ArmReplay | None:
    """The replays of an arm; None of other workloads."""
    found = {
        replicate.block: replay
        for replicate in arm.replicates
        if (replay := replicate.figures.record.replay) is not None
    }
    return ArmReplay(found) if found else None
