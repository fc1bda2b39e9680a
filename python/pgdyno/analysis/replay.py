"""Replays: whether a run was the captured load, whether it kept up, and what each statement took beside production."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.analysis.finding import Finding
from pgdyno.analysis.interval import Estimate, ratio_interval, t_interval
from pgdyno.text import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pgdyno.analysis.arm import ArmSummary
    from pgdyno.analysis.run_figures import RunFigures
    from pgdyno.store.work_record import ReplayedStatement, ReplayRecord

SHARE_MOST = 0.01
"""Of statements or of recorded time: a replay that loses more is not the captured load (issue 21, point 10)."""
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
    if not wrong:
        left_out = sum(found.left_out.values())
        figure = f"of {found.statements:,} statements {found.newly_failed:,} failed newly, {left_out:,} were left out"
        yield Finding(
            "captured load", "ok", f"{figure} ({percent(found.left_out_s / max(1e-6, found.recorded_s))} of the time)"
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
