"""One arm against another: their ratio, and what its interval leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary

from .statistics import (
    Estimate,
    detectable_difference,
    distinguishable,
    equivalent_within,
    ratio_interval,
    replicates_needed,
)

PAIRED_MAX = 48
"""Arms of which every pair is compared: a thousand pairs. A larger sweep is read along its axes."""


@dataclass(frozen=True)
class Ratio:
    """The headline of one arm over that of another, paired by block."""

    index: int
    to_index: int
    estimate: Estimate | None
    """None when no block has a run of both."""

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 1; False without an interval, which says nothing either way."""
        return self.estimate is not None and distinguishable(self.estimate)

    @property
    def has_interval(self) -> bool:
        """Whether the arms were run often enough for an interval: a single run of each has none."""
        return self.estimate is not None and self.estimate.low is not None

    @property
    def equivalent_within(self) -> float | None:
        """A difference of this or more is ruled out; None for one replicate."""
        return None if self.estimate is None else equivalent_within(self.estimate)

    @property
    def detectable(self) -> float | None:
        """The difference that replicates like these find in four experiments of five; None for one replicate."""
        return None if self.estimate is None else detectable_difference(self.estimate)

    @property
    def replicates_needed(self) -> int | None:
        """Replicates that would find :data:`~pgdyno.analysis.statistics.DIFFERENCE_OF_INTEREST` as often."""
        return None if self.estimate is None else replicates_needed(self.estimate)


def ratio_of(arm: ArmSummary, base: ArmSummary) -> Ratio:
    """One arm against another."""
    under = base.by_block
    pairs = [(value, under[block]) for block, value in arm.by_block.items() if block in under]
    return Ratio(arm.index, base.index, ratio_interval(pairs) if pairs else None)


def every_pair(arms: Sequence[ArmSummary]) -> tuple[Ratio, ...]:
    """Each arm against each one before it; nothing of more than :data:`PAIRED_MAX` arms."""
    if len(arms) > PAIRED_MAX:
        return ()
    return tuple(ratio_of(arm, base) for place, arm in enumerate(arms) for base in arms[:place])


def gain_of(arm: ArmSummary, base: ArmSummary) -> Estimate | None:
    """How many times faster one arm is than another, whichever way its headline is better; None where no block has both."""
    over, under = (arm, base) if arm.metric.better == "more" else (base, arm)
    return ratio_of(over, under).estimate
