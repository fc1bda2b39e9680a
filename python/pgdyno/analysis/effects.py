"""What each factor of an experiment did, over all others: main effects, and where one depends on another.

An effect is the ratio of the headline at a level to the headline at the factor's first level, from pairs of runs that differ in nothing
else: the same levels of all other factors, the same block. The arms are those of a full factorial, so that every run
is in some pair of every factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.factors import Factor
from pgdyno.analysis.interval import LEVEL, Estimate, distinguishable, stratified_ratio

Levels = tuple[int, ...]
Block = tuple[str, int]


@dataclass(frozen=True)
class Effect:
    """One level of a factor against its first level."""

    factor: int
    """Place of the factor in the experiment."""
    level: int
    estimate: Estimate | None
    """Ratio of the headline; None when no pair of runs differs in this alone."""
    combinations: int
    """Combinations of the other factors that it is a mean over."""
    within: tuple[Within, ...] = ()
    """The effect at each level of another factor on which it was seen to depend."""

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 1."""
        return self.estimate is not None and distinguishable(self.estimate)


@dataclass(frozen=True)
class Within:
    """An effect at one level of another factor."""

    factor: int
    """The other factor."""
    level: int
    estimate: Estimate


def main_effects(factors: Sequence[Factor], arms: Sequence[ArmSummary]) -> tuple[Effect, ...]:
    """The effect of every level after the first of every factor; empty for one factor, whose arms are its levels."""
    if len(factors) < 2:
        return ()
    logs = _logs(arms)
    looked = combinations(factors, 2)
    contrasts = sum((len(number.levels) - 1) * (len(other.levels) - 1) for number, other in looked)
    return tuple(
        _effect(logs, factors, factor, level, contrasts)
        for factor in range(len(factors))
        for level in range(1, len(factors[factor].levels))
    )


def _effect(
    logs: dict[Levels, dict[Block, float]], factors: Sequence[Factor], factor: int, level: int, contrasts: int
) -> Effect:
    strata = _strata(logs, factor, level)
    estimate = stratified_ratio(list(strata.values())) if strata else None
    within = tuple(
        item
        for other in range(len(factors))
        if other != factor and _depends(logs, factors, factor, level, other, contrasts)
        for item in _within(strata, other, len(factors[other].levels))
    )
    return Effect(factor, level, estimate, len(strata), within)


def _logs(arms: Sequence[ArmSummary]) -> dict[Levels, dict[Block, float]]:
    """Levels -> block -> logarithm of the headline; a run that did nothing has none."""
    return {arm.levels: {block: math.log(value) for block, value in arm.by_block.items()} for arm in arms}


def _strata(logs: dict[Levels, dict[Block, float]], factor: int, level: int) -> dict[Levels, list[float]]:
    """Levels of the other factors (this one at 0) -> logarithms of the ratio in each block that has both runs."""
    strata = {}
    for levels, base in logs.items():
        over = logs.get(_at(levels, factor, level), {})
        values = [over[block] - base[block] for block in base if block in over]
        if levels[factor] == 0 and values:
            strata[levels] = values
    return strata


def _within(strata: dict[Levels, list[float]], other: int, count: int) -> Iterator[Within]:
    for level in range(count):
        kept = [values for levels, values in strata.items() if levels[other] == level]
        if kept:
            yield Within(other, level, stratified_ratio(kept))


def _depends(
    logs: dict[Levels, dict[Block, float]],
    factors: Sequence[Factor],
    factor: int,
    level: int,
    other: int,
    contrasts: int,
) -> bool:
    """Whether the effect differs between levels of another factor beyond doubt.

    Each pair of levels is asked at a level that makes one false hint in twenty experiments, however many are asked
    (Bonferroni): a hint that comes by chance would send the reader astray.
    """
    for at in range(1, len(factors[other].levels)):
        strata = []
        for levels, base in logs.items():
            if levels[factor] or levels[other]:
                continue
            corners = [logs.get(_at(_at(levels, factor, a), other, b), {}) for a, b in product((level, 0), (at, 0))]
            both, over, under = corners[0], corners[1], corners[2]
            shared = [block for block in base if all(block in corner for corner in corners)]
            strata.append([both[block] - under[block] - over[block] + base[block] for block in shared])
        if any(strata) and distinguishable(stratified_ratio(strata, 1 - (1 - LEVEL) / contrasts)):
            return True
    return False


def _at(levels: Levels, place: int, level: int) -> Levels:
    return (*levels[:place], level, *levels[place + 1 :])
