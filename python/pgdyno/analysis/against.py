"""Two stored results beside each other: what they differ in, and what their common arms did.

Runs of two experiments share no block: what the machine did at one time and at the other is in the ratio. It is therefore
that of independent means, with Welch's interval, and wider than a ratio within one experiment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.difference import Difference, differences

from .statistics import Estimate, distinguishable, unpaired_ratio


@dataclass(frozen=True)
class Pair:
    """An arm of one result and what answers to it in the other."""

    arm: ArmSummary
    other: ArmSummary
    ratio: Estimate | None
    """The headline of ``arm`` over that of ``other``; None where either did nothing."""

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 1."""
        return self.ratio is not None and distinguishable(self.ratio)


@dataclass(frozen=True)
class Against:
    """One result against another."""

    one: Comparison
    other: Comparison
    pairs: tuple[Pair, ...]
    """Arms that both have, in the order of the first."""
    alone: tuple[ArmSummary, ...]
    """Arms that only the first has."""
    alone_of_other: tuple[ArmSummary, ...]
    configuration: tuple[Difference, ...]
    """What was asked for; old is the other's."""
    programs: tuple[Difference, ...]
    """pgdyno, its engine, PostgreSQL, the host."""
    settings: tuple[Difference, ...]
    """PostgreSQL's settings of the first runs."""


def against(comparison: Comparison, other: Comparison) -> Against:
    """Match arms by their levels as they were written; where each has a single arm, those two whatever they are called.

    An arm has no answer among arms that have another headline.
    """
    waiting: dict[tuple[str, str], list[ArmSummary]] = {}
    for arm in other.arms:
        waiting.setdefault((arm.volume, arm.metric.name), []).append(arm)
    # The same level twice is two arms: the first answers to the first.
    matched = [(arm, same.pop(0)) for arm in comparison.arms if (same := waiting.get((arm.volume, arm.metric.name)))]
    if not matched and len(comparison.arms) == len(other.arms) == 1 and comparison.metric == other.metric:
        matched = [(comparison.arms[0], other.arms[0])]
    mine, theirs = {arm.index for arm, _ in matched}, {arm.index for _, arm in matched}
    return Against(
        one=comparison,
        other=other,
        pairs=tuple(Pair(arm, answer, _ratio(arm, answer)) for arm, answer in matched),
        alone=tuple(arm for arm in comparison.arms if arm.index not in mine),
        alone_of_other=tuple(arm for arm in other.arms if arm.index not in theirs),
        configuration=tuple(differences(_asked(other), _asked(comparison))),
        programs=tuple(differences(_programs(other), _programs(comparison))),
        settings=tuple(differences(_settings(other), _settings(comparison))),
    )


def _ratio(arm: ArmSummary, other: ArmSummary) -> Estimate | None:
    over, under = (list(summary.by_block.values()) for summary in (arm, other))
    return unpaired_ratio(over, under) if over and under else None


def _asked(comparison: Comparison) -> dict[str, Any]:
    """What was asked for, without what cannot change a result."""
    experiment = comparison.experiment
    kept = {name: value for name, value in experiment.settings.items() if name not in ("factors", "budget")}
    return {**kept, "factors": {name: ", ".join(levels) for name, levels in experiment.factors.items()}}


def _programs(comparison: Comparison) -> dict[str, Any]:
    host = comparison.arms[0].replicates[0].figures.record.world.host
    return {**comparison.experiment.versions, "host": host.model_dump()}


def _settings(comparison: Comparison) -> dict[str, Any]:
    """Setting -> value of the first run; where its files lay and what it was called say nothing about how it was set."""
    run = comparison.arms[0].replicates[0].figures.run
    return {
        str(row["name"]): f"{row['setting']} {row['unit'] or ''}".strip()
        for row in run.table("postgres/settings").to_pylist()
        if not str(row["name"]).endswith(("_file", "_directory", "_directories", "_path"))
    }
